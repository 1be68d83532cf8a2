// A user's binary with a mistake in its model's graph: own_model_test.cc looks at what is said of
// it.
#include "coordinator/cli/run_cli.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/frontend/ops.h"

namespace {

class Wrong : public mu::Model {
 public:
  absl::Status Create(mu::VariableFactory& factory) override {
    MU_ASSIGN_OR_RETURN(weights_, factory.CreateVariable({.name = "weights", .shape = {3, 1}}));
    return absl::OkStatus();
  }
  mu::ModelOutput Build(mu::FunctionBuilder&, const mu::BatchRef& batch) override {
    const mu::Sym price = mu::Reshape(batch["price"], {-1, 1});
    mu::ModelOutput output;
    output.prediction = mu::MatMul(price, mu::Read(weights_));  // [batch, 1] by [3, 1]
    output.label = batch["clicked"];
    output.loss = mu::ReduceMean(output.prediction);
    return output;
  }
  mu::Task task() const override { return mu::Task::kRegression; }
  std::vector<mu::pb::ColumnSchema> Columns() const override {
    return {mu::MakeColumn("price", mu::kFloat32, {mu::kUnknownDim})};
  }

 private:
  mu::Variable weights_;
};

}  // namespace

int main(int argc, char** argv) {
  mu::ModelRegistry models = mu::ModelRegistry::WithBuiltins();
  const absl::Status added = models.RegisterJson(
      "wrong", [](const std::string&) -> absl::StatusOr<std::unique_ptr<mu::Model>> {
        return std::make_unique<Wrong>();
      });
  return added.ok() ? mu::RunCli(argc, argv, models) : 1;
}
