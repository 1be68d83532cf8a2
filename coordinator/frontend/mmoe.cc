#include "coordinator/frontend/mmoe.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/config_rules.h"
#include "coordinator/frontend/neural_ops.h"

namespace mu {
namespace {

constexpr int64_t kDefaultDim = 16;
constexpr int64_t kDefaultExperts = 4;
constexpr Uniform kSmall{-0.05f, 0.05f};

void CheckTasks(const pb::MmoeProto& config, ConfigRules* rules) {
  if (config.tasks().empty()) {
    rules->Add("tasks", "names no tasks", "write a list of {name: x, label_column: y}", true);
  }
  std::set<std::string> names;
  for (int i = 0; i < config.tasks_size(); ++i) {
    const pb::MmoeTaskProto& task = config.tasks(i);
    const std::string key = absl::StrCat("tasks[", i, "].");
    if (task.name().empty()) rules->Add(key + "name", "must name the task", "", true);
    if (!task.name().empty() && !names.insert(task.name()).second) {
      rules->Add(key + "name", absl::StrCat("is `", task.name(), "`, as is an earlier task's"),
                 "choose another name");
    }
    rules->Column(key + "label_column", task.label_column());
    if (task.has_weight() && !(task.weight() >= 0))
      rules->Add(key + "weight", "must not be negative", "leave it out for 1");
  }
}

}  // namespace

std::vector<ModelProblem> Mmoe::Problems(const pb::MmoeProto& config) {
  std::vector<ModelProblem> problems;
  ConfigRules rules(&problems);
  rules.Features("features", config.features());
  if (config.has_embedding_dim()) rules.Range("embedding_dim", config.embedding_dim(), 1, 1 << 16);
  if (config.has_experts()) rules.Range("experts", config.experts(), 1, 1000, "4 is usual");
  rules.Widths("expert_hidden", config.expert_hidden());
  for (int i = 0; i < config.task_hidden_size(); ++i)
    rules.Range(absl::StrCat("task_hidden[", i, "]"), config.task_hidden(i), 1, 1 << 16);
  CheckTasks(config, &rules);
  return problems;
}

absl::StatusOr<std::unique_ptr<Model>> Mmoe::FromConfig(const pb::MmoeProto& config) {
  MU_RETURN_IF_ERROR(FirstProblem("mmoe", Problems(config)));
  return std::unique_ptr<Model>(new Mmoe(config));
}

Mmoe::Mmoe(const pb::MmoeProto& config)
    : config_(config),
      dim_(config.has_embedding_dim() ? config.embedding_dim() : kDefaultDim),
      features_(config.features()) {}

absl::Status Mmoe::Create(VariableFactory& factory) {
  MU_ASSIGN_OR_RETURN(tables_, features_.CreateTables(factory, "embedding", dim_, kSmall));
  const int64_t inputs = features_.numbers() + features_.fields() * dim_;
  const int64_t experts = config_.has_experts() ? config_.experts() : kDefaultExperts;
  const std::vector<int64_t> widths(config_.expert_hidden().begin(), config_.expert_hidden().end());
  for (int64_t i = 0; i < experts; ++i) {
    MU_ASSIGN_OR_RETURN(Mlp expert, Mlp::Create(factory, absl::StrCat("expert_", i), inputs, widths,
                                                {.last_activation = Activation::kRelu}));
    experts_.push_back(std::move(expert));
  }
  std::vector<int64_t> tower(config_.task_hidden().begin(), config_.task_hidden().end());
  tower.push_back(1);
  for (const pb::MmoeTaskProto& task : config_.tasks()) {
    MU_ASSIGN_OR_RETURN(Dense gate, Dense::Create(factory, "gate_" + task.name(), inputs, experts));
    gates_.push_back(std::move(gate));
    MU_ASSIGN_OR_RETURN(Mlp layers, Mlp::Create(factory, task.name(), widths.back(), tower));
    towers_.push_back(std::move(layers));
  }
  return absl::OkStatus();
}

Sym Mmoe::Inputs(const BatchRef& batch) const {
  std::vector<Sym> parts = features_.Lookup(tables_, batch);
  if (features_.numbers() > 0) parts.push_back(features_.Numbers(batch));
  return parts.size() == 1 ? parts[0] : Concat(parts, 1);
}

ModelOutput Mmoe::Build(FunctionBuilder&, const BatchRef& batch) {
  const Sym inputs = Inputs(batch);
  const int64_t width = config_.expert_hidden(config_.expert_hidden_size() - 1);
  std::vector<Sym> outputs;
  for (const Mlp& expert : experts_) outputs.push_back(Reshape(expert(inputs), {-1, 1, width}));
  const Sym experts = Concat(outputs, 1);  // [batch, experts, width]

  ModelOutput output;
  output.task = task();
  Sym loss_of_all;
  bool all_labels = true;
  for (int i = 0; i < config_.tasks_size(); ++i) {
    const pb::MmoeTaskProto& task = config_.tasks(i);
    const Sym weights = Softmax(gates_[i](inputs));
    const int64_t count = static_cast<int64_t>(experts_.size());
    const Sym mixture = ReduceSum(experts * Reshape(weights, {-1, count, 1}), {1});
    const Sym logits = Reshape(towers_[i](mixture), {-1});
    TaskOutput& made = output.tasks.emplace_back();
    made.name = task.name();
    made.prediction = Sigmoid(logits);
    if (!batch.Has(task.label_column())) {
      all_labels = false;
      continue;
    }
    made.label = batch[task.label_column()];
    Sym loss = ReduceMean(SigmoidCrossEntropy(logits, made.label));
    if (task.has_weight()) loss = loss * task.weight();
    loss_of_all = loss_of_all.graph() == nullptr ? loss : loss_of_all + loss;
  }
  if (all_labels) output.loss = loss_of_all;
  return output;
}

std::vector<pb::ColumnSchema> Mmoe::Columns() const { return ColumnsFor(DataPurpose::kTrain); }

std::vector<pb::ColumnSchema> Mmoe::ColumnsFor(DataPurpose purpose) const {
  std::vector<pb::ColumnSchema> columns = features_.Columns();
  if (purpose == DataPurpose::kPredict) return columns;
  for (const pb::MmoeTaskProto& task : config_.tasks())
    columns.push_back(MakeColumn(task.label_column(), kFloat32, {kUnknownDim}));
  return columns;
}

}  // namespace mu
