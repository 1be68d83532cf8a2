#include "coordinator/frontend/variable_ops.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/sharding/partition.h"
#include "coordinator/frontend/op_support.h"
#include "coordinator/frontend/ops.h"

namespace mu {
namespace {

// The graph of `inputs`, or of the thread, which then knows the variable; null, with the error in
// *failed, if there is none or the handle is empty.
TraceGraph* GraphFor(const Variable& variable, const std::vector<Sym>& inputs,
                     const std::string& op, SourcePlace place, Sym* failed) {
  TraceGraph* graph = GraphOf(inputs);
  if (graph == nullptr) {
    *failed = TraceGraph::NoGraph(op, place);
    return nullptr;
  }
  if (!variable.valid()) {
    *failed = graph->Fail(
        op, absl::InvalidArgumentError("the mu::Variable is empty; create it first"), place);
    return nullptr;
  }
  graph->NoteVariable(variable);
  return graph;
}

void Scatter(const std::string& op, const Variable& variable, const Operand& rows,
             const Operand& values) {
  const Sym bound_rows = rows.Bind(kInt64);
  const Sym bound = values.Bind(variable.valid() ? variable.proto().dtype() : kFloat32);
  Sym failed;
  TraceGraph* graph = GraphFor(variable, {bound_rows, bound}, op, values.place(), &failed);
  if (graph == nullptr) return;
  if (op == "scatter_add" && variable.proto().moving_part() > 0) {
    graph->Fail(
        op,
        absl::InvalidArgumentError(absl::StrCat("variable \"", variable.name(),
                                                "\" has a moving_part: AssignAdd moves it as a "
                                                "whole, and nothing can be added to its rows")),
        values.place());
    return;
  }
  // An error is the graph's; a step has no value of it to stick to.
  graph->AddEffect(op, {bound_rows, bound}, VariableAttrs(variable.proto()), values.place())
      .IgnoreError();
}

// Nullopt: the worker computes it. Whether the function trains is known when it is complete.
std::optional<ProductChoice> OnServers(const Variable& variable, const Sym& x,
                                       const ShardedMatMulOptions& options,
                                       const TraceGraph& graph) {
  if (options.place == ProductPlace::kServers) return ProductChoice{.must = true};
  if (options.place == ProductPlace::kWorker || variable.shape().rank() != 2) return std::nullopt;
  int64_t batch = options.batch;
  if (batch == 0 && x.shape().rank() == 2) batch = x.shape()[0];
  if (batch <= 0) batch = graph.batch_size();
  if (batch <= 0) return std::nullopt;
  const auto pays = [&](bool trains) {
    return MovesLessFromServers(batch, variable.shape()[0], variable.shape()[1],
                                static_cast<int64_t>(PartitionStarts(variable.proto()).size()),
                                trains);
  };
  // What does not pay in a function that only reads never pays in training.
  if (!pays(/*trains=*/false)) return std::nullopt;
  return ProductChoice{.pays_in_training = pays(/*trains=*/true)};
}

}  // namespace

Sym ReadRows(const Variable& variable, int64_t first, int64_t count, const char* file, int line) {
  const SourcePlace place{file, line};
  Sym failed;
  if (GraphFor(variable, {}, "variable_rows", place, &failed) == nullptr) return failed;
  AttrMap attrs = VariableAttrs(variable.proto());
  const AttrMap range = Attrs().Int("first", first).Int("count", count);
  attrs.insert(range.begin(), range.end());
  return AddOp("variable_rows", {}, std::move(attrs), place);
}

void ScatterAdd(const Variable& variable, const Operand& rows, const Operand& delta) {
  Scatter("scatter_add", variable, rows, delta);
}

void ScatterUpdate(const Variable& variable, const Operand& rows, const Operand& value) {
  Scatter("scatter_update", variable, rows, value);
}

Sym ShardedMatMul(const Operand& x, const Variable& variable, const ShardedMatMulOptions& options) {
  const Sym bound = x.Bind();
  if (!bound.status().ok()) return bound;
  Sym failed;
  TraceGraph* graph = GraphFor(variable, {bound}, "sharded_matmul", x.place(), &failed);
  if (graph == nullptr) return failed;
  if (const auto choice = OnServers(variable, bound, options, *graph); choice.has_value()) {
    graph->NoteProduct(variable, *choice);
    return AddOp("sharded_matmul", {bound}, VariableAttrs(variable.proto()), x.place());
  }
  return MatMul(At(bound, x.place()), At(variable, x.place()), {.transpose_b = true});
}

ProductBytes BytesOfProduct(int64_t batch, int64_t n, int64_t k, int64_t partitions, bool trains) {
  const double rows = static_cast<double>(batch), outputs = static_cast<double>(n),
               inputs = static_cast<double>(k);
  return {.read = sizeof(float) * (trains ? 2.0 : 1.0) * outputs * inputs,
          .from_servers = sizeof(float) * (trains ? 3.0 : 1.0) * rows *
                          (outputs + inputs * static_cast<double>(partitions))};
}

bool MovesLessFromServers(int64_t batch, int64_t n, int64_t k, int64_t partitions, bool trains) {
  const ProductBytes bytes = BytesOfProduct(batch, n, k, partitions, trains);
  return bytes.from_servers < bytes.read;
}

}  // namespace mu
