// A job brought up: cluster, model, functions. Used by train, eval, predict and check. One thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/env/file_lock.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/frontend/model.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/launch/launch.h"
#include "coordinator/launch/stop_watcher.h"
#include "coordinator/training/checkpoint_evaluator.h"
#include "coordinator/training/job_data.h"
#include "coordinator/training/job_record.h"
#include "coordinator/training/progress_reporter.h"
#include "coordinator/training/telemetry_collector.h"
#include "coordinator/training/train_job.h"
#include "coordinator/training/training_history.h"

namespace mu {

struct Forward;
struct EvaluationSpec;
struct FitOptions;
struct FitResult;
struct TrainerCallbacks;
class Trainer;

// The cluster that a job and the flags of its run ask for. `trains`: as the job's one coordinator,
// which fences older ones.
ClusterOptions ClusterOptionsOf(const muster::JobProto& job, const RunOptions& options,
                                bool trains);

class JobSession {
 public:
  JobSession(const muster::JobProto& job, const ModelRegistry& models, const RunOptions& options);
  ~JobSession();

  // Before Start, for training: whether the job_dir holds a run of this job, which is then
  // continued, or done(). INVALID_ARGUMENT naming what differs if it is of another job, if it is a
  // program's, and naming its process if a coordinator is at work there that this one does not take
  // over from.
  absl::Status LookForEarlierRun();
  // The job_dir holds this job, trained to its end: there is nothing to do.
  bool done() const { return done_; }
  // Says so, and sends the daemons of a cluster home that may still wait for a coordinator.
  void TellDone(RunReport* report);
  // The job_dir is not for this job, and nobody tries again: the same for the daemons.
  void Refuse(const absl::Status& why);
  // Launches the cluster and creates the model's variables.
  absl::Status Start();
  // What the job_dir says of the run from now on.
  absl::Status Record(const std::string& status);
  // That a job that was begun here has failed, and nobody tries again. Of one that was not begun:
  // what an earlier one has left is true again.
  void RecordFailure();
  // It was to train again, and has not begun to: the run that is done in the job_dir is what
  // counts.
  bool EarlierStaysDone() const;
  bool HasBegun() const { return !record_.status.empty(); }

  absl::Status Train(RunReport* report);
  // The whole evaluation set, each record once.
  absl::Status Evaluate(RunReport* report);
  // The same of a checkpoint's values; of one after the other.
  absl::StatusOr<Evaluation> EvaluateCheckpoint(const std::string& directory, RunReport* report);
  absl::Status Predict(RunReport* report);
  absl::Status Save(RunReport* report);
  // `checkpoint` or, if it is empty, the newest one of the job's directory.
  absl::Status Restore(const std::string& checkpoint);
  // The directory; of this run if none is named.
  absl::StatusOr<std::string> CheckpointToRestore(const std::string& checkpoint) const;

  // What the report says of the cluster, and the trace; call last.
  // `over`: nobody continues the job, so the daemons of a cluster are sent home.
  absl::Status Finish(RunReport* report, bool over);

  // Another coordinator has taken the job_dir over.
  bool replaced() const { return lock_.lost(); }
  // Steps were trained that no checkpoint of the job's end holds.
  bool unsaved() const { return unsaved_; }
  Coordinator& coordinator() { return *coordinator_; }

 private:
  std::string CheckpointFolder() const { return options_.job_dir + "/checkpoints"; }
  RecoveryMode JobRecovery() const {
    return job_.recovery() == "shard" ? RecoveryMode::kShard : RecoveryMode::kAll;
  }
  // Whether the run begins with values of another model's checkpoint: not if it continues.
  bool BeginsWarm() const {
    return trains_ && !continues_ && record_.checkpoint.empty() && job_.has_warm_start();
  }
  absl::Status WarmStart();
  void Announce(const std::string& text);
  // A line about how it goes.
  void Tell(const std::string& line);
  // Announces what the report says too. `is_logged`: not in the log a second time.
  void Warn(RunReport* report, const std::string& text, bool is_logged = false);
  // INVALID_ARGUMENT: all records of `data`, such as "data.train", were left out, or there are
  // none.
  absl::Status NothingRead(const std::string& data) const;
  absl::StatusOr<Dataset> CreateDataset(DataPurpose purpose);
  absl::StatusOr<uint64_t> CountUpdates(const Dataset& dataset);
  absl::StatusOr<Function> DefineStep(const Dataset& dataset);
  absl::StatusOr<EvaluationSpec> DefineEvaluation();
  // Evaluates checkpoints in this process (evaluation.where).
  CheckpointEvaluator OwnEvaluator();
  absl::StatusOr<Evaluation> EvaluateSaved(RunReport* report);
  absl::Status CreateTrainer(const FitOptions& fit, RunReport* report);
  TrainerCallbacks CallbacksOf(RunReport* report);
  // That servers were lost, and steps run again.
  void TellOfServers(TrainerCallbacks* callbacks);
  // `*restored`: what it continues, if it does.
  absl::Status ContinueOrBegin(RunReport* report, std::optional<RestoredJob>* restored);
  // What was trained, also by a Fit that has failed. `samples_before`: by the run that this one
  // continues.
  void ReportTrained(uint64_t samples_before, RunReport* report) const;
  // The rest of one that has not.
  void ReportFit(const FitResult& result, RunReport* report);
  absl::Status TakeLock();
  void SendDaemonsHome();
  // Where something else lies.
  void AnnounceNewRun(const std::string& found);
  // Where there is no record.
  absl::Status LookAtOthersCheckpoints();
  // Of a record that says "done", and of others.
  absl::Status LookAtDone(const JobRecord& record);
  absl::Status LookAtUnfinished(const JobRecord& record);
  // From here on whoever follows the run waits for its checkpoints, though the earlier one, whose
  // record was `found`, is over. The lock must be held.
  absl::Status Reopen(std::optional<JobRecord> found);
  // The command of before: no other checkpoint to begin with is named.
  bool NamesNoOtherCheckpoint(const JobRecord& record) const {
    return options_.checkpoint.empty() || BeganWith(record, options_.checkpoint) ||
           BeganWith(record, options_.named_checkpoint);
  }
  // From here on a stop ends whatever waits, until PrepareToRead has found and counted the data.
  void WatchStart();
  absl::Status PrepareToRead(const Dataset& dataset);
  // The checkpoint that the job ends with. Once a stop is asked for it does not wait for ever.
  absl::StatusOr<std::string> TakeLast(RunReport* report);
  bool AllServersAreThere() const;
  // The newest checkpoint, if no step was finished since; else empty. While servers are missing:
  // else another one can be taken.
  std::string CheckpointOfAllSteps() const;
  absl::StatusOr<Function> DefinePrediction(const Dataset& dataset, Forward* outputs);

  const muster::JobProto& job_;
  const ModelRegistry& models_;
  const RunOptions& options_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<StopWatcher> starting_;  // until there is something to finish
  std::unique_ptr<TelemetryCollector> telemetry_;
  std::unique_ptr<ProgressReporter> progress_;
  CheckpointEvaluator evaluate_checkpoint_;  // null: on the workers
  std::unique_ptr<Trainer> trainer_;
  std::string progress_phase_;                 // that the trainer's callbacks have begun
  std::optional<Evaluation> last_evaluation_;  // of the values that were trained, if it was made
  std::unique_ptr<Model> model_;
  JobRecord record_;
  std::optional<JobRecord> earlier_;  // as it is to be again if this run cannot begin
  FileLock lock_;                     // of the job_dir, where it trains
  bool trains_ = false;
  bool continues_ = false;
  bool done_ = false;
  bool unsaved_ = false;
  bool left_unfinished_ = false;  // stopped without a worker, or without a server
  std::atomic<uint64_t> steps_{0};
  std::atomic<uint64_t> samples_{0};
};

}  // namespace mu
