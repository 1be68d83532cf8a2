// What a model is to the trainer and the CLI. Users' binaries bring their own through a
// ModelRegistry.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/frontend/builder.h"
#include "coordinator/frontend/variable_factory.h"
#include "proto/dataset.pb.h"

namespace mu {

enum class Task { kBinaryClassification, kRegression };

struct ModelOutput {
  Sym loss;        // scalar, the batch's mean; an empty Sym if the batch has no label
  Sym prediction;  // float32 [batch]: a probability, or the value
  Sym label;       // float32 [batch]; an empty Sym if the batch has none
  Task task = Task::kBinaryClassification;
};

class Model {
 public:
  virtual ~Model() = default;
  // Makes the variables and tables; called once, before Build.
  virtual absl::Status Create(VariableFactory& factory) = 0;
  // Called while a function is traced, once per function (training, evaluation, prediction). Does
  // not call Minimize.
  virtual ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) = 0;
  virtual Task task() const = 0;
  // The columns that Build reads, the label last; the first size of each shape is -1.
  virtual std::vector<pb::ColumnSchema> Columns() const = 0;
  // By column: what its ids must be below, such as the rows of the table that they are looked up
  // in. So the reader finds an id that is too large, with its file and line; otherwise a server
  // does.
  virtual std::map<std::string, int64_t> IdBounds() const { return {}; }
};

// INVALID_ARGUMENT listing every column that the model needs and the dataset lacks, or has with
// another type or shape. Without `with_label` the last of the model's columns may be missing.
absl::Status CheckColumns(const Model& model, const pb::DatasetProto& dataset, bool with_label);

// A column of batches, for Columns().
pb::ColumnSchema MakeColumn(const std::string& name, DType dtype, const Shape& shape);

}  // namespace mu
