// Where a job stands, as a manifest says it, to and from what the coordinator works with. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/core/server_task.h"
#include "proto/checkpoint.pb.h"

namespace mu {

// Fills in next_function, functions and leases. Only functions that train have a place in it; an
// assignment has none.
void AddQueuePosition(const FunctionQueue::Position& position, pb::JobPositionProto* proto);
// All but the data's positions.
void AddJobPosition(const JobPosition& job, pb::JobPositionProto* proto);

// INVALID_ARGUMENT for one that makes no sense. Functions of `proto` need what the catalog of
// version `needs_version` has.
absl::StatusOr<FunctionQueue::Position> QueuePositionOf(const pb::JobPositionProto& proto,
                                                        uint64_t needs_version);

// A job that goes on there, without its data.
absl::StatusOr<ResumePoint> ResumePointOf(const pb::JobPositionProto& proto,
                                          uint64_t needs_version);
// Steps of training that the job had scheduled: where the next one's place in it is.
uint64_t ScheduledSteps(const pb::CheckpointProto& manifest);
// For whoever takes only the values over.
ResumePoint ValuesOf(const pb::CheckpointProto& manifest);
// For a job that begins with some values of another one's checkpoint. `slots`: and with theirs, so
// its steps are counted on: Adam's moments are those of its step.
ResumePoint BeginningOf(const pb::CheckpointProto& manifest, bool slots);

}  // namespace mu
