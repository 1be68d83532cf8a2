// One executor's memory and the stages of a step, without the pull and the push. Private to
// common/exec.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/exec/executor.h"
#include "common/exec/plan.h"

namespace mu {

class Run {
 public:
  explicit Run(const Plan& plan);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Sources and then the nodes that ids depend on.
  absl::Status Begin(const StepInputs& inputs);
  // Memory for what is pulled, once the ids are there; then `variables` and `rows` are what to
  // pull. Variables that `other` pulls, if any, are read where it has them.
  absl::Status PreparePull(const Run* other = nullptr);
  // The value is in memory of somebody else.
  void Bind(int value, const View& view) { values_[value] = view; }
  // The rest of the nodes, stage by stage: `multiply` is called with the products between two of
  // them, with memory for their results.
  using Multiply = absl::FunctionRef<absl::Status(absl::Span<const ProductRead>)>;
  absl::Status Compute(Multiply multiply);
  // Sets `variable_writes` and `row_writes`.
  absl::Status PreparePush();

  const View& value(int i) const { return values_[i]; }

  std::vector<VariableRead> variables;
  std::vector<RowsRead> rows;
  std::vector<VariableWrite> variable_writes;
  std::vector<RowsWrite> row_writes;

 private:
  // Null if these rows are not pulled.
  void* MemoryOf(const PlannedVariable& variable) const;
  absl::Status BindColumns(const Batch* batch);
  absl::Status BindArgs(absl::Span<const Tensor> args);
  absl::Status RunNodes(int begin, int end);
  absl::Status PrepareProducts(int stage);
  absl::Status AddWrite(const PlannedVariableUpdate& update);
  absl::Status CheckUpdate(int node, const View& update, const Shape& wanted) const;
  absl::Status CheckOutputs(const PlannedNode& node) const;

  struct Prepared {
    std::vector<const View*> inputs;
    std::vector<OutputPlace> places;
    Scratch scratch;
  };

  const Plan& plan_;
  std::vector<ProductRead> products_;  // of one stage
  std::vector<View> values_;
  std::vector<AlignedBuffer> buffers_;
  std::vector<Prepared> prepared_;        // parallel to plan_.nodes
  std::vector<Tensor> constants_;         // keeps them alive
  std::vector<size_t> column_positions_;  // where in the batch each planned column was last found
  int64_t worker_index_ = 0;
  uint64_t step_ = 0;
};

}  // namespace mu
