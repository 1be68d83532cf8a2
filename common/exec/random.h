// The random numbers of an op (OpDef::random): a pure function of its attributes seed and index, of
// the step, of the slice of its batch and of the element, so that they do not depend on who runs a
// step, nor how often.
#pragma once

#include <cstdint>

#include "common/base/hash.h"
#include "common/graph/op_def.h"

namespace mu {

// What an op draws from, all steps together.
inline uint64_t StreamOf(const AttrReader& attrs) {
  return HashCombine(static_cast<uint64_t>(attrs.Int("seed")),
                     static_cast<uint64_t>(attrs.Int("index")));
}
// KernelContext::step() of a slice. The first one draws as a step that is not cut.
inline uint64_t StepOfSlice(uint64_t step, uint32_t slice) {
  return slice == 0 ? step : HashCombine(step, slice);
}
inline uint64_t StepKey(uint64_t stream, uint64_t step) { return HashCombine(stream, step); }

// Draws for elements first .. first + kDraws - 1; `first` is a multiple of kDraws.
inline constexpr int64_t kDraws = 16;
inline void Draw(uint64_t key, int64_t first, uint32_t (&draws)[kDraws]) {
  for (int64_t i = 0; i < kDraws / 2; ++i) {
    const uint64_t bits = Mix64(key + static_cast<uint64_t>(first / 2 + i + 1) * kGolden);
    draws[2 * i] = static_cast<uint32_t>(bits);
    draws[2 * i + 1] = static_cast<uint32_t>(bits >> 32);
  }
}

// In [0, 1), from the top 24 bits: exact in a float.
inline float UnitFloat(uint32_t draw) {
  return static_cast<float>(static_cast<int32_t>(draw >> 8)) * (1.0f / 16777216.0f);
}

}  // namespace mu
