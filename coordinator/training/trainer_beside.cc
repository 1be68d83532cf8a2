#include "coordinator/training/trainer_beside.h"

#include <utility>

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

absl::Status Trainer::BeginBeside(const EvaluationPoint& point, const std::string& checkpoint) {
  MU_ASSIGN_OR_RETURN(FunctionGroup group,
                      coordinator_->CreateGroup({.checkpoint = PathOf(checkpoint)}));
  beside_ = std::make_unique<Beside>(this, point, checkpoint, std::move(group));
  return absl::OkStatus();
}

absl::StatusOr<bool> Trainer::TakeBeside(bool wait) {
  if (beside_ == nullptr || !(wait || beside_->done())) return true;
  absl::StatusOr<Measured> measured = beside_->Wait(stop_);
  const EvaluationPoint point = beside_->point;
  beside_.reset();
  if (!measured.ok()) return Record(point, measured.status());
  for (const std::string& warning : measured->warnings) Warn(warning);
  MU_ASSIGN_OR_RETURN(const bool go_on, Record(point, std::move(measured->evaluation)));
  coordinator_->SetUserState(history_.ToString());
  return go_on;
}

void Trainer::EndBeside() { beside_.reset(); }

}  // namespace mu
