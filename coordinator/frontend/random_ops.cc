#include "coordinator/frontend/op_support.h"
#include "coordinator/frontend/ops.h"

namespace mu {
namespace {

// The attributes of a new random op, in the order in which the function makes them.
Attrs RandomAttrs(absl::Span<const Sym> inputs) {
  TraceGraph* graph = GraphOf(inputs);
  if (graph == nullptr) return Attrs().Int("seed", 0).Int("index", 0);  // AddOp reports it
  return Attrs()
      .Int("seed", static_cast<int64_t>(graph->seed()))
      .Int("index", graph->NextRandomOp());
}

}  // namespace

Sym Dropout(const Operand& x, float rate) {
  const Sym bound = x.Bind();
  if (!IsTraining({bound}, x.place())) return bound;
  return AddOp("dropout", {bound}, RandomAttrs({bound}).Float("rate", rate), x.place());
}

Sym DropoutAgain(const Operand& dy, float rate, int64_t seed, int64_t index) {
  return AddOp("dropout", {dy.Bind()},
               Attrs().Float("rate", rate).Int("seed", seed).Int("index", index), dy.place());
}

Sym RandomUniform(const Operand& like, float low, float high) {
  const Sym bound = like.Bind();
  return AddOp("random_uniform", {bound},
               RandomAttrs({bound}).Float("low", low).Float("high", high), like.place());
}

}  // namespace mu
