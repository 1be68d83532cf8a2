// The files that train, eval and predict write.
#pragma once

#include <string>

#include "coordinator/cli/options.h"
#include "coordinator/cli/problem_list.h"
#include "coordinator/cli/run_setup.h"

namespace mu {

// Where the run's directory gets its report. Evaluation and prediction in the directory of a run
// that was trained leave that one's as it is: theirs are eval_report.json and predict_report.json.
std::string OwnReport(const CliOptions& cli, const std::string& job_dir);

// Checks what --report, --trace and --out name, and the report in the run's directory (which
// `job_dir_place` names), against all that the run reads. Returns the path of --report if the
// report can be written there, which is done even if the job has problems; otherwise nothing.
std::string CheckRunOutputs(const CliOptions& cli, const RunSetup& setup,
                            const Place& job_dir_place, ProblemList* problems);

}  // namespace mu
