// The training loop: schedules epochs of a function over a dataset, packs steps, keeps the mean
// loss. See also evaluator.h. Both are for users' own programs as well as for the CLI.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

struct TrainOptions {
  // At most those of the dataset; visitation: none: as many steps as it has batches, each
  uint32_t epochs = 1;
  uint32_t steps_per_function = 0;  // 0: chosen so that the gap between functions costs under 1%
  uint64_t max_steps = 0;           // 0: no bound
  std::string loss = "loss";        // the function's returned scalar
  // A step starts only when all steps that are more than so many before it have been applied;
  // nullopt: what Coordinator::BoundStaleness was told.
  std::optional<uint64_t> bounded_staleness = std::nullopt;
  // A job that this one continues: what it did counts, and so does its place in the data.
  const RestoredJob* restored = nullptr;
  // > 0: schedules nothing more, finishes what runs. Where no worker is left, or a server is gone,
  // so that it cannot be finished, it is left (TrainResult::unfinished) after `patience`.
  const std::atomic<int>* stop = nullptr;
  absl::Duration patience = absl::Seconds(5);
};

struct TrainResult {
  uint64_t steps = 0;  // with records; also those of a job that was continued
  uint64_t samples = 0;
  uint64_t functions = 0;
  double seconds = 0;
  // Mean over the last epoch of which a result came, weighted by samples. Where a job was continued
  // in the middle of an epoch, results that came while the checkpoint was taken may be missing, or
  // count twice: at most those of the functions that were in flight.
  double last_epoch_loss = 0;
  uint32_t epochs_begun = 0;
  uint32_t steps_per_function = 0;  // of the last function before the end of the data was near
  bool stopped = false;
  // It was stopped and could not finish what ran: functions are scheduled and wait, and a
  // checkpoint holds them. Join would wait for them.
  bool unfinished = false;
};

// What the loop tells while it runs; on the thread of Train.
struct TrainEvent {
  uint32_t epoch = 1;  // the newest of which a result came
  uint64_t steps = 0;
  uint64_t total_steps = 0;  // of the whole job; exact within the last epoch, before it nearly so
  uint64_t samples = 0;
  double loss = 0;  // of the newest function
};

// The function must read the dataset, which must not end before the epochs asked for
// (INVALID_ARGUMENT). The user's state (Coordinator::SetUserState) is then the trainer's: it keeps
// the epoch's loss there, and takes it from options.restored. The first error of a function ends it
// (what runs is cancelled by then).
absl::StatusOr<TrainResult> Train(Coordinator& coordinator, const Function& function,
                                  const Dataset& dataset, const TrainOptions& options,
                                  const std::function<void(const TrainEvent&)>& on_event = nullptr);

}  // namespace mu
