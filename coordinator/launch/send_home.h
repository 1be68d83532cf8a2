// The end of a cluster whose job was over before its daemons were told.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/launch/launch.h"

namespace mu {

// Daemons of a job that is over end: those that register at `listen` until as many are there as
// the options say, or for so long. As the job's one coordinator, if `owns_job` says so; errors as
// Connect.
absl::Status SendHome(ClusterOptions options, absl::Duration patience);

}  // namespace mu
