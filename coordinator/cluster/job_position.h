// Where a job stands, as a manifest says it, to and from what the coordinator works with. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/core/function_queue.h"
#include "proto/checkpoint.pb.h"

namespace mu {

// Fills in next_function, functions and leases.
void AddQueuePosition(const FunctionQueue::Position& position, pb::JobPositionProto* proto);

// INVALID_ARGUMENT for one that makes no sense. Functions of `proto` need what the catalog of
// version `needs_version` has.
absl::StatusOr<FunctionQueue::Position> QueuePositionOf(const pb::JobPositionProto& proto,
                                                        uint64_t needs_version);

}  // namespace mu
