// What a trainer refuses: options that make no sense, or do not go together.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "coordinator/training/train_check.h"
#include "coordinator/training/trainer.h"

namespace mu {
namespace {

absl::Status CheckStopping(const EarlyStoppingOptions& stopping) {
  if (stopping.patience == 0) {
    return absl::InvalidArgumentError(
        "FitOptions::early_stopping.patience must be at least 1; 1 ends training at the first "
        "evaluation that is no better");
  }
  if (stopping.min_delta >= 0 && std::isfinite(stopping.min_delta)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "FitOptions::early_stopping.min_delta is ", stopping.min_delta,
      ", and must not be negative; it is by how much a better value has to be better"));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> Trainer::Metrics() const {
  if (!options_.evaluation.has_value()) return std::vector<std::string>();
  MU_ASSIGN_OR_RETURN(
      const Measurement measurement,
      Measurement::Create(options_.evaluation->outputs, options_.evaluation->metrics));
  return measurement.Names();
}

absl::StatusOr<Better> Trainer::BetterOfComputed(const std::string& metric,
                                                 const char* option) const {
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> metrics, Metrics());
  if (std::find(metrics.begin(), metrics.end(), metric) != metrics.end()) return BetterOf(metric);
  return absl::InvalidArgumentError(
      absl::StrCat("FitOptions::", option, ".metric is `", metric, "`, which is not computed; ",
                   metrics.empty() ? "give the trainer an evaluation"
                                   : absl::StrCat("computed are ", absl::StrJoin(metrics, ", "))));
}

absl::Status Trainer::CheckValues(const FitOptions& options) const {
  if (options.values == EvaluatedValues::kCheckpoint) return absl::OkStatus();
  std::string why;
  if (options_.evaluate_checkpoint) {
    why = "TrainerOptions::evaluate_checkpoint evaluates checkpoints; give one of the two";
  } else if (!options.beside) {
    why =
        "FitOptions::beside is not set: training stands still, and its current values are "
        "evaluated anyway; set it, or leave out values";
  } else if (options.keep_best.has_value()) {
    why = "keep_best keeps the checkpoints that were evaluated; give one of the two";
  } else if (options.early_stopping.has_value() && options.early_stopping->restore_best) {
    why =
        "early_stopping.restore_best brings back the checkpoint that was evaluated; set it to "
        "false, or leave out values";
  }
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("FitOptions::values is kCurrent, but ", why));
}

absl::Status Trainer::CheckEvaluations(const FitOptions& options) const {
  MU_RETURN_IF_ERROR(CheckEvalEvery(options.eval_every, "FitOptions::eval_every"));
  if (!options_.evaluation.has_value() && options.eval_every.any()) {
    return absl::InvalidArgumentError(
        "FitOptions::eval_every needs TrainerOptions::evaluation, which says what is measured");
  }
  if (checkpointer_ == nullptr &&
      (options.keep_best.has_value() ||
       (options.early_stopping.has_value() && options.early_stopping->restore_best))) {
    return absl::InvalidArgumentError(
        "FitOptions::keep_best and early_stopping.restore_best need TrainerOptions::checkpoints");
  }
  MU_RETURN_IF_ERROR(CheckValues(options));
  const bool elsewhere = options_.evaluate_checkpoint != nullptr;
  const bool current = options.values == EvaluatedValues::kCurrent;
  if ((options.beside || elsewhere) && !current && checkpointer_ == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(elsewhere ? "TrainerOptions::evaluate_checkpoint" : "FitOptions::beside",
                     " needs TrainerOptions::checkpoints: what is evaluated while training "
                     "goes on is a checkpoint",
                     elsewhere ? "" : ", unless FitOptions::values is kCurrent"));
  }
  if (options.early_stopping.has_value()) {
    MU_RETURN_IF_ERROR(CheckStopping(*options.early_stopping));
    MU_RETURN_IF_ERROR(BetterOfComputed(options.early_stopping->metric, "early_stopping").status());
  }
  if (options.keep_best.has_value()) {
    if (options.keep_best->count == 0) {
      return absl::InvalidArgumentError(
          "FitOptions::keep_best.count must be at least 1; leave keep_best out to keep none");
    }
    MU_RETURN_IF_ERROR(BetterOfComputed(options.keep_best->metric, "keep_best").status());
  }
  const bool evaluates = options.eval_every.any() || options.early_stopping.has_value() ||
                         options.keep_best.has_value();
  if (!evaluates || elsewhere) return absl::OkStatus();
  return Annotate(
      coordinator_->CheckReads(options_.evaluation->function, options_.evaluation->data),
      "TrainerOptions::evaluation");
}

absl::Status Trainer::CheckOptions(const FitOptions& options) const {
  MU_RETURN_IF_ERROR(CheckEvaluations(options));
  const TrainOptions loop = {.epochs = options.epochs,
                             .steps_per_function = options.steps_per_function,
                             .loss = options.loss,
                             .bounded_staleness = options.bounded_staleness,
                             .sync = options.sync,
                             .max_gap = options.max_gap};
  return CheckTrainOptions(*coordinator_, options_.step, options_.data, loop);
}

}  // namespace mu
