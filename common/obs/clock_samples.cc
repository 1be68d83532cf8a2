#include "common/obs/clock_samples.h"

#include <algorithm>

namespace mu {
namespace {

// Between two machines' oscillators, at most; 100 parts in a million.
constexpr uint64_t kDriftDivisor = 10000;
// Samples further away than this many are not looked at: drift has made them worse.
constexpr size_t kNearby = 64;

}  // namespace

void ClockSamples::Add(uint64_t asked, uint64_t answered, uint64_t theirs) {
  const uint64_t round_trip = answered - asked;
  samples_.push_back({asked, round_trip,
                      static_cast<int64_t>(asked + round_trip / 2) - static_cast<int64_t>(theirs)});
}

int64_t ClockSamples::OffsetAt(size_t index) const {
  const Sample& here = samples_[index];
  const Sample* best = &here;
  uint64_t least = here.round_trip / 2;
  const size_t end = std::min(samples_.size(), index + kNearby + 1);
  for (size_t i = index > kNearby ? index - kNearby : 0; i < end; ++i) {
    const Sample& sample = samples_[i];
    const uint64_t away = std::max(sample.at, here.at) - std::min(sample.at, here.at);
    const uint64_t uncertain = sample.round_trip / 2 + away / kDriftDivisor;
    if (uncertain < least) {
      least = uncertain;
      best = &sample;
    }
  }
  return best->offset;
}

}  // namespace mu
