// What a job's data and model have to say against a run, before anything starts.
#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/job_file.h"
#include "coordinator/cli/problem_list.h"
#include "coordinator/training/train_job.h"

namespace mu {

class ModelRegistry;

// Looks at the data and the model of the job file at `path`, each once its keys are right, and at
// no data that this run does not read. Of data with wrong columns the others are looked at all the
// same, so that a mistake hides no other one.
void CheckDataAndModel(const std::string& path, const JobFile& file, JobUse use,
                       const ModelRegistry& models, const RunOptions& options,
                       std::vector<std::string>* notes, ProblemList* problems);

// Whether the model is the one whose values the checkpoint's run has trained: for a command that
// takes the values, and reads no data. Nothing if only the user knows; a problem if the run's
// record cannot tell (TrainedColumnsOfCheckpoint).
void CheckTrainedModel(const std::string& path, const JobFile& file, const std::string& checkpoint,
                       std::vector<std::string>* notes, ProblemList* problems);

}  // namespace mu
