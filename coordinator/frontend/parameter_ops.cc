#include "absl/strings/str_cat.h"
#include "coordinator/frontend/op_support.h"
#include "coordinator/frontend/ops.h"

namespace mu {
namespace {

Sym Lookup(const EmbeddingTable& table, const std::vector<Sym>& inputs, const std::string& combiner,
           SourcePlace place) {
  TraceGraph* graph = GraphOf(inputs);
  if (graph == nullptr) return TraceGraph::NoGraph("embedding_lookup", place);
  if (!table.valid()) {
    return graph->Fail(
        "embedding_lookup",
        absl::InvalidArgumentError("the mu::EmbeddingTable is empty; create it first"), place);
  }
  graph->NoteTable(table);
  const Sym found = AddOp("embedding_lookup", inputs, TableAttrs(table.proto(), combiner), place);
  return found;
}

std::string NameOf(Combiner combiner) {
  switch (combiner) {
    case Combiner::kSum:
      return "sum";
    case Combiner::kMean:
      return "mean";
    case Combiner::kSqrtN:
      return "sqrtn";
  }
  return "";
}

void Update(const std::string& op, const Variable& variable, const Operand& value,
            bool moving = false) {
  TraceGraph* graph = TraceGraph::Current();
  if (graph == nullptr)
    return;  // there is no function that the update could belong to, nor one to report to
  if (!variable.valid()) {
    graph->Fail(op, absl::InvalidArgumentError("the mu::Variable is empty; create it first"),
                value.place());
    return;
  }
  const Sym bound = value.Bind(variable.proto().dtype());
  // An error is the graph's; a step has no value of it to stick to.
  AttrMap attrs = VariableAttrs(variable.proto());
  if (moving) attrs["moving"].set_b(true);
  graph->AddEffect(op, {bound}, std::move(attrs), value.place()).IgnoreError();
}

}  // namespace

Sym Read(const Variable& variable, const char* file, int line) {
  return Operand(variable, file, line).Bind();
}

void AssignAdd(const Variable& variable, const Operand& delta) {
  const bool moving = variable.valid() && variable.proto().moving_part() > 0;
  Update("assign_add", variable, delta, moving);
}

void Assign(const Variable& variable, const Operand& value) { Update("assign", variable, value); }

Sym EmbeddingLookup(const EmbeddingTable& table, const Operand& ids) {
  return Lookup(table, {ids.Bind(kInt64)}, "none", ids.place());
}

Sym EmbeddingBag(const EmbeddingTable& table, const Operand& values, const Operand& splits,
                 Combiner combiner) {
  return Lookup(table, {values.Bind(kInt64), splits.Bind(kInt32)}, NameOf(combiner),
                values.place());
}

Sym EmbeddingBag(const EmbeddingTable& table, const Operand& values, const Operand& splits,
                 const Operand& weights, Combiner combiner) {
  return Lookup(table, {values.Bind(kInt64), splits.Bind(kInt32), weights.Bind()}, NameOf(combiner),
                values.place());
}

}  // namespace mu
