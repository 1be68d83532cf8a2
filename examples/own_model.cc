// The whole command line with a model of one's own: own_model train|eval|predict|check JOB.yaml
//
// A job file names the model and its options (examples/own_model.yaml):
//   model: {linear: {label: clicked, numbers: [age, price], ids: {user: 1000}}}
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cli/run_cli.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/model_registry.h"

namespace {

// What stands below `linear` in the job file. `own_model describe linear` prints it.
struct LinearOptions {
  std::string label;
  std::vector<std::string> numbers;
  std::map<std::string, int64_t> ids;  // by column: rows of its table

  void Describe(mu::ModelOptions& options) {
    options.Text("label", &label, "the column that is predicted", {.required = true});
    options.Texts("numbers", &numbers, "columns of numbers", {.required = true});
    options.IntMap("ids", &ids, "columns of ids, each with the number that its ids are below",
                   {.least = 1});
  }
};

// Logistic regression: a weight for each number and for each id.
class Linear : public mu::Model {
 public:
  explicit Linear(const LinearOptions& options)
      : label_(options.label), numbers_(options.numbers), ids_(options.ids) {}

  absl::Status Create(mu::VariableFactory& factory) override {
    MU_ASSIGN_OR_RETURN(
        dense_, mu::Dense::Create(factory, "numbers", static_cast<int64_t>(numbers_.size()), 1));
    for (const auto& [column, rows] : ids_) {
      MU_ASSIGN_OR_RETURN(tables_[column],
                          factory.CreateEmbeddingTable({.name = column, .rows = rows, .dim = 1}));
    }
    return absl::OkStatus();
  }

  mu::ModelOutput Build(mu::FunctionBuilder&, const mu::BatchRef& batch) override {
    std::vector<mu::Sym> numbers;
    for (const std::string& column : numbers_)
      numbers.push_back(mu::Reshape(batch[column], {-1, 1}));
    mu::Sym logits = dense_(mu::Concat(numbers, 1));
    for (const auto& [column, table] : tables_)
      logits = logits + mu::EmbeddingLookup(table, batch[column]);
    logits = mu::Reshape(logits, {-1});
    mu::ModelOutput output;
    output.prediction = mu::Sigmoid(logits);
    if (batch.Has(label_)) {
      output.label = batch[label_];
      output.loss = mu::ReduceMean(mu::SigmoidCrossEntropy(logits, output.label));
    }
    return output;
  }

  mu::Task task() const override { return mu::Task::kBinaryClassification; }

  std::vector<mu::pb::ColumnSchema> Columns() const override {
    std::vector<mu::pb::ColumnSchema> columns;
    for (const std::string& name : numbers_)
      columns.push_back(mu::MakeColumn(name, mu::kFloat32, {mu::kUnknownDim}));
    for (const auto& [name, rows] : ids_)
      columns.push_back(mu::MakeColumn(name, mu::kInt64, {mu::kUnknownDim}));
    columns.push_back(mu::MakeColumn(label_, mu::kFloat32, {mu::kUnknownDim}));
    return columns;
  }

  std::map<std::string, int64_t> IdBounds() const override { return ids_; }

 private:
  const std::string label_;
  const std::vector<std::string> numbers_;
  const std::map<std::string, int64_t> ids_;
  mu::Dense dense_;
  std::map<std::string, mu::EmbeddingTable> tables_;
};

}  // namespace

int main(int argc, char** argv) {
  mu::ModelRegistry models = mu::ModelRegistry::WithBuiltins();
  const absl::Status registered = models.RegisterOptions<LinearOptions>(
      "linear", "Probability that a label is 1: a weight for each number and each id",
      [](const LinearOptions& options) -> absl::StatusOr<std::unique_ptr<mu::Model>> {
        return std::make_unique<Linear>(options);
      });
  if (!registered.ok()) return 2;
  return mu::RunCli(argc, argv, models);
}
