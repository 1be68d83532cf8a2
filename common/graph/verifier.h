// Checks of graphs. What comes over the wire is distrusted: nothing else reads a graph that was not
// verified.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/op_def.h"
#include "proto/graph.pb.h"

namespace mu {

// kTraced: as the front end and autodiff make it. kLowered: as coordinator/passes leaves it and
// workers take it.
enum class GraphStage { kTraced, kLowered };

// Types and shapes of every node's outputs: specs[node][output].
using FunctionSpecs = std::vector<std::vector<TensorSpec>>;

// Checks every node against the op table (name, arity, attributes, types, shapes) and that its
// inputs are earlier nodes, so that there are no cycles, in one pass. INVALID_ARGUMENT otherwise,
// naming function, op, node and file:line, with an ErrorDetail of kind ERROR_USER.
absl::StatusOr<FunctionSpecs> InferSpecs(const muster::FunctionProto& function);

// InferSpecs, and: arguments and returns exist; all nodes agree on what a variable, table or column
// is; no op is of the other stage; lowered, a variable or table is updated once by each kind of
// update and pushed ids are unique's; what leaves a step with micro batches is accumulated
// (slice_rules.h).
absl::Status VerifyFunction(const muster::FunctionProto& function, GraphStage stage);

// `status` with "op at file:line: " before it and an ErrorDetail of kind ERROR_USER.
absl::Status NodeError(const muster::FunctionProto& function, int node, const absl::Status& status);

}  // namespace mu
