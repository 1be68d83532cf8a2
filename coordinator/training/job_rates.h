// The warm-up and the schedule of a job's learning rates, and what is done about late gradients.
// Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/core/rounds.h"
#include "coordinator/frontend/trace_graph.h"
#include "proto/job.pb.h"

namespace mu {

// Learning rates go by updates: a step is one, and so is a round.

// Updates of a job whose epochs have so many steps. Too few for rounds that end with each lease
// (RoundRules::one_lease): those are RoundsOfLeases.
uint64_t UpdatesOf(const muster::TrainingProto& training, uint64_t steps_of_epoch);

// The batches of each lease of an epoch, from 0.
using LeasesOfEpoch = std::function<absl::StatusOr<std::vector<uint32_t>>(uint64_t epoch)>;
// Rounds of a job whose rounds end with each lease (RoundRules::one_lease). Of more than 16 epochs
// the others count as the first ones. Errors are those of `leases_of_epoch`.
absl::StatusOr<uint64_t> RoundsOfLeases(const muster::TrainingProto& training,
                                        const LeasesOfEpoch& leases_of_epoch);

// Of a job that makes so many updates. INVALID_ARGUMENT for a warm-up that is no number, and for an
// unknown discount.
absl::StatusOr<MinimizeOptions> JobRates(const muster::TrainingProto& training, uint64_t updates);

// The job's synchronous rounds; not on(): another mode.
RoundRules RoundsOf(const muster::TrainingProto& training);

// How far a step of the job may be ahead; nullopt: any number of steps.
std::optional<uint64_t> BoundedStalenessOf(const muster::TrainingProto& training);

}  // namespace mu
