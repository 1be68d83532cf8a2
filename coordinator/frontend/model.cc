#include "coordinator/frontend/model.h"

#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "coordinator/frontend/column_misfits.h"

namespace mu {
namespace {

bool IsTaskName(const std::string& name) {
  return !name.empty() &&
         absl::c_all_of(name, [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// Sizes are checked when they are known, with the batch.
absl::Status CheckValue(const std::string& what, const Sym& value, DType dtype, const Shape& want) {
  MU_RETURN_IF_ERROR(value.status());
  const auto refuse = [&](const std::string& has) {
    return absl::InvalidArgumentError(absl::StrCat("the model's ", what, " ", has, "; it must be ",
                                                   TensorSpec{dtype, want}.ToString()));
  };
  if (!value.valid()) return refuse("is missing");
  const Shape& has = value.shape();
  // A column of one value each is as good as a vector.
  const bool fits = has.rank() == want.rank() ||
                    (want.rank() == 1 && has.rank() == 2 && (has[1] == 1 || has[1] == kUnknownDim));
  if (fits && value.dtype() == dtype) return absl::OkStatus();
  return refuse("is " + value.spec().ToString());
}

absl::Status CheckTask(const TaskOutput& task, bool with_label) {
  const std::string of = task.name.empty() ? "" : absl::StrCat(" of task `", task.name, "`");
  const bool classes = task.task == Task::kMultiClass;
  MU_RETURN_IF_ERROR(CheckValue("prediction" + of, task.prediction, kFloat32,
                                classes ? Shape{kUnknownDim, kUnknownDim} : Shape{kUnknownDim}));
  if (!with_label && !task.label.valid()) return absl::OkStatus();
  return CheckValue("label" + of, task.label, classes ? kInt64 : kFloat32, {kUnknownDim});
}

}  // namespace

std::vector<TaskOutput> TasksOf(const ModelOutput& output) {
  if (!output.tasks.empty()) return output.tasks;
  return {{"", output.prediction, output.label, output.task}};
}

absl::Status CheckOutput(const ModelOutput& output, bool with_label) {
  std::set<std::string> names;
  for (const TaskOutput& task : output.tasks) {
    if (!IsTaskName(task.name)) {
      return absl::InvalidArgumentError(absl::StrCat("a task of the model is called `", task.name,
                                                     "`; use letters, digits and _"));
    }
    if (!names.insert(task.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tasks of the model are called `", task.name, "`"));
    }
  }
  for (const TaskOutput& task : TasksOf(output)) MU_RETURN_IF_ERROR(CheckTask(task, with_label));
  const auto given = [](const Sym& value) { return value.valid() || !value.status().ok(); };
  if (given(output.group))
    MU_RETURN_IF_ERROR(CheckValue("group", output.group, kInt64, {kUnknownDim}));
  if (given(output.weight))
    MU_RETURN_IF_ERROR(CheckValue("weight", output.weight, kFloat32, {kUnknownDim}));
  return absl::OkStatus();
}

pb::ColumnSchema MakeColumn(const std::string& name, DType dtype, const Shape& shape) {
  pb::ColumnSchema column;
  column.set_name(name);
  column.set_dtype(dtype);
  *column.mutable_shape() = shape.ToProto();
  return column;
}

std::vector<pb::ColumnSchema> Model::ColumnsFor(DataPurpose purpose) const {
  std::vector<pb::ColumnSchema> columns = Columns();
  if (purpose == DataPurpose::kPredict && !columns.empty()) columns.pop_back();
  return columns;
}

absl::Status CheckColumns(const Model& model, const pb::DatasetProto& dataset,
                          DataPurpose purpose) {
  std::vector<std::string> problems;
  for (const ColumnMisfit& misfit : ColumnMisfits(model, dataset, purpose)) {
    problems.push_back(absl::StrCat(misfit.message, misfit.remedy.empty() ? "" : " (",
                                    misfit.remedy, misfit.remedy.empty() ? "" : ")"));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "dataset \"", dataset.name(), "\" does not fit the model: ", absl::StrJoin(problems, "; ")));
}

}  // namespace mu
