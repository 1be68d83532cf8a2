// A user's binary with a model of two tasks: tasks_test.cc looks at how it is measured and what it
// predicts.
#include "coordinator/cli/run_cli.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/frontend/ops.h"

namespace {

// Predicts the same, trained or not: whether a record is clicked, by x, and which of three kinds it
// is of.
class Tasks : public mu::Model {
 public:
  absl::Status Create(mu::VariableFactory& factory) override {
    MU_ASSIGN_OR_RETURN(weight_, factory.CreateVariable({.name = "weight", .shape = {1}}));
    return absl::OkStatus();
  }
  mu::ModelOutput Build(mu::FunctionBuilder&, const mu::BatchRef& batch) override {
    const mu::Sym x = batch["x"];
    const mu::Sym column = mu::Reshape(x, {-1, 1});
    const mu::Sym odds = mu::Exp(mu::Concat({column, column * 0.0f, column * -1.0f}, 1));
    mu::ModelOutput output;
    output.tasks = {{.name = "click", .prediction = mu::Sigmoid(x)},
                    {.name = "kind",
                     .prediction = odds / mu::Reshape(mu::ReduceSum(odds, {1}), {-1, 1}),
                     .task = mu::Task::kMultiClass}};
    if (batch.Has("clicked")) {
      output.tasks[0].label = batch["clicked"];
      output.tasks[1].label = batch["kind"];
      output.loss = mu::ReduceMean(mu::Square(x * mu::Read(weight_))) * 0.0f;
    }
    output.group = batch["user"];
    return output;
  }
  mu::Task task() const override { return mu::Task::kBinaryClassification; }
  // No label is among them.
  std::vector<mu::pb::ColumnSchema> ColumnsFor(mu::DataPurpose) const override { return Columns(); }
  std::vector<mu::pb::ColumnSchema> Columns() const override {
    return {mu::MakeColumn("x", mu::kFloat32, {mu::kUnknownDim}),
            mu::MakeColumn("user", mu::kInt64, {mu::kUnknownDim})};
  }

 private:
  mu::Variable weight_;
};

struct TasksOptions {
  int64_t dim = 16;  // which changes what a checkpoint must hold
  void Describe(mu::ModelOptions& options) {
    options.Int("dim", &dim, "length of the vectors", {.least = 1});
  }
};

class Rows : public mu::Model {
 public:
  explicit Rows(int64_t dim) : dim_(dim) {}
  absl::Status Create(mu::VariableFactory& factory) override {
    MU_ASSIGN_OR_RETURN(rows_,
                        factory.CreateEmbeddingTable({.name = "rows", .rows = 10, .dim = dim_}));
    return absl::OkStatus();
  }
  mu::ModelOutput Build(mu::FunctionBuilder&, const mu::BatchRef& batch) override {
    mu::ModelOutput output;
    output.task = task();
    output.prediction = mu::ReduceSum(mu::EmbeddingLookup(rows_, batch["user"]), {1}) + batch["x"];
    if (batch.Has("clicked")) {
      output.label = batch["clicked"];
      output.loss = mu::MeanSquaredError(output.prediction, output.label);
    }
    return output;
  }
  mu::Task task() const override { return mu::Task::kRegression; }
  // No label is among them.
  std::vector<mu::pb::ColumnSchema> ColumnsFor(mu::DataPurpose) const override { return Columns(); }
  std::vector<mu::pb::ColumnSchema> Columns() const override {
    return {mu::MakeColumn("user", mu::kInt64, {mu::kUnknownDim})};
  }

 private:
  const int64_t dim_;
  mu::EmbeddingTable rows_;
};

}  // namespace

int main(int argc, char** argv) {
  mu::ModelRegistry models = mu::ModelRegistry::WithBuiltins();
  absl::Status added = models.RegisterJson(
      "tasks", [](const std::string&) -> absl::StatusOr<std::unique_ptr<mu::Model>> {
        return std::make_unique<Tasks>();
      });
  added.Update(models.RegisterOptions<TasksOptions>(
      "rows", "A number by a row's vector",
      [](const TasksOptions& options) -> absl::StatusOr<std::unique_ptr<mu::Model>> {
        return std::make_unique<Rows>(options.dim);
      }));
  return added.ok() ? mu::RunCli(argc, argv, models) : 1;
}
