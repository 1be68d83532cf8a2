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

Sym Unary(const char* op, const Operand& x) { return AddOp(op, {x.Bind()}, {}, x.place()); }

Sym Binary(const char* op, const Operand& a, const Operand& b) {
  if (a.is_number() && !b.is_number()) {
    const Sym right = b.Bind();
    return AddOp(op, {a.Bind(right.dtype()), right}, {}, a.place());
  }
  const Sym left = a.Bind();
  return AddOp(op, {left, b.Bind(left.dtype())}, {}, a.place());
}

Sym OtherOutput(const Sym& first, int output) {
  if (!first.valid()) return first;
  return first.graph()->OutputOf(first.reference().node(), output);
}

CallScope::CallScope(SourcePlace place) {
  TraceGraph* const graph = TraceGraph::Current();
  if (graph == nullptr || graph->has_location()) return;
  pb::SourceLocation location;
  location.set_file(place.file);
  location.set_line(place.line);
  scope_.emplace(graph, std::move(location));
}

int64_t PositiveAxis(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

std::vector<int64_t> PositiveAxes(std::vector<int64_t> axes, int rank) {
  for (int64_t& axis : axes) axis = PositiveAxis(axis, rank);
  return axes;
}

}  // namespace mu
