// Reverse-mode differentiation, graph to graph.
#pragma once

#include "absl/status/status.h"
#include "coordinator/frontend/trace_graph.h"

namespace mu {

// Fulfils every Minimize of the graph: adds gradients from its loss to each trainable float32
// variable and embedding table that it depends on (those with an optimizer), and apply_gradient and
// embedding_gradient nodes. Only paths to those are differentiated; a gradient's nodes carry their
// forward op's file:line; a value that is used several times sums its gradients from the last use
// to the first, so results do not vary. INVALID_ARGUMENT, naming the place, if an op on a path has
// no gradient or the loss depends on nothing trainable.
absl::Status AddGradients(TraceGraph& graph);

}  // namespace mu
