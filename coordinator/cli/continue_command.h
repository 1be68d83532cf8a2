// How a run that has not come to its end is continued.
#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/options.h"
#include "proto/job.pb.h"

namespace mu {

// The command line of before, for a shell, with the directory of the run if that was not named.
// `again`: --train_again stays, since the run that it asks for has not begun; else it would begin a
// second time.
std::string ContinueCommand(const CliOptions& cli, const muster::JobProto& job,
                            const std::string& job_dir, bool again = false);

// The newest run of the job below `runs` that has not come to its end, has a checkpoint, and that
// no process of this machine trains now; empty: there is none.
std::string UnfinishedRun(const std::string& runs, const muster::JobProto& job);

}  // namespace mu
