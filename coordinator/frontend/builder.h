// What a function's lambda gets: the batch, arguments, Minimize and Return.
//
//   c.DefineFunction("train_step", [&](mu::FunctionBuilder& f) {
//     mu::BatchRef batch = f.NextBatch(data);
//     mu::Sym loss = mu::ReduceMean(mu::SigmoidCrossEntropy(Logits(batch["dense"]),
//     batch["label"])); f.Minimize(loss); f.Return("loss", loss);
//   });
//
// The lambda runs once, while the function is defined. One thread at a time. Errors: see sym.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/frontend/composed_ops.h"
#include "coordinator/frontend/handles.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/frontend/sym.h"

namespace mu {

// A column's name and the line where it was written.
class ColumnName {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  ColumnName(const char* name, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : name_(name), place_{file, line} {}
  ColumnName(std::string name, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : name_(std::move(name)), place_{file, line} {}
  // NOLINTEND(google-explicit-constructor)
  const std::string& name() const { return name_; }
  SourcePlace place() const { return place_; }

 private:
  std::string name_;
  SourcePlace place_;
};

// The batch that a step reads.
class BatchRef {
 public:
  BatchRef() = default;
  BatchRef(std::shared_ptr<TraceGraph> graph, const pb::DatasetProto& dataset);

  // A column, as common/graph/dataset_schema.h has it. An unknown name is an error, with the
  // nearest one.
  Sym operator[](const ColumnName& column) const;
  bool Has(const std::string& column) const;
  const std::vector<pb::ColumnSchema>& columns() const { return columns_; }

 private:
  std::shared_ptr<TraceGraph> graph_;
  std::vector<pb::ColumnSchema> columns_;
};

class FunctionBuilder {
 public:
  explicit FunctionBuilder(std::shared_ptr<TraceGraph> graph) : graph_(std::move(graph)) {}

  // Each step reads one batch of one dataset; asking again gives the same batch.
  BatchRef NextBatch(const Dataset& dataset, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE());
  // A scalar that every call of the function brings along.
  Sym Arg(const std::string& name, DType dtype = kFloat32, const char* file = __builtin_FILE(),
          int line = __builtin_LINE());
  // Which worker runs the step: int64 scalar.
  Sym WorkerIndex(const char* file = __builtin_FILE(), int line = __builtin_LINE());
  // Says that the function trains: Dropout drops, and layers that learn from their batch do so.
  // Without it they do what they do in evaluation. Call it before them.
  void Train(const char* file = __builtin_FILE(), int line = __builtin_LINE());
  // Adds gradients of the loss, a float32 scalar, to every trainable variable and table it depends
  // on; their optimizers apply them. Two calls: the gradients add up.
  void Minimize(const Operand& loss, const MinimizeOptions& options = {});
  // A value that each step returns.
  void Return(const std::string& name, const Operand& value);

  TraceGraph& graph() { return *graph_; }

 private:
  // What the losses of the function share.
  absl::Status SetRates(const MinimizeOptions& options);
  absl::Status SetMicroBatches(uint32_t micro_batches);
  std::shared_ptr<TraceGraph> graph_;
  Dataset dataset_;
};

}  // namespace mu
