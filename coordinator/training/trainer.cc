#include "coordinator/training/trainer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "coordinator/training/exit_code.h"
#include "coordinator/training/trainer_beside.h"

namespace mu {
namespace {

// Between two looks at who was lost, and what else there is to tell.
constexpr absl::Duration kClusterLook = absl::Seconds(1);
constexpr char kNotWrittenDown[] = "whether a checkpoint stays cannot be written down";

// What a Fit says of the run; nullopt: whoever starts the program again continues it.
std::optional<RunStatus> OutcomeOf(const absl::StatusOr<FitResult>& result) {
  if (result.ok()) {
    if (result->train.stopped) return std::nullopt;
    return RunStatus::kDone;
  }
  if (absl::IsCancelled(result.status())) return std::nullopt;
  const int code = ExitCodeOf(result.status());
  if (code == kExitBadJob || code == kExitFunctionFailed) return RunStatus::kFailed;
  return std::nullopt;
}

}  // namespace

Trainer::Trainer(Coordinator* coordinator, TrainerOptions options)
    : coordinator_(coordinator), options_(std::move(options)) {
  if (!options_.checkpoints.has_value()) return;
  CheckpointerOptions checkpoints = *options_.checkpoints;
  folder_ = AbsolutePath(checkpoints.directory).value_or(checkpoints.directory);
  run_ = RunOfCheckpointFolder(folder_);
  // Evaluations have steps, too.
  checkpoints.steps = [this] { return trained_steps_.load(); };
  if (options_.callbacks.on_checkpoint) {
    checkpoints.on_taken = [this, before = checkpoints.on_taken](const std::string& directory) {
      if (before) before(directory);
      options_.callbacks.on_checkpoint(directory);
    };
  }
  checkpoints.on_warning = [this, before = checkpoints.on_warning](const std::string& warning) {
    if (before) before(warning);
    MutexLock lock(&mutex_);
    checkpoint_warnings_.push_back(warning);
  };
  kept_ = std::make_unique<KeptCheckpoints>(folder_);
  checkpoints.before_pruning = [kept = kept_.get(), before = checkpoints.before_pruning](
                                   const pb::CheckpointProto& manifest) {
    const absl::Status marked = kept->Complete(TrainingHistory::Parse(manifest.user_state()));
    if (!marked.ok()) MU_LOG(WARN, "{}: {}", kNotWrittenDown, marked);
    if (before) before(manifest);
  };
  checkpointer_ = std::make_unique<Checkpointer>(coordinator_, std::move(checkpoints));
}

Trainer::~Trainer() {
  EndBeside();
  EndCheckpoints();
}

void Trainer::EndCheckpoints() {
  if (checkpointer_ == nullptr) return;
  checkpointer_.reset();  // first: then the run's last checkpoint is there
  if (!outcome_.has_value()) return;
  // No checkpoint holds the end: the program, started again, continues from an older one.
  if (*outcome_ == RunStatus::kDone && unsaved_) return;
  MarkRunAs(*outcome_);
}

void Trainer::MarkRunAs(RunStatus status) {
  if (!options_.marks_run || run_.empty()) return;
  // The run is that of a newer coordinator.
  if (coordinator_->runtime().IsSuperseded()) return;
  if (const absl::Status marked = MarkRun(run_, status); !marked.ok())
    MU_LOG(WARN, "whoever follows the run is not told whether it is over: {}", marked);
}

std::string Trainer::PathOf(const std::string& name) const {
  return name.empty() ? "" : JoinPath(folder_, name);
}

void Trainer::MarkBest(const std::string& candidate) {
  if (kept_ == nullptr) return;
  std::set<std::string> best = {candidate};
  if (history_.pending().has_value()) best.insert(history_.pending()->checkpoint);
  const bool restores = stopping_.has_value() && stopping_->options().restore_best;
  if (restores) best.insert(stopping_->state().best_checkpoint);
  if (best_.has_value()) {
    for (const BestCheckpoint& checkpoint : best_->best()) best.insert(checkpoint.directory);
  }
  WarnOfMarks(kept_->Need(std::move(best),
                          {.of_early_stopping = restores, .of_keep_best = best_.has_value()}));
}

void Trainer::WarnOfMarks(const absl::Status& marked) {
  if (!marked.ok()) Warn(absl::StrCat(kNotWrittenDown, ": ", marked.message()));
}

void Trainer::Warn(const std::string& text, bool is_logged) {
  if (!warned_.insert(text).second) return;
  const TrainerCallbacks& callbacks = options_.callbacks;
  if (is_logged && callbacks.on_logged_warning) {
    callbacks.on_logged_warning(text);
  } else if (callbacks.on_warning) {
    callbacks.on_warning(text);
  } else if (!is_logged) {
    MU_LOG(WARN, "{}", text);
  }
}

void Trainer::LookAtCluster(bool now) {
  if (!now && SteadyNow() - looked_ < kClusterLook) return;
  looked_ = SteadyNow();
  const RuntimeStats stats = coordinator_->Stats();
  const TrainerCallbacks& callbacks = options_.callbacks;
  failures_.Tell(stats.failures, callbacks.on_failure, callbacks.on_recovery);
  if (stats.steps_to_repeat != steps_to_repeat_) {
    steps_to_repeat_ = stats.steps_to_repeat;
    if (callbacks.on_repeating) callbacks.on_repeating(steps_to_repeat_);
  }
  for (const std::string& warning : stats.warnings) Warn(warning, /*is_logged=*/true);
  WarnOfCheckpoints();
}

void Trainer::WarnOfCheckpoints() {
  std::vector<std::string> warnings;
  {
    MutexLock lock(&mutex_);
    warnings.swap(checkpoint_warnings_);
  }
  for (const std::string& warning : warnings) Warn(warning, /*is_logged=*/true);
}

absl::Status Trainer::Prepare(const FitOptions& options) {
  MU_RETURN_IF_ERROR(CheckOptions(options));
  stop_ = options.stop;
  evaluates_beside_ = options.beside || options_.evaluate_checkpoint != nullptr;
  evaluates_current_ = options.values == EvaluatedValues::kCurrent;
  fails_on_error_ = options.fail_on_evaluation_error;
  // What is restored runs again at once.
  if (options.sync.has_value()) MU_RETURN_IF_ERROR(coordinator_->SynchronousRounds(*options.sync));
  rounds_ = coordinator_->runtime().rounds().on();
  MU_RETURN_IF_ERROR(RestoreIfFound(options));
  MU_RETURN_IF_ERROR(PrepareStopping(options));
  MU_RETURN_IF_ERROR(PrepareKeptBest(options));
  // The job has gone on from a checkpoint with this state, and would do so again.
  if (has_restored_ && kept_ != nullptr) WarnOfMarks(kept_->Complete(history_));
  MU_RETURN_IF_ERROR(GoOnBeside());
  // Whether anything is left to train depends on it: it may be an improvement.
  const bool stopped = stopping_.has_value() && stopping_->stopped();
  return stopped ? TakeBeside(/*wait=*/true).status() : absl::OkStatus();
}

void Trainer::Begin() {
  begun_ = has_begun_ = true;
  unsaved_ = false;
  MarkBest("");
  if (checkpointer_ != nullptr) MarkRunAs(RunStatus::kRunning);
}

absl::Status Trainer::RestoreIfFound(const FitOptions& options) {
  if (options.restored != nullptr && !has_begun_) {
    restored_ = *options.restored;
  } else if (has_begun_ || checkpointer_ == nullptr || coordinator_->begun()) {
    has_restored_ = false;  // what there is goes on
    return absl::OkStatus();
  } else {
    absl::StatusOr<RestoredJob> found = coordinator_->Restore();
    if (absl::IsNotFound(found.status())) return absl::OkStatus();
    MU_RETURN_IF_ERROR(found.status());
    restored_ = *std::move(found);
  }
  has_restored_ = true;
  trained_steps_ = restored_.manifest.position().steps();
  trained_since_ = false;
  history_ = TrainingHistory::Parse(restored_.user_state);
  measured_after_.reset();
  return absl::OkStatus();
}

absl::StatusOr<FitResult> Trainer::Fit(const FitOptions& options) {
  evaluation_failed_ = false;
  trained_ = TrainResult();
  trained_since_ = true;
  begun_ = false;
  patience_ = std::make_unique<StopPatience>(coordinator_, options.stop, TrainOptions().patience);
  const RoundRules rounds = coordinator_->runtime().rounds();
  const absl::Status prepared = Prepare(options);
  absl::StatusOr<FitResult> result = prepared.ok() ? FitPrepared(options) : prepared;
  // Nothing was restored or scheduled by the rules of what was refused.
  if (!begun_ && !has_restored_ && coordinator_->runtime().rounds() != rounds)
    coordinator_->SynchronousRounds(rounds).IgnoreError();
  if (prepared.ok() && evaluation_failed_) SaveAfterError();
  const std::optional<RunStatus> outcome = OutcomeOf(result);
  // Options that are refused say nothing of the run.
  if (begun_ || !outcome.has_value()) outcome_ = outcome;
  patience_.reset();
  LookAtCluster(/*now=*/true);  // one of them may be why it ends
  return result;
}

absl::StatusOr<FitResult> Trainer::FitPrepared(const FitOptions& options) {
  TrainOptions loop = {.epochs = options.epochs,
                       .steps_per_function = options.steps_per_function,
                       .max_steps = options.max_steps,
                       .loss = options.loss,
                       .bounded_staleness = options.bounded_staleness,
                       .sync = options.sync,
                       .restored = has_restored_ ? &restored_ : nullptr,
                       .stop = options.stop,
                       .eval_every = options.eval_every,
                       .on_epoch = options_.callbacks.on_epoch,
                       .history = &history_,
                       .on_look = [this] { LookAtCluster(); },
                       .max_gap = options.max_gap,
                       .on_begin = [this] { Begin(); },
                       .on_failure =
                           [this](const TrainResult& done) {
                             begun_ = true;  // of data that cannot be read, say
                             trained_ = done;
                           }};
  if (DependsOnEvaluation() && !loop.eval_every.any()) loop.eval_every.epochs = 1;
  if (loop.eval_every.any())
    loop.evaluate = [this](const EvaluationPoint& point) { return EvaluateAt(point); };
  absl::Status failed_beside;
  if (evaluates_beside_) {
    // Where an error of it ends training, what runs is to come to its end all the same.
    loop.go_on = [&] {
      const absl::StatusOr<bool> go_on = TakeBeside(/*wait=*/false);
      failed_beside.Update(go_on.status());
      return go_on.value_or(false);
    };
    loop.evaluates = [this] { return beside_ != nullptr; };
  }
  FitResult result;
  if (stopping_.has_value() && stopping_->stopped()) loop.epochs = 0;  // only the end is left
  // Forgotten with the first result. Where functions wait, training has gone on from them before.
  const pb::JobPositionProto& position = restored_.manifest.position();
  const uint64_t values = StepsOfValues(position.steps());
  bool goes_on_from_best =
      has_restored_ && position.functions().empty() && values < position.steps();
  absl::StatusOr<TrainResult> trained =
      mu::Train(*coordinator_, options_.step, options_.data, loop, [&](const TrainEvent& event) {
        trained_steps_ = event.steps;
        trained_since_ = true;
        if (goes_on_from_best) WarnThatItGoesOnFrom(values, position.steps());
        goes_on_from_best = false;
        if (options_.callbacks.on_step) options_.callbacks.on_step(event);
      });
  if (trained.ok()) {
    trained_ = *trained;
    // Where a stop was asked for, it ends without a result.
    MU_RETURN_IF_ERROR(TakeBeside(/*wait=*/true).status());
  } else {
    EndBeside();
    // What still ran has failed as well: the values lack steps, and are not to be saved.
    if (!failed_beside.ok()) evaluation_failed_ = false;
  }
  MU_ASSIGN_OR_RETURN(result.train, std::move(trained));
  // A stop has ended the wait for it: whoever goes on with the job evaluates it.
  if (loop.epochs == 0 && history_.pending().has_value() && AskedToStop(stop_))
    result.train.stopped = true;
  MU_RETURN_IF_ERROR(failed_beside);
  has_restored_ = false;  // the next Fit goes on from here
  LookAtCluster(/*now=*/true);
  if (options.list_variables && !result.train.stopped)
    result.variables = coordinator_->Variables().value_or(std::vector<ParameterInfo>());
  if (!result.train.stopped) MU_RETURN_IF_ERROR(Finish(&result));
  result.evaluations.assign(history_.evaluations().begin(), history_.evaluations().end());
  if (stopping_.has_value()) {
    result.early_stopping = stopping_->state();
    result.stopped_early = stopping_->stopped();
  }
  if (best_.has_value()) result.best = best_->best();
  if (options_.callbacks.on_stop && (result.train.stopped || result.stopped_early))
    options_.callbacks.on_stop(result.train.stopped ? StopReason::kAsked : StopReason::kEarly);
  return result;
}

// Training has come to its end.
absl::Status Trainer::Finish(FitResult* result) {
  const EvaluationPoint& end = result->train.end;
  const uint64_t steps = StepsOfValues(end.steps);
  // Where evaluations beside training have stopped it, it has gone on for some steps since: they
  // are not what was decided upon.
  const bool decided = stopping_.has_value() && stopping_->stopped();
  if (DependsOnEvaluation() && !decided && steps == end.steps && end.steps > 0 &&
      !MeasuredHere(end.steps).has_value()) {
    MU_RETURN_IF_ERROR(EvaluateAt(end).status());
    MU_RETURN_IF_ERROR(TakeBeside(/*wait=*/true).status());
    coordinator_->SetUserState(history_.ToString());
    if (!MeasuredHere(end.steps).has_value()) {  // a stop came before its end
      result->train.stopped = true;
      return absl::OkStatus();
    }
  }
  if (!evaluates_current_) result->last = MeasuredHere(steps);
  // A server that is lost makes steps run again while the current values are read.
  if (result->last.has_value() && !StillHolds(*result->last)) result->last.reset();
  MU_RETURN_IF_ERROR(RestoreBest(result));
  const bool asked_for = result->restored_best || result->train.stopped;
  if (steps != end.steps && !asked_for) WarnThatItEndsWith(steps, end.steps);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Trainer::Save(const std::function<bool()>& look) {
  if (checkpointer_ == nullptr)
    return absl::FailedPreconditionError("the trainer was given no TrainerOptions::checkpoints");
  MU_RETURN_IF_ERROR(checkpointer_->CheckIsNoCallback());
  absl::StatusOr<std::string> taken = checkpointer_->TakeWhole(look);
  unsaved_ = !taken.ok();
  WarnOfCheckpoints();  // that they succeed again, say
  return taken;
}

}  // namespace mu
