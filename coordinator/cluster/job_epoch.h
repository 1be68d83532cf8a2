// Coordinator epochs: each start of a coordinator on a job directory claims the next number, so
// that an older one that still runs can be told apart and refused.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace mu {

// Claims the next epoch by exclusive creation of job_dir/epochs/N; the folder is made. Safe against
// other processes.
absl::StatusOr<CoordinatorEpoch> ClaimEpoch(const std::string& job_dir);

// Whether some coordinator has claimed this epoch.
bool EpochClaimed(const std::string& job_dir, CoordinatorEpoch epoch);

// The identity of the job that lives in this directory; the first who asks gives it `fresh`.
absl::StatusOr<JobId> JobIdOf(const std::string& job_dir, JobId fresh);

}  // namespace mu
