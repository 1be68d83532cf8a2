#include "coordinator/export/prediction_graph.h"

#include "common/base/status.h"
#include "coordinator/passes/trace.h"

namespace mu {

absl::StatusOr<pb::FunctionProto> TracePrediction(Model& model, const pb::DatasetProto& dataset) {
  MU_RETURN_IF_ERROR(CheckColumns(model, dataset, DataPurpose::kPredict));
  pb::DatasetProto any = dataset;
  any.set_id(1);  // no step reads it
  absl::Status complete;
  absl::StatusOr<pb::FunctionProto> function = TraceForward("prediction", [&](FunctionBuilder& f) {
    const ModelOutput output = model.Build(f, f.NextBatch(Dataset(any)));
    complete = CheckOutput(output, /*with_label=*/false);
    for (const TaskOutput& task : TasksOf(output)) {
      f.Return(task.name.empty() ? "prediction" : task.name + ".prediction", task.prediction);
    }
  });
  if (function.ok()) MU_RETURN_IF_ERROR(complete);
  return function;
}

}  // namespace mu
