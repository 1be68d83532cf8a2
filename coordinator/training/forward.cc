#include "coordinator/training/forward.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/dataset_schema.h"
#include "common/graph/nearest_name.h"

namespace mu {
namespace {

std::string WithTask(const std::string& task, const char* what) {
  return task.empty() ? std::string(what) : absl::StrCat(task, ".", what);
}

// A column that the user names under `key`, with one value of that type, or any, for each record.
absl::StatusOr<Sym> NamedColumn(const BatchRef& batch, const std::string& key,
                                const std::string& name, std::optional<DType> dtype) {
  std::vector<std::string> names;
  for (const pb::ColumnSchema& column : batch.columns()) {
    if (column.name() == name && column.dtype() == dtype.value_or(column.dtype()) &&
        Shape(column.shape()).rank() == 1 && !absl::EndsWith(name, ".splits") &&
        !absl::EndsWith(name, ".values") && !absl::EndsWith(name, ".weights"))
      return batch[name];
    names.push_back(column.name());
  }
  if (batch.Has(name) || batch.Has(name + ".values")) {
    const char* what = !dtype.has_value() ? "value" : *dtype == kInt64 ? "id" : "number";
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": is `", name, "`, which is not one ", what, " for each record"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      key, ": is `", name, "`, which is no column of the data", DidYouMean(name, names)));
}

}  // namespace

Forward ForwardOf(Task task) { return {.tasks = {{"", task, "prediction", "label"}}}; }

absl::StatusOr<Forward> ReturnPredictions(FunctionBuilder& builder, const BatchRef& batch,
                                          const ModelOutput& output,
                                          const std::vector<std::string>& columns) {
  MU_RETURN_IF_ERROR(CheckOutput(output, /*with_label=*/false));
  Forward forward;
  for (const TaskOutput& task : TasksOf(output)) {
    forward.tasks.push_back({task.name, task.task, WithTask(task.name, "prediction"), ""});
    builder.Return(forward.tasks.back().prediction, task.prediction);
  }
  for (const std::string& name : columns) {
    MU_ASSIGN_OR_RETURN(const Sym column, NamedColumn(batch, "--columns", name, std::nullopt));
    const std::string returned = absl::StrCat("column.", name);
    const std::string texts = TextColumnOf(name) + ".values",
                      splits = TextColumnOf(name) + ".splits";
    if (!batch.Has(texts)) {
      forward.columns.push_back({.name = name, .value = returned});
      builder.Return(returned, column);
      continue;
    }
    forward.columns.push_back({.name = name, .texts = returned, .splits = returned + ".splits"});
    builder.Return(returned, batch[texts]);
    builder.Return(returned + ".splits", batch[splits]);
  }
  return forward;
}

absl::StatusOr<Forward> ReturnForEvaluation(FunctionBuilder& builder, const BatchRef& batch,
                                            const ModelOutput& output,
                                            const pb::EvaluationProto& evaluation) {
  MU_RETURN_IF_ERROR(CheckOutput(output, /*with_label=*/true));
  MU_ASSIGN_OR_RETURN(Forward forward, ReturnPredictions(builder, batch, output));
  const std::vector<TaskOutput> tasks = TasksOf(output);
  for (size_t i = 0; i < tasks.size(); ++i) {
    forward.tasks[i].label = WithTask(tasks[i].name, "label");
    builder.Return(forward.tasks[i].label, tasks[i].label);
  }
  const auto extra = [&](const char* what, const std::string& column, DType dtype, Sym value,
                         std::string* returned) -> absl::Status {
    if (!column.empty()) {
      MU_ASSIGN_OR_RETURN(value,
                          NamedColumn(batch, absl::StrCat("evaluation.", what), column, dtype));
    }
    if (!value.valid()) return absl::OkStatus();
    *returned = what;
    builder.Return(what, value);
    return absl::OkStatus();
  };
  MU_RETURN_IF_ERROR(extra("group", evaluation.group(), kInt64, output.group, &forward.group));
  MU_RETURN_IF_ERROR(
      extra("weight", evaluation.weight(), kFloat32, output.weight, &forward.weight));
  return forward;
}

absl::Status CheckPrediction(const ForwardTask& task, const Tensor& values, uint32_t records) {
  const bool classes = task.task == Task::kMultiClass;
  const bool fits = classes ? values.shape().rank() == 2 && values.shape()[1] > 0 &&
                                  values.shape()[0] == static_cast<int64_t>(records)
                            : values.elements() == static_cast<int64_t>(records);
  if (fits && values.dtype() == kFloat32) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", task.prediction, "' has type ", std::string(DTypeName(values.dtype())), " and shape ",
      values.shape().ToString(), " for a batch of ", records, " records; the model must give ",
      classes ? "a row of float32 probabilities" : "one float32 value", " for each"));
}

absl::StatusOr<Measurement> Measurement::Create(const Forward& forward,
                                                const std::vector<std::string>& metrics) {
  const bool has_group = !forward.group.empty();
  // What one task has is measured of it alone; what none has is a mistake.
  for (size_t i = 0; i < metrics.size(); ++i) {
    const std::string& metric = metrics[i];
    const bool some_task_has =
        std::any_of(forward.tasks.begin(), forward.tasks.end(),
                    [&](const ForwardTask& task) { return TaskHasMetric(task.task, metric); });
    const Task task = forward.tasks.empty() ? Task() : forward.tasks[0].task;
    absl::Status status = CheckMetricName(metric);
    if (status.ok() && !some_task_has) status = MetricSet::Create(task, {metric}, true).status();
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("evaluation.metrics[", i, "]: ", status.message()));
  }
  Measurement measurement;
  for (const ForwardTask& task : forward.tasks) {
    std::vector<std::string> names;
    for (const std::string& metric : metrics) {
      if (TaskHasMetric(task.task, metric)) names.push_back(metric);
    }
    if (metrics.empty()) names = DefaultMetrics(task.task, has_group);
    auto set = MetricSet::Create(task.task, names, has_group);
    if (!set.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("evaluation.metrics: ", set.status().message()));
    const size_t at = measurement.returns_.size();
    measurement.returns_.push_back(task.prediction);
    measurement.returns_.push_back(task.label);
    measurement.tasks_.push_back({task, *std::move(set), at, at + 1});
  }
  const auto extra = [&](const std::string& returned, size_t* index) {
    if (returned.empty()) return;
    *index = measurement.returns_.size();
    measurement.returns_.push_back(returned);
  };
  extra(forward.group, &measurement.group_);
  extra(forward.weight, &measurement.weight_);
  return measurement;
}

absl::Status Measurement::Add(const EvaluatedBatch& evaluated) {
  const auto [records, values, marked] = evaluated;
  if (records == 0) return absl::OkStatus();
  for (Measured& measured : tasks_) {
    const Tensor& label = values[measured.label];
    MU_RETURN_IF_ERROR(CheckPrediction(measured.task, values[measured.prediction], records));
    EvalRecords batch{.predictions = values[measured.prediction].flat<float>()};
    if (measured.task.task == Task::kMultiClass) {
      batch.classes = label.flat<int64_t>();
    } else {
      batch.labels = label.flat<float>();
    }
    if (group_ > 0) batch.groups = values[group_].flat<int64_t>();
    if (weight_ > 0) batch.weights = values[weight_].flat<float>();
    const absl::Status added = measured.metrics.Add(batch);
    if (added.ok()) continue;
    if (measured.task.name.empty()) return added;
    return Annotate(added, absl::StrCat("task `", measured.task.name, "`"));
  }
  return absl::OkStatus();
}

std::vector<std::string> Measurement::Names() const {
  std::vector<std::string> names;
  for (const Measured& measured : tasks_) {
    for (const std::string& name : measured.metrics.Names())
      names.push_back(WithTask(measured.task.name, name.c_str()));
  }
  return names;
}

std::vector<MetricValue> Measurement::Values() const {
  std::vector<MetricValue> values;
  for (const Measured& measured : tasks_) {
    for (MetricValue& value : measured.metrics.Values()) {
      value.name = WithTask(measured.task.name, value.name.c_str());
      values.push_back(std::move(value));
    }
  }
  return values;
}

std::vector<std::string> Measurement::WithoutWeights() const {
  std::vector<std::string> names;
  if (weight_ == 0) return names;
  for (const Measured& measured : tasks_) {
    for (const std::string& name : measured.metrics.WithoutWeights())
      names.push_back(WithTask(measured.task.name, name.c_str()));
  }
  return names;
}

}  // namespace mu
