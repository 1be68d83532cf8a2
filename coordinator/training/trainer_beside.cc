#include "coordinator/training/trainer_beside.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/env/file.h"
#include "coordinator/training/skipped_records.h"

namespace mu {
namespace {

// Whether the user has asked to stop meanwhile.
constexpr absl::Duration kLook = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<Trainer::Measured> Trainer::Beside::Wait(const std::atomic<int>* stop,
                                                        const std::function<void()>& look) {
  while (!done_.WaitFor(kLook)) {
    look();
    if (stop != nullptr && stop->load() > 0) stop_ = 1;
  }
  return std::move(result_);
}

void Trainer::SetPending(std::optional<PendingEvaluation> pending) {
  history_.SetPending(std::move(pending));
  coordinator_->SetUserState(history_.ToString());
}

absl::Status Trainer::BeginBeside(const EvaluationPoint& point, const std::string& checkpoint) {
  // Checkpoints from now on tell whoever goes on with the job to evaluate this one, or the values
  // that are the current ones then.
  SetPending(PendingEvaluation{checkpoint, point.steps, point.epoch, checkpoint.empty()});
  MU_ASSIGN_OR_RETURN(Beside::MeasureFunction measure, MeasuringOf(PathOf(checkpoint)));
  beside_ = std::make_unique<Beside>(point, checkpoint, std::move(measure));
  return absl::OkStatus();
}

absl::StatusOr<std::function<absl::StatusOr<Trainer::Measured>(const std::atomic<int>*)>>
Trainer::MeasuringOf(const std::string& directory) {
  if (options_.evaluate_checkpoint) {
    MU_ASSIGN_OR_RETURN(auto held, coordinator_->HoldCheckpoint(directory));
    return [this, directory,
            held = std::move(held)](const std::atomic<int>* stop) -> absl::StatusOr<Measured> {
      Measured measured;
      MU_ASSIGN_OR_RETURN(measured.evaluation,
                          options_.evaluate_checkpoint(directory, stop, &measured.warnings));
      return measured;
    };
  }
  MU_ASSIGN_OR_RETURN(FunctionGroup group, coordinator_->CreateGroup({.checkpoint = directory}));
  return
      [this, group = std::move(group)](const std::atomic<int>* stop) -> absl::StatusOr<Measured> {
        // A round waits for the function that a contributor is at.
        const uint32_t steps = rounds_ ? 1 : ForEachBatchOptions().steps_per_function;
        MU_ASSIGN_OR_RETURN(
            Measured measured,
            MeasureIn({.steps_per_function = steps, .group = group, .stop = stop}, nullptr));
        // Those that were left out cannot be told from training's.
        if (measured.evaluation.examples == 0)
          return NoGoodRecord(options_.evaluation->data.proto().name());
        return measured;
      };
}

absl::Status Trainer::GoOnBeside() {
  if (!history_.pending().has_value()) return absl::OkStatus();
  PendingEvaluation pending = *history_.pending();
  if (pending.checkpoint.empty() && !pending.current) {
    // Of the very checkpoint that says so, unless that is of a moment before: then it is due again.
    if (!has_restored_ || !restored_.manifest.position().functions().empty()) {
      history_.SetPending(std::nullopt);
      return absl::OkStatus();
    }
    pending.checkpoint = BaseName(restored_.directory);
    history_.SetPending(pending);
  }
  absl::Status begun = absl::NotFoundError(
      "the job does not evaluate beside training, or not such values, any more");
  if (evaluates_beside_ && (pending.current ? evaluates_current_ : kept_ != nullptr))
    begun = BeginBeside({.steps = pending.steps, .epoch = pending.epoch}, pending.checkpoint);
  taken_up_ = begun.ok();
  if (begun.ok()) return begun;
  MU_RETURN_IF_ERROR(coordinator_->runtime().ended());
  // It stays pending: the job may go on.
  if (absl::IsCancelled(begun) && AskedToStop(stop_)) return absl::OkStatus();
  if (!EndsAtError() || MayGiveUp(begun)) return GiveUpBeside(begun);
  return EndByEvaluation(pending.steps, pending.epoch, begun);
}

bool Trainer::MayGiveUp(const absl::Status& error) {
  // What is to be evaluated on is at fault, not the checkpoint.
  if (InputFaultOf(error).kind() != pb::InputFault::NONE) return false;
  return absl::IsNotFound(error) || absl::IsDataLoss(error) || absl::IsResourceExhausted(error);
}

absl::Status Trainer::GiveUpBeside(const absl::Status& why) {
  const PendingEvaluation pending = *history_.pending();
  SetPending(std::nullopt);
  MarkBest("");
  Warn(absl::StrCat("the evaluation of ",
                    pending.current ? absl::StrCat("current values from ", pending.steps, " steps")
                                    : pending.checkpoint,
                    ", which was under way when the job stopped, is given up: ", why.message()));
  return absl::OkStatus();
}

absl::StatusOr<bool> Trainer::TakeBeside(bool wait) {
  if (beside_ == nullptr || !(wait || beside_->done())) return true;
  absl::StatusOr<Measured> measured = beside_->Wait(stop_, [this] { LookAtCluster(); });
  const EvaluationPoint point = beside_->point;
  beside_.reset();
  // The checkpoint that the job goes on from asks for it, and would do so at each start.
  if (std::exchange(taken_up_, false) && MayGiveUp(measured.status())) {
    MU_RETURN_IF_ERROR(GiveUpBeside(measured.status()));
    return true;
  }
  absl::StatusOr<bool> go_on = true;
  if (measured.ok()) {
    for (const std::string& warning : measured->warnings) Warn(warning);
    go_on = Record(point, std::move(measured->evaluation));
  } else {
    go_on = Record(point, measured.status());
  }
  coordinator_->SetUserState(history_.ToString());
  return go_on;
}

void Trainer::EndBeside() { beside_.reset(); }

}  // namespace mu
