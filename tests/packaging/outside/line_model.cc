#include "line_model.h"

#include "coordinator/frontend/layers.h"

namespace {

class Line : public mu::Model {
 public:
  absl::Status Create(mu::VariableFactory& factory) override {
    MU_ASSIGN_OR_RETURN(line_, mu::Dense::Create(factory, "line", 1, 1));
    return absl::OkStatus();
  }

  mu::ModelOutput Build(mu::FunctionBuilder&, const mu::BatchRef& batch) override {
    mu::ModelOutput output;
    output.task = task();
    output.prediction = mu::Reshape(line_(mu::Reshape(batch["x"], {-1, 1})), {-1});
    if (batch.Has("y")) {
      output.label = batch["y"];
      const mu::Sym error = output.prediction - output.label;
      output.loss = mu::ReduceMean(error * error);
    }
    return output;
  }

  mu::Task task() const override { return mu::Task::kRegression; }

  std::vector<mu::pb::ColumnSchema> Columns() const override {
    return {mu::MakeColumn("x", mu::kFloat32, {mu::kUnknownDim}),
            mu::MakeColumn("y", mu::kFloat32, {mu::kUnknownDim})};
  }

 private:
  mu::Dense line_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<mu::Model>> MakeLineModel(const std::string& json) {
  if (json != "{}" && json != "null" && !json.empty())
    return absl::InvalidArgumentError("model.line: has no options");
  return std::unique_ptr<mu::Model>(std::make_unique<Line>());
}
