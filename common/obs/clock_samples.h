// How far another process's clock is from ours, from questions about its time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mu {

// Every answer says it to within half of its round trip, for the moment at which it was asked;
// clocks of two machines drift apart from there. All times are nanoseconds.
class ClockSamples {
 public:
  // Asked and answered on our clock; `theirs` is what the other clock said in between.
  void Add(uint64_t asked, uint64_t answered, uint64_t theirs);
  size_t size() const { return samples_.size(); }

  // What to add to the other clock's times around the sample `index` to get ours: the word of the
  // sample that knows it best there, which may be one with a shorter round trip nearby.
  int64_t OffsetAt(size_t index) const;

 private:
  struct Sample {
    uint64_t at;
    uint64_t round_trip;
    int64_t offset;
  };
  std::vector<Sample> samples_;  // in the order of their times
};

}  // namespace mu
