// The whole command line with a model of one's own, see docs/program.md:
//   guide_model train examples/guide/visits.yaml

// [own-model]
#include "coordinator/cli/run_cli.h"
#include "coordinator/frontend/model_registry.h"
#include "examples/guide/guide.h"

class VisitsModel : public mu::Model {
 public:
  // `json` is the map below `visits` in the job file; this model has no options.
  static absl::StatusOr<std::unique_ptr<mu::Model>> FromJson(const std::string& json) {
    if (json != "{}") return absl::InvalidArgumentError("model.visits: takes no options");
    return std::make_unique<VisitsModel>();
  }
  absl::Status Create(mu::VariableFactory& factory) override {
    MU_ASSIGN_OR_RETURN(model_, guide::ClickModel::Create(factory));
    return absl::OkStatus();
  }
  mu::ModelOutput Build(mu::FunctionBuilder&, const mu::BatchRef& batch) override {
    const mu::Sym logits = model_.Logits(batch);
    mu::ModelOutput output;
    output.prediction = mu::Sigmoid(logits);
    if (batch.Has("clicked")) {  // `predict` needs no label
      output.label = batch["clicked"];
      output.loss = mu::ReduceMean(mu::SigmoidCrossEntropy(logits, output.label));
    }
    return output;
  }
  mu::Task task() const override { return mu::Task::kBinaryClassification; }
  std::vector<mu::pb::ColumnSchema> Columns() const override {  // the label last
    const mu::Shape batch = {mu::kUnknownDim};
    return {mu::MakeColumn("user", mu::kInt64, batch), mu::MakeColumn("job", mu::kInt64, batch),
            mu::MakeColumn("age", mu::kFloat32, batch), mu::MakeColumn("hour", mu::kFloat32, batch),
            mu::MakeColumn("clicked", mu::kFloat32, batch)};
  }
  std::map<std::string, int64_t> IdBounds() const override {
    return {{"user", 1000}, {"job", 100}};
  }

 private:
  guide::ClickModel model_;
};

int main(int argc, char** argv) {
  mu::ModelRegistry models = mu::ModelRegistry::WithBuiltins();
  if (!models.RegisterJson("visits", VisitsModel::FromJson).ok()) return 2;
  return mu::RunCli(argc, argv, models);
}
// [/own-model]
