// Shared by the front end's ops: binding operands and adding nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/frontend/sym.h"

namespace mu {

// The graph an op belongs to: its first input's, else the thread's; null if there is none.
TraceGraph* GraphOf(absl::Span<const Sym> inputs);

// Whether the function that is being traced trains (FunctionBuilder::Train). What depends on it
// says where in the program it is.
bool IsTraining(absl::Span<const Sym> inputs, SourcePlace place);

// Adds the node at `place`.
Sym AddOp(const std::string& op, const std::vector<Sym>& inputs, AttrMap attrs, SourcePlace place);

// A node of one input, or of two of one type: a number takes the type of the other side.
Sym Unary(const char* op, const Operand& x);
Sym Binary(const char* op, const Operand& a, const Operand& b);

// A value or number as an operand that stands at `place`.
template <typename T>
Operand At(const T& value, SourcePlace place) {
  return Operand(value, place.file, place.line);
}

// Another output of the node that made `first`, which keeps its error if it has one.
Sym OtherOutput(const Sym& first, int output);

// What a call that makes several nodes opens first: all of them get the place of the call. An outer
// scope stays in force.
class CallScope {
 public:
  explicit CallScope(SourcePlace place);

 private:
  std::optional<TraceGraph::LocationScope> scope_;
};

// Negative axes made positive; those out of range stay, for the shape function to refuse.
int64_t PositiveAxis(int64_t axis, int rank);
std::vector<int64_t> PositiveAxes(std::vector<int64_t> axes, int rank);

}  // namespace mu
