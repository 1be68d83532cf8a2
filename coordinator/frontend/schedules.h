// How learning rates change over the steps of a job, as users write it:
//
//   f.Minimize(loss, {.warmup_steps = 500, .schedule = mu::CosineDecay{.steps = 20'000}});
//
// Each is a factor of the learning rates of all optimizers; step 0 is the first after the warm-up.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "proto/schedule.pb.h"

namespace mu {

// Always 1.
struct ConstantRate {};

// factor^n at step s: n is s / every, rounded down, or how many of `at` are not above s. One of the
// two.
struct StepDecay {
  uint64_t every = 0;
  std::vector<uint64_t> at = {};
  float factor = 0.1f;
};

// factor^(s / steps).
struct ExponentialDecay {
  uint64_t steps = 0;
  float factor = 0.1f;
};

// From 1 to end_factor in so many steps, by (1 - s / steps)^power; then end_factor.
struct PolynomialDecay {
  uint64_t steps = 0;
  float power = 1.0f;
  float end_factor = 0.0f;
};

// From 1 to end_factor in so many steps, by half a cosine (Loshchilov and Hutter, 2017); then
// end_factor.
struct CosineDecay {
  uint64_t steps = 0;
  float end_factor = 0.0f;
};

// One of them.
class RateSchedule {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  RateSchedule(ConstantRate) {}
  RateSchedule(const StepDecay& decay);
  RateSchedule(const ExponentialDecay& decay);
  RateSchedule(const PolynomialDecay& decay);
  RateSchedule(const CosineDecay& decay);
  // NOLINTEND(google-explicit-constructor)
  explicit RateSchedule(pb::ScheduleProto proto) : proto_(std::move(proto)) {}

  const pb::ScheduleProto& proto() const { return proto_; }

 private:
  pb::ScheduleProto proto_;
};

}  // namespace mu
