// The daemons of a cluster whose job is over before it has begun: nobody will continue it, so they
// are told, and need not wait for their --orphan_timeout.
#pragma once

#include "absl/status/status.h"
#include "coordinator/training/train_job.h"

namespace mu {

// Sends home the daemons that register at `options.listen`: waits until as many are there as the
// options say, at most 30 s. Does nothing with `local`. `owns_job`: as the one coordinator of what
// lives in the job_dir, whose lock the caller holds; daemons that have served it before obey nobody
// else. Errors as Connect; CANCELLED after a stop.
absl::Status DismissDaemons(const muster::JobProto& job, const RunOptions& options, bool owns_job);

// The same for a job with which nothing was begun. Takes the lock of the job_dir, if there is one.
// Where another coordinator holds it, the daemons are that one's: does nothing then.
absl::Status DismissDaemonsIfFree(const muster::JobProto& job, const RunOptions& options);

}  // namespace mu
