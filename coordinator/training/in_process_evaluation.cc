#include "coordinator/training/in_process_evaluation.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "coordinator/launch/stop_watcher.h"
#include "coordinator/training/skipped_records.h"

namespace mu {
namespace {

class OwnCluster {
 public:
  OwnCluster(ClusterOptions options, DefineEvaluation define)
      : options_(std::move(options)), define_(std::move(define)) {
    options_.workers = options_.ps = 1;
    options_.owns_job = false;
    options_.job_dir = "";
    options_.placement = PlaceByBytes{};
    options_.names_log = false;
    // Whoever is stopped or starved of processors here is so as a whole: none of it is lost.
    options_.member_timeout = absl::Hours(24);
  }

  absl::StatusOr<Evaluation> Evaluate(const std::string& checkpoint, const std::atomic<int>* stop,
                                      std::vector<std::string>* warnings) {
    absl::StatusOr<Evaluation> evaluated = EvaluateHere(checkpoint, stop, warnings);
    // What has failed does not spoil the next one.
    if (!evaluated.ok()) {
      spec_.reset();
      coordinator_.reset();
      skipped_ = SkippedRecords();
    }
    return evaluated;
  }

 private:
  absl::StatusOr<Evaluation> EvaluateHere(const std::string& checkpoint,
                                          const std::atomic<int>* stop,
                                          std::vector<std::string>* warnings) {
    if (coordinator_ == nullptr) {
      ClusterOptions options = options_;
      options.stop = stop;
      MU_ASSIGN_OR_RETURN(coordinator_, InProcess(std::move(options)));
    }
    {
      const StopWatcher watcher(&coordinator_->runtime(), stop);
      if (!spec_.has_value()) {
        coordinator_->UsePartitionCountsOf(checkpoint);
        coordinator_->UseInitializersOf(checkpoint);
        MU_ASSIGN_OR_RETURN(spec_, define_(*coordinator_));
      }
      MU_RETURN_IF_ERROR(coordinator_->Restore(checkpoint).status());
      MU_RETURN_IF_ERROR(coordinator_->StartEpoch(spec_->data, 0));  // looks through the files
    }
    TrainerOptions options;
    options.evaluation = spec_;
    options.callbacks.on_warning = [&](const std::string& text) { warnings->push_back(text); };
    MU_ASSIGN_OR_RETURN(Evaluation evaluation,
                        Trainer(coordinator_.get(), std::move(options)).Evaluate(stop));
    MU_ASSIGN_OR_RETURN(std::string skipped, skipped_.After(evaluation, coordinator_->Stats(),
                                                            spec_->data.proto().name()));
    if (!skipped.empty()) warnings->push_back(std::move(skipped));
    return evaluation;
  }

  ClusterOptions options_;
  const DefineEvaluation define_;
  std::unique_ptr<Coordinator> coordinator_;
  std::optional<EvaluationSpec> spec_;  // in it
  SkippedRecords skipped_;
};

}  // namespace

CheckpointEvaluator EvaluateInProcess(ClusterOptions options, DefineEvaluation define) {
  auto cluster = std::make_shared<OwnCluster>(std::move(options), std::move(define));
  return [cluster](const std::string& checkpoint, const std::atomic<int>* stop,
                   std::vector<std::string>* warnings) {
    return cluster->Evaluate(checkpoint, stop, warnings);
  };
}

}  // namespace mu
