// The whole command line with a model of one's own: own_model train|eval|predict|check JOB.yaml
//
// A job file names the model and its options (examples/own_model.yaml):
//   model: {linear: {label: clicked, numbers: [age, price], ids: {user: 1000}}}
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "coordinator/cli/run_cli.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/model_registry.h"

namespace {

// Logistic regression: a weight for each number and for each id.
class Linear : public mu::Model {
 public:
  // `json` is the map below `linear`. An error that begins with a key of the job file is shown with
  // that key's line.
  static absl::StatusOr<std::unique_ptr<mu::Model>> FromJson(const std::string& json) {
    const auto options = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
    auto model = std::make_unique<Linear>();
    for (const auto& [key, value] : options.items()) {
      const auto wrong = [key = key](const std::string& what) {
        return absl::InvalidArgumentError("model.linear." + key + ": " + what);
      };
      if (key == "label") {
        if (!value.is_string()) return wrong("must be the name of a column");
        model->label_ = value;
      } else if (key == "numbers") {
        const auto is_name = [](const auto& name) { return name.is_string(); };
        if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_name)) {
          return wrong("must be a list of columns");
        }
        model->numbers_ = value;
      } else if (key == "ids") {
        const auto is_bound = [](const auto& bound) {
          return bound.is_number_integer() && bound > 0;
        };
        if (!value.is_object() || !std::all_of(value.begin(), value.end(), is_bound)) {
          return wrong("must give for each column the number that its ids are below");
        }
        model->ids_ = value;
      } else {
        return wrong("is no option of this model; there are label, numbers and ids");
      }
    }
    if (model->label_.empty() || model->numbers_.empty()) {
      return absl::InvalidArgumentError("model.linear: needs a label and at least one of numbers");
    }
    return std::unique_ptr<mu::Model>(std::move(model));
  }

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
  std::string label_;
  std::vector<std::string> numbers_;
  std::map<std::string, int64_t> ids_;  // by column: rows of its table
  mu::Dense dense_;
  std::map<std::string, mu::EmbeddingTable> tables_;
};

}  // namespace

int main(int argc, char** argv) {
  mu::ModelRegistry models = mu::ModelRegistry::WithBuiltins();
  if (!models.RegisterJson("linear", Linear::FromJson).ok()) return 2;
  return mu::RunCli(argc, argv, models);
}
