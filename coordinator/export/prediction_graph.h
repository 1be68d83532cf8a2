// The function by which a model predicts, as it is traced: from columns to "prediction", or to
// "TASK.prediction" of each of several tasks. No cluster; of the data only the columns.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/frontend/model.h"
#include "proto/dataset.pb.h"
#include "proto/graph.pb.h"

namespace mu {

// The model has created its variables (frontend/paper_factory.h will do). A label that `dataset`
// has is not read. INVALID_ARGUMENT for columns that do not fit, or what tracing says.
absl::StatusOr<pb::FunctionProto> TracePrediction(Model& model, const pb::DatasetProto& dataset);

}  // namespace mu
