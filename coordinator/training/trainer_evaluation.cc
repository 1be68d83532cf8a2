// Evaluations of a trainer: on the way, and when they are asked for.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/env/file.h"
#include "common/obs/telemetry.h"
#include "coordinator/training/join_with_looks.h"
#include "coordinator/training/skipped_records.h"
#include "coordinator/training/trainer.h"

namespace mu {

bool Trainer::WantsCheckpoint() const {
  return (evaluates_beside_ && !evaluates_current_) || best_.has_value() ||
         (stopping_.has_value() && stopping_->options().restore_best);
}

bool Trainer::GoesOnWaiting() {
  LookAtCluster();
  return patience_ == nullptr || !patience_->over();
}

// A checkpoint that cannot be taken ends neither training nor evaluation.
absl::StatusOr<std::string> Trainer::TakeCheckpoint() {
  if (checkpointer_ == nullptr) {
    MU_RETURN_IF_ERROR(JoinWithLooks(*coordinator_, [this] { return GoesOnWaiting(); }));
    return std::string();
  }
  const absl::StatusOr<std::string> taken =
      checkpointer_->TakeWhole([this] { return GoesOnWaiting(); });
  if (taken.ok()) {
    trained_since_ = false;
    return BaseName(*taken);
  }
  MU_RETURN_IF_ERROR(coordinator_->runtime().ended());
  if (AskedToStop(stop_) && absl::IsCancelled(taken.status())) return std::string();
  Warn(absl::StrCat("no checkpoint before an evaluation, so its values cannot be gone back to: ",
                    taken.status().message()));
  return std::string();
}

absl::StatusOr<bool> Trainer::EvaluateAt(const EvaluationPoint& point) {
  // At most one is under way beside training.
  MU_ASSIGN_OR_RETURN(const bool go_on, TakeBeside(/*wait=*/true));
  if (!go_on || AskedToStop(stop_)) return go_on;
  std::string checkpoint;
  if (WantsCheckpoint()) {
    // The checkpoint itself says that it is to be evaluated.
    if (evaluates_beside_) SetPending(PendingEvaluation{"", point.steps, point.epoch});
    MU_ASSIGN_OR_RETURN(checkpoint, TakeCheckpoint());
    MarkBest(checkpoint);
  }
  if (evaluates_beside_ && (evaluates_current_ || !checkpoint.empty())) {
    const absl::Status begun = BeginBeside(point, checkpoint);
    if (begun.ok()) return true;
    return Record(point, begun);
  }
  if (evaluates_beside_) SetPending(std::nullopt);
  return Record(point, EvaluateStill(std::move(checkpoint)));
}

absl::StatusOr<bool> Trainer::Record(const EvaluationPoint& point,
                                     absl::StatusOr<Evaluation> evaluated) {
  if (!evaluated.ok()) {
    MU_RETURN_IF_ERROR(coordinator_->runtime().ended());
    if (AskedToStop(stop_) && absl::IsCancelled(evaluated.status())) {
      MarkBest("");  // one beside training stays pending: the job may go on
      return true;
    }
    // Where it ends training, whoever goes on with the job evaluates the checkpoint again.
    const bool ends = EndsAtError();
    if (!ends) history_.SetPending(std::nullopt);
    MarkBest("");
    if (ends) return EndByEvaluation(point.steps, point.epoch, evaluated.status());
    Warn(absl::StrCat("an evaluation failed, training goes on: ", evaluated.status().message()));
    return true;
  }
  evaluated->steps = point.steps;
  evaluated->epoch = point.epoch;
  evaluated->measured_here = true;
  const auto value = [&](const std::string& metric) {
    const auto it = evaluated->metrics.find(metric);
    return it != evaluated->metrics.end() ? it->second : std::nan("");
  };
  // At the end of a job that is continued there, they may know these steps from an earlier process.
  if (best_.has_value()) {
    const auto known = [&](const BestCheckpoint& best) { return best.steps == point.steps; };
    if (!absl::c_any_of(best_->best(), known))
      best_->Offer({evaluated->checkpoint, value(best_->options().metric), point.steps});
    evaluated->best_so_far = !best_->best().empty() && best_->best()[0].steps == point.steps;
    history_.SetBest(*best_);
  }
  if (stopping_.has_value()) {
    const EarlyStoppingState& state = stopping_->state();
    if (point.steps == state.seen_steps) {
      evaluated->best_so_far = std::isfinite(state.best) && state.best_steps == point.steps;
    } else {
      evaluated->best_so_far = stopping_->Observe(value(stopping_->options().metric), point.steps,
                                                  evaluated->checkpoint);
    }
    history_.SetEarlyStopping(*stopping_);
  }
  history_.AddEvaluation(*evaluated);
  history_.SetPending(std::nullopt);
  MarkBest("");
  if (options_.callbacks.on_evaluation) options_.callbacks.on_evaluation(*evaluated);
  return !stopping_.has_value() || !stopping_->stopped();
}

absl::Status Trainer::EndByEvaluation(uint64_t steps, uint32_t epoch, const absl::Status& error) {
  evaluation_failed_ = true;
  return Annotate(
      error, absl::StrCat("the evaluation after ", steps, " steps, in epoch ", epoch, ", failed"));
}

void Trainer::SaveAfterError() {
  if (checkpointer_ == nullptr || !trained_since_) return;
  // Functions of the evaluation may still run. A stop waits for them, but not for lost machines.
  absl::Time until = absl::InfiniteFuture();
  const auto goes_on = [&] {
    if (AskedToStop(stop_)) until = std::min(until, SteadyNow() + TrainOptions().patience);
    return GoesOnWaiting() && SteadyNow() < until;
  };
  coordinator_->SetUserState(history_.ToString());
  const absl::Status saved = checkpointer_->TakeWhole(goes_on).status();
  if (!saved.ok())
    Warn(absl::StrCat("steps since the last checkpoint are not saved: ", saved.message()));
}

size_t Trainer::ServersLost() const {
  const RuntimeStats stats = coordinator_->Stats();
  return stats.unlisted_failures.servers +
         static_cast<size_t>(std::count_if(
             stats.failures.begin(), stats.failures.end(),
             [](const MemberFailure& failure) { return failure.role == pb::ROLE_PSSERVER; }));
}

bool Trainer::StillHolds(const Evaluation& last) const {
  // Servers go back to its checkpoint, and nothing has been trained since.
  return !last.checkpoint.empty() || measured_after_ == ServersLost();
}

// Of one state of the servers. Where one is lost meanwhile, training steps run again while the
// evaluation reads; then it begins anew, from a checkpoint, after which nothing has to be repeated.
absl::StatusOr<Evaluation> Trainer::EvaluateStill(std::string checkpoint) {
  while (true) {
    const size_t lost = ServersLost();
    SkippedRecords skipped(coordinator_->Stats().bad_records);
    MU_ASSIGN_OR_RETURN(Evaluation evaluation, Measure(/*cancel=*/false, stop_));
    MU_RETURN_IF_ERROR(
        skipped.After(evaluation, coordinator_->Stats(), options_.evaluation->data.proto().name())
            .status());
    evaluation.checkpoint = checkpoint;
    measured_after_ = lost;
    if (!checkpoint.empty() || ServersLost() == lost) return evaluation;
    MU_ASSIGN_OR_RETURN(checkpoint, TakeCheckpoint());
    if (checkpoint.empty() && checkpointer_ != nullptr)
      return evaluation;  // the disk, say, is full
  }
}

absl::StatusOr<Evaluation> Trainer::Measure(bool cancel, const std::atomic<int>* stop) {
  MU_ASSIGN_OR_RETURN(
      Measured measured,
      MeasureIn({.stop = stop, .cancel = cancel, .on_look = [this] { LookAtCluster(); }},
                options_.callbacks.on_evaluation_progress));
  for (const std::string& warning : measured.warnings) Warn(warning);
  return std::move(measured.evaluation);
}

absl::StatusOr<Trainer::Measured> Trainer::MeasureIn(const ForEachBatchOptions& options,
                                                     const OnEvalProgress& progress) const {
  ScopedSpan span(&Telemetry::Process(), "evaluate");
  if (!options_.evaluation.has_value())
    return absl::FailedPreconditionError("the trainer was given no TrainerOptions::evaluation");
  const EvaluationSpec& spec = *options_.evaluation;
  MU_ASSIGN_OR_RETURN(Measurement measurement, Measurement::Create(spec.outputs, spec.metrics));
  const absl::Time begin = SteadyNow();
  Measured measured;
  Evaluation& evaluation = measured.evaluation;
  ForEachBatchOptions batches = options;
  batches.returns = measurement.returns();
  MU_ASSIGN_OR_RETURN(
      evaluation.examples,
      ForEachBatch(
          *coordinator_, spec.function, spec.data, batches,
          [&](const EvaluatedBatch& batch) { return measurement.Add(batch); }, progress));
  evaluation.seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  for (const MetricValue& metric : measurement.Values()) {
    evaluation.metrics[metric.name] = metric.value;
    if (!metric.undefined.empty())
      measured.warnings.push_back(absl::StrCat(metric.name, " is not defined: ", metric.undefined));
    if (!metric.note.empty())
      measured.warnings.push_back(absl::StrCat(metric.name, " ", metric.note));
  }
  if (const auto names = measurement.WithoutWeights(); !names.empty())
    measured.warnings.push_back(absl::StrCat("weights do not enter ", absl::StrJoin(names, ", ")));
  return measured;
}

absl::StatusOr<Evaluation> Trainer::Evaluate(const std::atomic<int>* stop) {
  MU_ASSIGN_OR_RETURN(Evaluation evaluation, Measure(/*cancel=*/true, stop));
  if (options_.callbacks.on_evaluation) options_.callbacks.on_evaluation(evaluation);
  return evaluation;
}

absl::StatusOr<uint64_t> Trainer::Predict(const Function& function, const Dataset& data,
                                          ForEachBatchOptions options,
                                          const OnEvaluatedBatch& on_batch) {
  options.in_order = true;
  return ForEachBatch(*coordinator_, function, data, options, on_batch,
                      options_.callbacks.on_evaluation_progress);
}

}  // namespace mu
