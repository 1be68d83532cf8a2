// The files that train, eval and predict write.
#pragma once

#include <string>

#include "coordinator/cli/options.h"
#include "coordinator/cli/problem_list.h"
#include "coordinator/cli/run_setup.h"

namespace mu {

// Checks what --report, --trace and --out name, and the report in the run's directory (which
// `job_dir_place` names), against all that the run reads. Returns the path of --report if the
// report can be written there, which is done even if the job has problems; otherwise nothing.
std::string CheckRunOutputs(const CliOptions& cli, const RunSetup& setup,
                            const Place& job_dir_place, ProblemList* problems);

}  // namespace mu
