// The training loop: schedules epochs of a function over a dataset, packs steps, keeps the mean
// loss of each epoch, and stands still for evaluations. `Train` is for programs with a loop of
// their own around it; see trainer.h for all of it together.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/training/evaluation_schedule.h"
#include "coordinator/training/training_history.h"

namespace mu {

// Where training stands still.
struct EvaluationPoint {
  uint64_t steps = 0;  // of the job, all of which have been applied
  uint32_t epoch = 1;  // of the last of them, from 1
  bool epoch_ends = false;
};

// What the loop tells of each step that had records, however many are packed into a function; on
// the thread of Train. The steps of a function come together and in their order, functions as they
// finish.
struct TrainEvent {
  uint32_t epoch = 1;  // the newest of which a result came
  // Of the job, of which this is the newest: those of earlier calls count as the data set has them.
  uint64_t steps = 0;
  uint64_t total_steps = 0;  // of the whole job; exact within the last epoch, before it nearly so
  uint64_t samples = 0;      // as TrainResult has them
  double loss = 0;           // of this step
  // With the last step of a function: the mean over its steps, weighted by records
  std::optional<double> function_loss = std::nullopt;
};

struct TrainResult;

struct TrainOptions {
  // Counted from the job's beginning, so the same call continues what was begun. At most those of
  // the dataset; visitation: none: as many steps as it has batches, each
  uint32_t epochs = 1;
  // 0: chosen, as few as keep what an empty call to a worker takes within `max_gap` of a function's
  // time; at most 1,000, and fewer where training is about to end or to stand still.
  uint32_t steps_per_function = 0;
  uint64_t max_steps = 0;     // of the job; 0: no bound
  std::string loss = "loss";  // the function's returned scalar
  // A step starts only when all steps that are more than so many before it have been applied;
  // nullopt: what Coordinator::BoundStaleness was told. INVALID_ARGUMENT in rounds.
  std::optional<uint64_t> bounded_staleness = std::nullopt;
  // Rounds of steps whose mean is applied once; nullopt: what Coordinator::SynchronousRounds was
  // told. Where a job is continued, that has to be told before Restore().
  std::optional<RoundRules> sync = std::nullopt;
  // A job that this one continues: what it did counts, and so does its place in the data. For the
  // first call after Restore() only: later ones go on with what that has trained.
  const RestoredJob* restored = nullptr;
  // > 0: schedules nothing more and finishes what runs; in rounds without backups it completes the
  // round that has begun first. Where no worker is left, or a server is gone, so that it cannot be
  // finished, it is left (TrainResult::unfinished) after `patience`.
  const std::atomic<int>* stop = nullptr;
  absl::Duration patience = absl::Seconds(5);
  // When `evaluate` is called. Nothing runs then, and all steps have been applied. In rounds
  // without backups what is due within a round is evaluated at its end. False: training is to end.
  EvalEvery eval_every = {};
  std::function<absl::StatusOr<bool>(const EvaluationPoint&)> evaluate = nullptr;
  // Asked before each function is scheduled; in rounds without backups before each round. False:
  // training is to end.
  std::function<absl::StatusOr<bool>()> go_on = nullptr;
  // Whether an evaluation is under way beside training. The next one by time is due when so much
  // has passed since its end.
  std::function<bool()> evaluates = nullptr;
  // All results of this epoch have come. Again where a job is continued (`restored`) near its end.
  // Not of an epoch that a call leaves unfinished (TrainResult::unfinished), unless it is
  // continued.
  std::function<void(const EpochLoss&)> on_epoch = nullptr;
  // Where the job's losses are kept, and from where it goes on; null: in the loop itself.
  TrainingHistory* history = nullptr;
  // Called several times a second while the loop waits for results, and with each of them.
  std::function<void()> on_look = nullptr;
  double max_gap = 0.01;  // above 0, at most 1, else INVALID_ARGUMENT; see steps_per_function
  // Once, when nothing of these options is refused, before anything is scheduled.
  std::function<void()> on_begin = nullptr;
  // Before an error is returned: what had been done, without `end`. Not where the options are
  // refused.
  std::function<void(const TrainResult&)> on_failure = nullptr;
};

struct TrainResult {
  uint64_t steps = 0;  // of this call, with records; also those of a job that was continued
  uint64_t samples = 0;
  uint64_t functions = 0;  // of which a result came
  double seconds = 0;      // without those of TrainOptions::evaluate
  // Mean over the last epoch of which a result came, weighted by samples. Where a job was continued
  // in the middle of an epoch, results that came while the checkpoint was taken may be missing, or
  // count twice: at most those of the functions that were in flight. Where a server had been lost
  // before, and its steps were still being repeated when that checkpoint was taken, the results of
  // all steps that were still to be repeated count twice: their functions are continued, and the
  // losses that the checkpoint lists have them already. `steps` and `samples` count each once.
  double last_epoch_loss = 0;
  std::vector<EpochLoss> epochs;  // the same for each, the newest 1,000; also of a continued job
  uint32_t epochs_begun = 0;
  // As last chosen before the end was near, or as fixed; functions at the end of an epoch or before
  // an evaluation may have fewer.
  uint32_t steps_per_function = 0;
  EvaluationPoint end;   // where it ended
  bool stopped = false;  // because of TrainOptions::stop
  bool ended = false;    // because `evaluate` or `go_on` said so
  // It was stopped and could not finish what ran: functions are scheduled and wait, and a
  // checkpoint holds them. Join would wait for them.
  bool unfinished = false;
};

// The function must read the dataset, which must not end before the epochs asked for, and return
// the loss (INVALID_ARGUMENT). FAILED_PRECONDITION if all of them have been trained already, in
// this program: there is nothing to do. The user's state (Coordinator::SetUserState) is then the
// loop's: it keeps the losses there, and takes them from options.restored. The first error of a
// function ends it, and so does a loss that is no float32 scalar (what runs is cancelled by then).
absl::StatusOr<TrainResult> Train(Coordinator& coordinator, const Function& function,
                                  const Dataset& dataset, const TrainOptions& options,
                                  const std::function<void(const TrainEvent&)>& on_event = nullptr);

}  // namespace mu
