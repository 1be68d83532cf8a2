#include "coordinator/training/trainer_beside.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"

namespace mu {
namespace {

// Whether the user has asked to stop meanwhile.
constexpr absl::Duration kLook = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<Trainer::Measured> Trainer::Beside::Wait(const std::atomic<int>* stop) {
  while (!done_.WaitFor(kLook)) {
    if (stop != nullptr && stop->load() > 0) stop_ = 1;
  }
  return std::move(result_);
}

void Trainer::SetPending(std::optional<PendingEvaluation> pending) {
  history_.SetPending(std::move(pending));
  coordinator_->SetUserState(history_.ToString());
}

absl::Status Trainer::BeginBeside(const EvaluationPoint& point, const std::string& checkpoint) {
  MU_ASSIGN_OR_RETURN(FunctionGroup group,
                      coordinator_->CreateGroup({.checkpoint = PathOf(checkpoint)}));
  beside_ = std::make_unique<Beside>(this, point, checkpoint, std::move(group));
  // Checkpoints from now on tell whoever goes on with the job to evaluate this one.
  SetPending(PendingEvaluation{checkpoint, point.steps, point.epoch});
  return absl::OkStatus();
}

absl::Status Trainer::GoOnBeside() {
  if (!history_.pending().has_value()) return absl::OkStatus();
  PendingEvaluation pending = *history_.pending();
  // Without a name: of the very checkpoint that says so.
  if (pending.checkpoint.empty() && has_restored_)
    pending.checkpoint = BaseName(restored_.directory);
  absl::Status begun;
  if (!evaluates_beside_) {
    begun = absl::NotFoundError("evaluations are not beside training any more");
  } else if (pending.checkpoint.empty()) {
    begun = absl::NotFoundError("no checkpoint of it was taken");
  } else {
    begun = BeginBeside({.steps = pending.steps, .epoch = pending.epoch}, pending.checkpoint);
  }
  if (begun.ok()) return begun;
  history_.SetPending(std::nullopt);
  if (DependsOnEvaluation() && !absl::IsNotFound(begun)) return begun;
  Warn(absl::StrCat("the evaluation of ", pending.checkpoint,
                    ", which was under way when the job stopped, is given up: ", begun.message()));
  return absl::OkStatus();
}

absl::StatusOr<bool> Trainer::TakeBeside(bool wait) {
  if (beside_ == nullptr || !(wait || beside_->done())) return true;
  absl::StatusOr<Measured> measured = beside_->Wait(stop_);
  const EvaluationPoint point = beside_->point;
  beside_.reset();
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
