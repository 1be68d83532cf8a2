#include "coordinator/training/follow.h"

#include <optional>
#include <utility>

#include "common/base/status.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/launch/stop_watcher.h"
#include "coordinator/training/followed_run.h"
#include "coordinator/training/skipped_records.h"

namespace mu {
namespace {

absl::StatusOr<Evaluation> EvaluateCheckpoint(Coordinator* coordinator, const EvaluationSpec& spec,
                                              const std::string& checkpoint,
                                              const FollowOptions& options,
                                              SkippedRecords* skipped) {
  {
    const StopWatcher watcher(&coordinator->runtime(), options.stop);
    MU_RETURN_IF_ERROR(coordinator->Restore(checkpoint).status());
    MU_RETURN_IF_ERROR(coordinator->StartEpoch(spec.data, 0));  // looks through the files
  }
  TrainerOptions trainer;
  trainer.evaluation = spec;
  trainer.callbacks.on_evaluation_progress = options.on_evaluation_progress;
  trainer.callbacks.on_warning = options.on_warning;
  MU_ASSIGN_OR_RETURN(Evaluation evaluation,
                      Trainer(coordinator, std::move(trainer)).Evaluate(options.stop));
  MU_ASSIGN_OR_RETURN(const std::string warning,
                      skipped->After(evaluation, coordinator->Stats(), spec.data.proto().name()));
  if (!warning.empty() && options.on_warning) {
    options.on_warning(warning);
  } else if (!warning.empty()) {
    MU_LOG(WARN, "{}: {}", checkpoint, warning);
  }
  return evaluation;
}

}  // namespace

absl::StatusOr<std::vector<Evaluation>> Follow(Coordinator* coordinator, const std::string& run,
                                               const DefineEvaluation& define,
                                               const FollowOptions& options) {
  FollowedRun followed(run, options.on_warning);
  MU_RETURN_IF_ERROR(followed.Open().status());
  std::optional<EvaluationSpec> spec;
  SkippedRecords skipped(coordinator->Stats().bad_records);
  while (true) {
    MU_ASSIGN_OR_RETURN(const std::string checkpoint, followed.Next(options.stop));
    if (checkpoint.empty()) return followed.evaluations();
    absl::StatusOr<Evaluation> evaluated;
    if (const auto manifest = ReadManifest(checkpoint); manifest.ok()) {
      if (!spec.has_value()) {
        coordinator->UsePartitionCountsOf(checkpoint);
        coordinator->UseInitializersOf(checkpoint);
        MU_ASSIGN_OR_RETURN(spec, define(*coordinator));
      }
      evaluated = EvaluateCheckpoint(coordinator, *spec, checkpoint, options, &skipped);
    } else {
      evaluated = manifest.status();
    }
    MU_RETURN_IF_ERROR(followed.Add(checkpoint, std::move(evaluated)));
    if (options.on_evaluation) options.on_evaluation(followed.evaluations().back());
  }
}

absl::StatusOr<std::vector<Evaluation>> Follow(Coordinator* coordinator, const std::string& run,
                                               const EvaluationSpec& evaluation,
                                               const FollowOptions& options) {
  return Follow(
      coordinator, run,
      DefineEvaluation([&](Coordinator&) -> absl::StatusOr<EvaluationSpec> { return evaluation; }),
      options);
}

}  // namespace mu
