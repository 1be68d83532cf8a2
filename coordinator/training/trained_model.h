// Whether a job's model is the function whose values a run has trained. Names and shapes of
// variables do not tell: a mean, a temperature or the order of numbers is in neither.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/training/trained_columns.h"
#include "proto/job.pb.h"

namespace mu {

struct ModelDifferences {
  // "KEY: a sentence; what to do" for each key that would make another function of the values.
  std::vector<std::string> problems;
  // The same of options of a user's own model, where only its code knows what they decide.
  std::vector<std::string> notes;
};

// Keys that only training or measuring reads (dropout, the label's column) may differ, and where a
// product is computed. Nothing if it is not known what was trained. Pure.
ModelDifferences CompareModels(const TrainedColumns& trained, const muster::ModelProto& model);

// What CompareModels and CompareColumns say of the job's model and data.eval, for a checkpoint that
// was not there when the job was checked. INVALID_ARGUMENT with a line for each problem; other
// errors as TrainedColumnsOfCheckpoint if it is not known what was trained. What an earlier run has
// left is evaluated all the same, since the run that is followed counts: the job is compared with
// that one, and `notes` gets a sentence.
absl::Status CheckEvaluatesWhatWasTrained(const muster::JobProto& job, const ModelRegistry& models,
                                          const std::string& checkpoint,
                                          std::vector<std::string>* notes);

}  // namespace mu
