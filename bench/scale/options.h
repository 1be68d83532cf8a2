// What bench/scale is asked to measure.
#pragma once

#include <cstdint>

namespace mu::scale {

struct Options {
  int workers = 100;
  int hosts = 2;
  int in_flight = 2;
  double step_ms = 0;
  uint32_t steps = 1;
  double seconds = 5;
  double warm_up = 2;
  int rounds = 1;
  double churn = 0;
  bool coordinator_only = false;
  uint32_t member_timeout = 10;
};

}  // namespace mu::scale
