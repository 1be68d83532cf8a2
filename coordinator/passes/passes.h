// Passes: from a graph as it is traced to one that workers run. Each takes a graph that verifies
// and gives one that does.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "coordinator/frontend/gradient_options.h"
#include "coordinator/frontend/trace_graph.h"
#include "proto/graph.pb.h"

namespace mu {

// Drops nodes that no return and no effect depends on.
pb::FunctionProto PruneDeadNodes(const pb::FunctionProto& function);

// Makes one of nodes without effect that compute the same: equal op, attributes and inputs.
pb::FunctionProto ShareCommonNodes(const pb::FunctionProto& function);

// One update of each kind per variable: several gradients and additions are added up, in their
// order; of several new values the last one counts.
pb::FunctionProto MergeUpdates(const pb::FunctionProto& function);

// Replaces embedding_lookup and embedding_gradient: all ids of a table, from all its lookups, go
// into one `unique`, whose distinct rows are pulled once and pushed once; rows are handed out and
// gradients gathered by position. What ids depend on comes first in the result. INVALID_ARGUMENT
// naming the lookup if its ids depend on values that the step pulls.
absl::StatusOr<pb::FunctionProto> LowerEmbeddings(const pb::FunctionProto& function);

// Of a function as it is traced, with its gradients, in which servers compute all `products`, by
// variable (id). Those that servers need not compute become reads of the variable where servers
// cannot compute them (with options, micro_batches, or another kind of update of the variable), and
// where a gradient goes through them and that does not pay. `losses` are renumbered.
// INVALID_ARGUMENT, with op and file:line, for a product that servers must compute and cannot.
absl::StatusOr<pb::FunctionProto> PlaceProducts(const pb::FunctionProto& function,
                                                const GradientOptions& options,
                                                const std::map<uint32_t, ProductChoice>& products,
                                                std::vector<pb::NodeInput>* losses);

// Of a function with micro_batches, as it is traced, with the gradients of `losses`: what it
// returns and adds to variables is accumulated over the slices of the batch, a mean over the
// records as a mean, a sum as a sum. INVALID_ARGUMENT, with op and file:line, for what is neither,
// and for a loss that is no mean.
absl::StatusOr<pb::FunctionProto> AccumulateResults(const pb::FunctionProto& function,
                                                    absl::Span<const pb::NodeInput> losses);

// Of a lowered function with micro_batches: so are the gradients that it pushes.
pb::FunctionProto AccumulateGradients(const pb::FunctionProto& function);

// Penalties, clipping and weight decay, on a lowered graph: of what is accumulated, where it is.
pb::FunctionProto AdjustGradients(const pb::FunctionProto& function,
                                  const GradientOptions& options);

// All of the above but PlaceProducts and AccumulateResults, in the right order.
absl::StatusOr<pb::FunctionProto> LowerFunction(const pb::FunctionProto& function,
                                                const GradientOptions& options = {});

}  // namespace mu
