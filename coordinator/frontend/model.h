// What a model is to the trainer and the CLI. Users' binaries bring their own through a
// ModelRegistry.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/metrics/task.h"
#include "coordinator/frontend/builder.h"
#include "coordinator/frontend/variable_factory.h"
#include "proto/dataset.pb.h"

namespace mu {

// One prediction of a model, and what it is measured against. Shapes by task:
// common/metrics/task.h.
struct TaskOutput {
  std::string name;  // of letters, digits and _; empty: the model's only task
  Sym prediction;
  Sym label;  // an empty Sym if the batch has none
  Task task = Task::kBinaryClassification;
};

struct ModelOutput {
  Sym loss;        // scalar, the batch's mean; an empty Sym if the batch has no label
  Sym prediction;  // of the model's only task
  Sym label;       // an empty Sym if the batch has none
  Task task = Task::kBinaryClassification;
  // A model of several tasks has them here, each with its name, instead of the three above.
  std::vector<TaskOutput> tasks;
  // For metrics; each may be left empty:
  Sym group;   // int64 [batch]: what a record is ranked within, such as the user
  Sym weight;  // float32 [batch]: how much a record counts
};

// What the model predicts: its tasks, or its only one without a name.
std::vector<TaskOutput> TasksOf(const ModelOutput& output);
// INVALID_ARGUMENT for a prediction that is missing or whose type or shape is not its task's, a
// label likewise (`with_label`: it must be there), a task without a name beside others or with one
// that is taken, a group or weight that is not one value for each record.
absl::Status CheckOutput(const ModelOutput& output, bool with_label);

// What a function does with a model, and what data is for.
enum class DataPurpose { kTrain, kEval, kPredict };

class Model {
 public:
  virtual ~Model() = default;
  // Makes the variables and tables; called once, before Build.
  virtual absl::Status Create(VariableFactory& factory) = 0;
  // Called while a function is traced, once per function (training, evaluation, prediction). Does
  // not call Minimize.
  virtual ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) = 0;
  virtual Task task() const = 0;  // of several, the first
  // The columns that Build reads, the label last; the first size of each shape is -1.
  virtual std::vector<pb::ColumnSchema> Columns() const = 0;
  // Those that it reads for a purpose. Here: all of them, without the last to predict.
  virtual std::vector<pb::ColumnSchema> ColumnsFor(DataPurpose purpose) const;
  // By column: what its ids must be below, such as the rows of the table that they are looked up
  // in. So the reader finds an id that is too large, with its file and line; otherwise a server
  // does.
  virtual std::map<std::string, int64_t> IdBounds() const { return {}; }
};

// INVALID_ARGUMENT listing every column that the model needs and the dataset lacks, or has with
// another type or shape.
absl::Status CheckColumns(const Model& model, const pb::DatasetProto& dataset, DataPurpose purpose);

// A column of batches, for Columns().
pb::ColumnSchema MakeColumn(const std::string& name, DType dtype, const Shape& shape);

}  // namespace mu
