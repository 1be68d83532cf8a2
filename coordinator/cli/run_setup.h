// From a command line to a job and the options of its run, or all that is wrong with them.
#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/job_validation.h"
#include "coordinator/cli/options.h"
#include "coordinator/cli/problem_list.h"
#include "coordinator/training/train_job.h"

namespace mu {

class ModelRegistry;

struct RunSetup {
  muster::JobProto job;
  RunOptions options;
  std::string report;              // of --report, if it can be written
  std::vector<std::string> notes;  // what the user should know of what was chosen
  bool gathers = true;             // false: daemons cannot register, with whatever job
};

// Reads and checks the job file, settles the run's directory and checkpoint, and checks the
// machine, the data and the model, each as far as its own keys are right. Starts nothing; the only
// thing it makes is the run's directory.
RunSetup SetUpRun(const CliOptions& options, JobUse use, const ModelRegistry& models,
                  ProblemList* problems);

}  // namespace mu
