// Runs of a soak as tests want them.
#pragma once

#include <string>

#include "coordinator/soak/soak_record.h"

namespace mu::testing {

inline SoakRecord Calm(double seconds = 100, double quality = 0.8) {
  SoakRecord record;
  record.job = "clicks";
  record.setup = "a";
  record.version = "1.2.3";
  record.status = "done";
  record.workers = 4;
  record.ps = 2;
  record.seconds = seconds;
  record.train_seconds = seconds - 1;
  record.samples = 1000;
  record.steps = 10;
  record.metric = "auc";
  record.quality = quality;
  return record;
}

inline SoakRecord Disturbed(double seconds = 150, double quality = 0.8) {
  SoakRecord record = Calm(seconds, quality);
  record.preemption = "worker:kill:every=20s";
  record.losses["worker"] = {.count = 4,
                             .recovered = 3,
                             .recovery_seconds = 6,
                             .longest_recovery_seconds = 4,
                             .steps_repeated = 8,
                             .updates_rolled_back = 0};
  record.failures = {{.role = "worker",
                      .kind = "died",
                      .at_seconds = 20.5,
                      .recovered_ms = 4000,
                      .steps_repeated = 7},
                     {.role = "worker", .kind = "silent", .at_seconds = 41}};
  return record;
}

}  // namespace mu::testing
