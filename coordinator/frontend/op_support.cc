#include "coordinator/frontend/op_support.h"

namespace mu {

TraceGraph* GraphOf(absl::Span<const Sym> inputs) {
  for (const Sym& input : inputs) {
    if (input.graph() != nullptr) return input.graph();
  }
  return TraceGraph::Current();
}

bool IsTraining(absl::Span<const Sym> inputs, SourcePlace place) {
  TraceGraph* graph = GraphOf(inputs);
  return graph != nullptr && graph->AskTraining(place);
}

Sym AddOp(const std::string& op, const std::vector<Sym>& inputs, AttrMap attrs, SourcePlace place) {
  for (const Sym& input : inputs) {
    if (!input.status().ok()) return input;
  }
  TraceGraph* graph = GraphOf(inputs);
  if (graph == nullptr) return TraceGraph::NoGraph(op, place);
  return graph->Add(op, inputs, std::move(attrs), place);
}

int64_t PositiveAxis(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

std::vector<int64_t> PositiveAxes(std::vector<int64_t> axes, int rank) {
  for (int64_t& axis : axes) axis = PositiveAxis(axis, rank);
  return axes;
}

}  // namespace mu
