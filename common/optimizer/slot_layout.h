// What an optimizer keeps beside each row of a table, or of a variable (its axis 0).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mu {

struct SlotLayout {
  std::string name;      // what it holds, such as "momentum"
  uint64_t width = 0;    // floats of each row: as many as the row has values, or 1
  float initial = 0.0f;  // of each of them
};

// In the order in which they lie and are saved.
using SlotLayouts = std::vector<SlotLayout>;

// Floats of a row, of all its slots.
inline uint64_t SlotFloats(const SlotLayouts& slots) {
  uint64_t floats = 0;
  for (const SlotLayout& slot : slots) floats += slot.width;
  return floats;
}

}  // namespace mu
