// The warm-up and the schedule of a job's learning rates, and what is done about late gradients.
// Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "coordinator/core/rounds.h"
#include "coordinator/frontend/trace_graph.h"
#include "proto/job.pb.h"

namespace mu {

// Of a job whose epochs have so many steps. INVALID_ARGUMENT for a warm-up that is no number, and
// for an unknown discount.
absl::StatusOr<MinimizeOptions> JobRates(const muster::TrainingProto& training,
                                         uint64_t steps_of_epoch);

// The job's synchronous rounds; not on(): another mode.
RoundRules RoundsOf(const muster::TrainingProto& training);

// How far a step of the job may be ahead; nullopt: any number of steps.
std::optional<uint64_t> BoundedStalenessOf(const muster::TrainingProto& training);

}  // namespace mu
