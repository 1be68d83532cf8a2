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
  // What the coordinator's work may grow with. 0: as small as it can be.
  int servers = 0;         // whose partition each step changes
  int queue = 0;           // functions that wait all the time
  int dataset_leases = 0;  // of the data that functions read
};

// The loop without a coordinator has neither servers nor data.
inline bool WithoutDirect(const Options& options) {
  return options.coordinator_only || options.servers > 0 || options.dataset_leases > 0;
}

}  // namespace mu::scale
