// The best evaluations of a trainer: what is known of them when Fit begins, and how their values
// come back at its end.
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/core/restore_fault.h"
#include "coordinator/training/join_with_looks.h"
#include "coordinator/training/metric_text.h"
#include "coordinator/training/trainer.h"
#include "coordinator/training/values_moment.h"

namespace mu {
namespace {

// The names of the complete checkpoints in that folder.
absl::StatusOr<std::set<std::string>> CheckpointsIn(const std::string& folder) {
  std::set<std::string> names;
  const absl::StatusOr<std::vector<std::string>> listed = ListCheckpoints(folder);
  if (absl::IsNotFound(listed.status())) return names;
  MU_RETURN_IF_ERROR(listed.status());
  for (const std::string& checkpoint : *listed) names.insert(BaseName(checkpoint));
  return names;
}

// `before` and the newest checkpoint in that folder whose values have seen so many steps; empty:
// there is none.
std::string NewestWith(const std::string& folder, uint64_t steps, const char* before) {
  if (folder.empty()) return "";
  std::vector<std::string> listed = ListCheckpoints(folder).value_or(std::vector<std::string>());
  for (; !listed.empty(); listed.pop_back()) {
    const absl::StatusOr<pb::CheckpointProto> manifest = ReadManifest(listed.back());
    if (manifest.ok() && manifest->position().functions().empty() &&
        MomentOfValues(*manifest).steps == steps)
      return absl::StrCat(before, listed.back());
  }
  return "";
}

std::string ValueAfter(double value, uint64_t steps) {
  return absl::StrCat(MetricText(value), " after ", steps, " steps");
}

}  // namespace

absl::Status Trainer::PrepareStopping(const FitOptions& options) {
  stopping_.reset();
  if (!options.early_stopping.has_value()) {
    history_.SetEarlyStopping(std::nullopt);
    return absl::OkStatus();
  }
  EarlyStoppingOptions stopping = *options.early_stopping;
  MU_ASSIGN_OR_RETURN(stopping.better, BetterOfComputed(stopping.metric, "early_stopping"));
  stopping_ = history_.EarlyStoppingWith(stopping);
  const EarlyStoppingState known = stopping_->state();
  if (!stopping.restore_best || !std::isfinite(known.best)) return absl::OkStatus();
  MU_ASSIGN_OR_RETURN(const std::set<std::string> there, CheckpointsIn(folder_));
  if (there.contains(known.best_checkpoint)) return absl::OkStatus();
  stopping_ = history_.EarlyStoppingOf(stopping, there);
  history_.SetEarlyStopping(stopping_);
  const EarlyStoppingState& state = stopping_->state();
  Warn(absl::StrCat(
      "the best values so far by ", stopping.metric, " (", ValueAfter(known.best, known.best_steps),
      ") cannot be brought back: ",
      known.best_checkpoint.empty() ? "no checkpoint was taken at that evaluation"
                                    : absl::StrCat(known.best_checkpoint, " is not there any more"),
      "; early stopping goes by ",
      std::isfinite(state.best)
          ? absl::StrCat("the evaluations whose checkpoints are there, the best of which is ",
                         ValueAfter(state.best, state.best_steps))
          : "the evaluations from now on"));
  return absl::OkStatus();
}

absl::Status Trainer::PrepareKeptBest(const FitOptions& options) {
  best_.reset();
  if (!options.keep_best.has_value()) return absl::OkStatus();
  KeepBestOptions best = *options.keep_best;
  MU_ASSIGN_OR_RETURN(best.better, BetterOfComputed(best.metric, "keep_best"));
  // Those of another metric are not asked for.
  if (!history_.BestWith(best).best().empty()) {
    MU_ASSIGN_OR_RETURN(const std::set<std::string> there, CheckpointsIn(folder_));
    for (const BestCheckpoint& gone : history_.ForgetBestBut(there)) {
      Warn(absl::StrCat(gone.directory, ", one of the best by ", best.metric, " (",
                        ValueAfter(gone.value, gone.steps),
                        "), is not there any more: keep_best goes on without it"));
    }
  }
  best_ = history_.BestWith(std::move(best));
  return absl::OkStatus();
}

absl::Status Trainer::RestoreBest(FitResult* result) {
  if (!stopping_.has_value() || !stopping_->options().restore_best) return absl::OkStatus();
  const EarlyStoppingState& best = stopping_->state();
  const uint64_t end_steps = result->train.end.steps;
  const uint64_t steps = StepsOfValues(end_steps);
  if (best.best_checkpoint.empty()) return absl::OkStatus();
  if (best.best_steps == steps) {
    result->restored_best = steps != end_steps;  // by an earlier process
    return absl::OkStatus();
  }
  // The load waits for steps that run again, and for servers.
  bool waits = true;
  MU_RETURN_IF_ERROR(JoinWithLooks(*coordinator_, [&] { return waits = GoesOnWaiting(); }));
  const absl::Status restored = waits ? coordinator_->Restore(PathOf(best.best_checkpoint)).status()
                                      : absl::CancelledError("stopped while steps ran again");
  if (absl::IsCancelled(restored) && AskedToStop(stop_) && coordinator_->runtime().ended().ok()) {
    // Whoever goes on with the job brings them back.
    result->train.stopped = true;
    return absl::OkStatus();
  }
  // Somebody has deleted or damaged it meanwhile: no other try would find it different.
  if (IsBadCheckpoint(restored) && coordinator_->runtime().ended().ok()) {
    Warn(absl::StrCat("the best values by ", stopping_->options().metric, " (",
                      ValueAfter(best.best, best.best_steps), ", ", best.best_checkpoint,
                      ") cannot be brought back, so those of ",
                      steps == end_steps ? "the last step" : absl::StrCat("step ", steps),
                      " stay: ", restored.message()));
    // Servers that had begun to load it go back to the last checkpoint, and steps since then run
    // again.
    if (result->last.has_value() && result->last->checkpoint.empty()) result->last.reset();
    return absl::OkStatus();
  }
  MU_RETURN_IF_ERROR(Annotate(restored, "the best checkpoint cannot be restored"));
  result->restored_best = true;
  result->last = MeasuredHere(best.best_steps);
  uint32_t epoch = 0;
  for (const Evaluation& evaluation : history_.evaluations()) {
    if (evaluation.steps == best.best_steps) epoch = evaluation.epoch;
  }
  history_.SetBroughtBack({best.best_steps, epoch});
  coordinator_->SetUserState(history_.ToString());
  return absl::OkStatus();
}

std::optional<Evaluation> Trainer::MeasuredHere(uint64_t steps) const {
  for (const Evaluation& evaluation : history_.evaluations()) {
    if (evaluation.steps == steps && evaluation.measured_here) return evaluation;
  }
  return std::nullopt;
}

void Trainer::WarnThatItGoesOnFrom(uint64_t steps, uint64_t end_steps) {
  Warn(
      absl::StrCat("training goes on from the values of step ", steps,
                   ", the best ones, which early stopping had brought back, and in the data behind "
                   "step ",
                   end_steps,
                   ": nothing of the steps between is in the values; to train without that gap, "
                   "begin anew in another folder",
                   NewestWith(folder_, end_steps, ", with the values of that step from ")));
}

void Trainer::WarnThatItEndsWith(uint64_t steps, uint64_t end_steps) {
  Warn(absl::StrCat("the values are those of step ", steps,
                    ", which early stopping had brought back, and not those of the last step, ",
                    end_steps, NewestWith(folder_, end_steps, "; the last ones are in ")));
}

}  // namespace mu
