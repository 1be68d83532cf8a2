#include "coordinator/training/job_rates.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/optimizer/schedule.h"

namespace mu {
namespace {

// The warm-up that a job gets without asking: so many steps, but at most this part of all.
constexpr uint64_t kWarmupSteps = 200;
constexpr uint64_t kWarmupPart = 10;
// Of a job's epochs: to find an epoch's leases takes a second for some ten million blocks of data.
constexpr uint32_t kMostCountedEpochs = 16;

absl::StatusOr<Staleness> JobStaleness(const muster::StalenessOptionsProto& options) {
  Staleness staleness;
  if (options.has_max()) staleness.max = options.max();
  const std::string& discount = options.discount();
  if (discount == "inverse") {
    staleness.discount = StalenessDiscount::kInverse;
  } else if (discount == "exponential") {
    staleness.discount = StalenessDiscount::kExponential;
  } else if (!discount.empty() && discount != "none") {
    return absl::InvalidArgumentError(absl::StrCat("training.staleness.discount is '", discount,
                                                   "'; use none, inverse or exponential"));
  }
  return staleness;
}

// Rounds of steps that no lease's end divides.
uint64_t RoundsOfSteps(const RoundRules& rounds, uint64_t steps) {
  return steps / rounds.replicas + (steps % rounds.replicas > 0 ? 1 : 0);
}

}  // namespace

uint64_t UpdatesOf(const muster::TrainingProto& training, uint64_t steps_of_epoch) {
  uint64_t steps = steps_of_epoch * std::max<uint32_t>(1, training.epochs());
  if (training.max_steps() > 0) steps = std::min<uint64_t>(steps, training.max_steps());
  const RoundRules rounds = RoundsOf(training);
  return rounds.on() ? RoundsOfSteps(rounds, steps) : steps;
}

absl::StatusOr<uint64_t> RoundsOfLeases(const muster::TrainingProto& training,
                                        const LeasesOfEpoch& leases_of_epoch) {
  const RoundRules rules = RoundsOf(training);
  uint64_t left =
      training.max_steps() > 0 ? training.max_steps() : std::numeric_limits<uint64_t>::max();
  uint64_t rounds = 0, counted = 0;  // steps
  const uint32_t epochs = std::max<uint32_t>(1, training.epochs());
  const uint32_t looked_at = std::min(epochs, kMostCountedEpochs);
  for (uint32_t epoch = 0; epoch < looked_at && left > 0; ++epoch) {
    MU_ASSIGN_OR_RETURN(const std::vector<uint32_t> leases, leases_of_epoch(epoch));
    for (const uint32_t batches : leases) {
      const uint64_t steps = std::min<uint64_t>(batches, left);
      rounds += RoundsOfSteps(rules, steps);
      counted += steps;
      left -= steps;
    }
  }
  if (counted == 0) return rounds;
  // The others are like these, and exactly so without shuffling.
  const absl::uint128 rest =
      std::min<absl::uint128>(left, absl::uint128(counted) * (epochs - looked_at) / looked_at);
  return rounds + absl::Uint128Low64((rest * rounds + counted - 1) / counted);
}

absl::StatusOr<MinimizeOptions> JobRates(const muster::TrainingProto& training, uint64_t updates) {
  MinimizeOptions options;
  const std::string& text = training.warmup_steps();
  if (text.empty() || text == "auto") {
    options.warmup_steps =
        static_cast<uint32_t>(std::min<uint64_t>(kWarmupSteps, updates / kWarmupPart));
  } else if (!absl::SimpleAtoi(text, &options.warmup_steps)) {
    return absl::InvalidArgumentError(
        absl::StrCat("training.warmup_steps is '", text, "'; use auto or a number"));
  }
  options.schedule =
      RateSchedule(CloseSchedule(training.schedule(), options.warmup_steps, updates));
  if (training.has_staleness()) {
    MU_ASSIGN_OR_RETURN(options.staleness, JobStaleness(training.staleness()));
  }
  return options;
}

RoundRules RoundsOf(const muster::TrainingProto& training) {
  if (training.mode() != "sync") return {};
  return {.replicas = training.sync().replicas(),
          .backups = training.sync().backup_workers(),
          .sum_rows = training.sync().rows() == "sum"};
}

std::optional<uint64_t> BoundedStalenessOf(const muster::TrainingProto& training) {
  if (training.mode() != "bounded_staleness") return std::nullopt;
  return training.bounded_staleness().steps();
}

}  // namespace mu
