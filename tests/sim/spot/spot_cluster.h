// A cluster on machines that are taken away at random, in virtual time: how much of the workers'
// time ends up in steps that count? The coordinator's decisions are the product's (Core). Machines,
// steps and files are durations, and nobody fails in any other way. tests/sim/cluster.h is the
// simulation that looks for mistakes.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "coordinator/core/recovery.h"

namespace mu::sim {

struct SpotScenario {
  uint32_t workers = 64, servers = 8;
  RecoveryMode recovery = RecoveryMode::kAll;
  double losses_per_hour = 0.05;                  // of each machine
  absl::Duration lasts = absl::Hours(4);          // so long functions are scheduled
  absl::Duration step = absl::Seconds(1);         // each function has one
  absl::Duration replacement = absl::Minutes(1);  // from the end of a machine to its successor
  absl::Duration heartbeat = absl::Seconds(2);
  absl::Duration timeout = absl::Seconds(10);  // after which a server that is silent counts as lost
  absl::Duration checkpoint_every = absl::Minutes(5);
  absl::Duration save = absl::Seconds(20), restore = absl::Seconds(20);
  absl::Duration install = absl::Seconds(1);
  uint64_t seed = 1;
};

struct SpotOutcome {
  uint64_t functions = 0;  // that were scheduled; all have ended well
  uint64_t workers_lost = 0, servers_lost = 0, checkpoints = 0;
  absl::Duration took;        // from the first moment of service
  absl::Duration workers_up;  // their sum
  double efficiency = 0;      // time of steps that count / workers_up
  double of_all = 0;          // / time of machines that are never lost
};

SpotOutcome RunSpot(const SpotScenario& scenario);

}  // namespace mu::sim
