// Trains a model with all that belongs to it: evaluations on the way, early stopping, checkpoints,
// the best ones kept, and going on where an earlier process stopped. `coordinator train` is this
// class. Whoever wants a loop of their own has the same things one by one: train_loop.h,
// evaluator.h, early_stopping.h, best_checkpoints.h, checkpointer.h.
//
//   mu::Trainer trainer(&c, {.step = step,
//                            .data = train,
//                            .evaluation = mu::EvaluationSpec{.function = forward, .data = test},
//                            .checkpoints = {{.directory = job_dir + "/checkpoints"}}});
//   MU_ASSIGN_OR_RETURN(mu::FitResult result,
//                       trainer.Fit({.epochs = 20, .eval_every = {.epochs = 1},
//                                    .early_stopping = {{.metric = "logloss"}}}));
//
// Used by one thread; callbacks say on which they are called.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/training/checkpoint_evaluator.h"
#include "coordinator/training/checkpointer.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/failure_teller.h"
#include "coordinator/training/forward.h"
#include "coordinator/training/kept_checkpoints.h"
#include "coordinator/training/run_status.h"
#include "coordinator/training/stop_patience.h"
#include "coordinator/training/train_loop.h"

namespace mu {

// How a model is measured.
struct EvaluationSpec {
  Function function;  // returns what `outputs` names, and changes nothing
  Dataset data;
  // By default one task: "prediction" is the probability of "label".
  Forward outputs = ForwardOf(Task::kBinaryClassification);
  std::vector<std::string> metrics = {};  // empty: the defaults of each task
};

enum class StopReason { kAsked, kEarly };  // TrainOptions::stop; early stopping

// On the thread of Fit, but where it says otherwise.
struct TrainerCallbacks {
  std::function<void(const TrainEvent&)> on_step = nullptr;  // each step that had records
  // All results of an epoch have come. Again where a job is continued near its end, by a Fit that
  // restores it. Not of an epoch that a Fit leaves unfinished, unless such a Fit continues it.
  std::function<void(const EpochLoss&)> on_epoch = nullptr;
  std::function<void(const Evaluation&)> on_evaluation = nullptr;  // also of Evaluate
  OnEvalProgress on_evaluation_progress = nullptr;
  // On the thread that took it, which may be the checkpointer's; after
  // CheckpointerOptions::on_taken. It is part of taking the checkpoint: Save there is
  // FAILED_PRECONDITION.
  std::function<void(const std::string& directory)> on_checkpoint = nullptr;
  // A daemon was lost; each once, in the order in which they were, and also where Fit ends with an
  // error. Within a second or two, but not while a checkpoint is taken or restored or files are
  // looked through: then after it. Of more than 500 losses within that time some are left out.
  std::function<void(const MemberFailure&)> on_failure = nullptr;
  // Work goes on after such a failure (MemberFailure::recovered_seconds). Of a server,
  // steps_repeated says then how many steps run again. Each once, after on_failure.
  std::function<void(const MemberFailure&)> on_recovery = nullptr;
  // How many steps are still to run again since servers were lost, each time that this has changed
  // within a second. Meanwhile on_step hears nothing of them: their results have come before.
  std::function<void(uint64_t steps)> on_repeating = nullptr;
  std::function<void(StopReason)> on_stop = nullptr;
  // What deserves a look, each sentence once; within a second or two, as on_failure. Without it, it
  // is in the log.
  std::function<void(const std::string&)> on_warning = nullptr;
  // In its place for those that are in the log already: of Stats().warnings, and that checkpoints
  // fail (CheckpointerOptions::on_warning).
  std::function<void(const std::string&)> on_logged_warning = nullptr;
};

struct TrainerOptions {
  Function step = {};  // trains; not needed for Evaluate and Predict
  Dataset data = {};
  std::optional<EvaluationSpec> evaluation = std::nullopt;
  // With them a lost server is survived, and Fit continues what it finds there. `steps` is
  // the trainer's.
  std::optional<CheckpointerOptions> checkpoints = std::nullopt;
  // With it, evaluations on the way are beside training and not on the workers, such as
  // EvaluateInProcess (in_process_evaluation.h). Needs `checkpoints`, and `evaluation`, which says
  // what is measured. Where no checkpoint can be taken, the workers evaluate.
  CheckpointEvaluator evaluate_checkpoint = nullptr;
  TrainerCallbacks callbacks = {};
  // Whether RUN/run.json says if the run whose checkpoints are in RUN/checkpoints is over, for
  // those who follow it (follow.h). It is over when EndCheckpoints or the trainer's end comes after
  // a Fit that was not stopped: it failed for good, or came to its end and no Save has failed
  // since. A Fit whose options are refused does not count, for whatever reason: also where nothing
  // is left to train.
  bool marks_run = true;
};

// What an evaluation beside training reads.
enum class EvaluatedValues {
  kCheckpoint,  // one that is taken for it: values of one moment, whatever dies
  // The servers' values while training changes them, without a checkpoint and without memory of its
  // own. Its metrics are of no one moment: batches see what training has come to by then, from the
  // steps of Evaluation::steps on. One that is under way when the job stops begins anew when the
  // job goes on, with the values of then.
  kCurrent,
};

struct FitOptions {
  uint32_t epochs = 1;  // as TrainOptions has them: counted from the job's beginning
  uint32_t steps_per_function = 0;
  uint64_t max_steps = 0;
  std::string loss = "loss";
  std::optional<uint64_t> bounded_staleness = std::nullopt;
  std::optional<RoundRules> sync = std::nullopt;  // as TrainOptions has it
  const std::atomic<int>* stop = nullptr;
  // Needs TrainerOptions::evaluation. Early stopping and keep_best without it: every epoch.
  EvalEvery eval_every = {};
  // Evaluates while training goes on, at most one at a time: a point that comes while one is under
  // way waits for its end. Early stopping then ends training some steps later than the evaluation
  // that decides it. Needs TrainerOptions::checkpoints, unless `values` says otherwise.
  bool beside = false;
  // Of `beside`. kCurrent goes neither with keep_best and restore_best nor with
  // TrainerOptions::evaluate_checkpoint, all of which need a checkpoint.
  EvaluatedValues values = EvaluatedValues::kCheckpoint;
  // The error of an evaluation on the way ends Fit. Else it is a warning and training goes on,
  // unless early stopping or keep_best depend on the evaluation: then it ends Fit all the same.
  bool fail_on_evaluation_error = false;
  // Both need TrainerOptions::checkpoints (restore_best does); `better` is set by the metric. A job
  // may go on with others than before. Early stopping goes by the evaluations so far. If
  // restore_best is set and the best of them has no checkpoint that is still there, that is a
  // warning, and only those count that have one; if none has, only those to come. What keep_best
  // has kept and is not there any more is a warning, and does not count.
  std::optional<EarlyStoppingOptions> early_stopping = std::nullopt;
  std::optional<KeepBestOptions> keep_best = std::nullopt;
  // FitResult::variables, which is a question to each server.
  bool list_variables = false;
  // A job that the program has restored itself. Later calls take no notice of it: they go on with
  // what the first one has trained.
  const RestoredJob* restored = nullptr;
  double max_gap = 0.01;  // as TrainOptions has it
};

struct FitResult {
  TrainResult train;
  std::vector<Evaluation> evaluations;               // oldest first, the newest 1,000
  std::optional<EarlyStoppingState> early_stopping;  // folders' names are those of PathOf
  bool stopped_early = false;
  std::vector<BestCheckpoint> best;  // of keep_best, the best first
  // Of the values that the servers have now, if this trainer has evaluated them: not beside
  // training with EvaluatedValues::kCurrent, and not an earlier process of the job, whose
  // evaluation may have been of other data or by other metrics. Else call Evaluate. See
  // Trainer::StillHolds.
  std::optional<Evaluation> last;
  // These are those of the best evaluation, not of the last step. False with a warning where its
  // checkpoint is gone or damaged by then.
  bool restored_best = false;
  // When training has come to its end, before the best values were brought back; empty if it was
  // not asked for, was stopped, or servers did not answer.
  std::vector<ParameterInfo> variables;
};

class Trainer {
 public:
  // Begins to take checkpoints, if there is a folder for them. The coordinator must outlive this.
  Trainer(Coordinator* coordinator, TrainerOptions options);
  ~Trainer();  // ends checkpoints

  // Trains; evaluates whenever it is due, and once more at the end if early stopping or keep_best
  // want it (unless an evaluation beside training has stopped it). A job that is continued at its
  // end is evaluated there again, which counts once. Before each evaluation that may become the
  // best one a checkpoint is taken, so what is evaluated is what can be restored, also where a
  // server is lost meanwhile. An evaluation that fails, or finds no good record, is a warning, and
  // training goes on, unless fail_on_evaluation_error is set, or early stopping or keep_best depend
  // on it. Then Fit takes a checkpoint of what was trained and ends with the evaluation's error.
  // Whoever goes on with the job evaluates the same values again (of kCurrent, those of then),
  // unless training stood still for one by time. FAILED_PRECONDITION and INVALID_ARGUMENT as Train,
  // and for options that do not go together; FAILED_PRECONDITION also where the folder holds
  // checkpoints that the job would continue from and functions that only read, such as an
  // evaluation's, were scheduled before. One that changes variables or tables has begun the job:
  // Fit goes on from that and continues no checkpoint. Takes no checkpoint at the end: see Save.
  absl::StatusOr<FitResult> Fit(const FitOptions& options);
  // The whole evaluation set, each record once. CANCELLED if `stop` asks for it.
  absl::StatusOr<Evaluation> Evaluate(const std::atomic<int>* stop = nullptr);
  // ForEachBatch of the data's records in their order. Returns how many there were.
  absl::StatusOr<uint64_t> Predict(const Function& function, const Dataset& data,
                                   ForEachBatchOptions options, const OnEvaluatedBatch& on_batch);
  // A checkpoint that holds all of it; its folder. FAILED_PRECONDITION without checkpoints, and
  // from on_checkpoint. `look` as Checkpointer::TakeWhole has it.
  absl::StatusOr<std::string> Save(const std::function<bool()>& look = nullptr);

  // Whether FitResult::last is of the values that the servers have. No more where a server was lost
  // since, unless the evaluation has a checkpoint: then steps run again, which ends with others.
  // Ask after Save, which waits for such steps, and Evaluate again.
  bool StillHolds(const Evaluation& last) const;

  // Whether the last Fit ended with the error of an evaluation.
  bool evaluation_failed() const { return evaluation_failed_; }
  // Losses and evaluations of the whole job, also where Fit has failed.
  const TrainingHistory& history() const { return history_; }
  // What the last Fit has trained, also where it has failed: then without `end`, and with the steps
  // of which a result came.
  const TrainResult& trained() const { return trained_; }
  // What early stopping and keep_best know, also where Fit has failed. Nullopt: without them.
  const std::optional<EarlyStopping>& early_stopping() const { return stopping_; }
  const std::optional<BestCheckpoints>& kept_best() const { return best_; }
  const EvaluationSpec* evaluation() const {
    return options_.evaluation.has_value() ? &*options_.evaluation : nullptr;
  }
  // Null: without checkpoints, or after EndCheckpoints.
  Checkpointer* checkpointer() { return checkpointer_.get(); }
  // No more are taken. TrainerOptions::marks_run says when the run is over then.
  void EndCheckpoints();
  // Where a checkpoint of that name is.
  std::string PathOf(const std::string& name) const;
  // Metrics that an evaluation computes, such as "auc" or "income.auc".
  absl::StatusOr<std::vector<std::string>> Metrics() const;

 private:
  // What can be refused before anything is asked or restored (trainer_options.cc).
  absl::Status CheckOptions(const FitOptions& options) const;
  absl::Status CheckEvaluations(const FitOptions& options) const;
  absl::Status CheckValues(const FitOptions& options) const;
  absl::Status Prepare(const FitOptions& options);
  // Nothing of the options is refused.
  void Begin();
  absl::StatusOr<FitResult> FitPrepared(const FitOptions& options);
  absl::Status RestoreIfFound(const FitOptions& options);
  // What early stopping and keep_best know of the job so far, as far as its checkpoints are there
  // (trainer_best.cc).
  absl::Status PrepareStopping(const FitOptions& options);
  absl::Status PrepareKeptBest(const FitOptions& options);
  absl::StatusOr<Better> BetterOfComputed(const std::string& metric, const char* option) const;
  bool DependsOnEvaluation() const { return stopping_.has_value() || best_.has_value(); }
  // Whether the error of an evaluation ends training.
  bool EndsAtError() const { return fails_on_error_ || DependsOnEvaluation(); }
  // That error; says which evaluation it was.
  absl::Status EndByEvaluation(uint64_t steps, uint32_t epoch, const absl::Status& error);
  // A checkpoint of what was trained before the error of an evaluation ended it.
  void SaveAfterError();
  bool WantsCheckpoint() const;
  // False: training is to end.
  absl::StatusOr<bool> EvaluateAt(const EvaluationPoint& point);
  size_t ServersLost() const;
  absl::StatusOr<Evaluation> EvaluateStill(std::string checkpoint);
  absl::StatusOr<std::string> TakeCheckpoint();
  // While Fit waits for functions: false once a stop was asked for and nobody is left to run them.
  bool GoesOnWaiting();
  // What such an evaluation has brought. False: training is to end.
  absl::StatusOr<bool> Record(const EvaluationPoint& point, absl::StatusOr<Evaluation> evaluated);
  absl::StatusOr<Evaluation> Measure(bool cancel, const std::atomic<int>* stop);
  struct Measured {
    Evaluation evaluation;
    std::vector<std::string> warnings;
  };
  // On any thread.
  absl::StatusOr<Measured> MeasureIn(const ForEachBatchOptions& options,
                                     const OnEvalProgress& progress) const;
  // Evaluations beside training (trainer_beside.cc).
  class Beside;
  // `checkpoint`: its name; empty: the current values.
  absl::Status BeginBeside(const EvaluationPoint& point, const std::string& checkpoint);
  // Measures the checkpoint in that directory, which stays as long, on any thread. Empty: the
  // current values.
  absl::StatusOr<std::function<absl::StatusOr<Measured>(const std::atomic<int>* stop)>> MeasuringOf(
      const std::string& directory);
  void SetPending(std::optional<PendingEvaluation> pending);
  // The one that was under way when the job stopped.
  absl::Status GoOnBeside();
  // Whether an error says that what a former coordinator has begun cannot be evaluated any more.
  static bool MayGiveUp(const absl::Status& error);
  absl::Status GiveUpBeside(const absl::Status& why);  // OK, with a warning
  // Takes the result of the one under way, if there is one; `wait`: waits for it. False: training
  // is to end.
  absl::StatusOr<bool> TakeBeside(bool wait);
  void EndBeside();
  // For who follows the run.
  void MarkRunAs(RunStatus status);
  absl::Status Finish(FitResult* result);
  absl::Status RestoreBest(FitResult* result);
  // How many steps the servers' values have seen, where training has ended after so many: fewer if
  // the best ones were brought back.
  uint64_t StepsOfValues(uint64_t end_steps) const {
    return history_.brought_back().has_value() ? history_.brought_back()->steps : end_steps;
  }
  // The evaluation after so many steps, if this trainer has made it.
  std::optional<Evaluation> MeasuredHere(uint64_t steps) const;
  // The best values that an earlier process has brought back, so many steps behind the place in the
  // data: training goes on from them, or ends with them though nothing asks for it any more.
  void WarnThatItGoesOnFrom(uint64_t steps, uint64_t end_steps);
  void WarnThatItEndsWith(uint64_t steps, uint64_t end_steps);
  // Marks what is to stay, `candidate` as well, and takes the marks from what is not. What the
  // newest checkpoint names stays until a newer one does not.
  void MarkBest(const std::string& candidate);
  void WarnOfMarks(const absl::Status& marked);
  // Tells of failures and warnings that are new. At most once a second, unless `now`.
  void LookAtCluster(bool now = false);
  void WarnOfCheckpoints();  // which the checkpointer's thread has left
  void Warn(const std::string& text, bool is_logged = false);

  Coordinator* const coordinator_;
  const TrainerOptions options_;
  std::string folder_;  // of checkpoints, absolute; empty: none
  std::string run_;     // it is run_/checkpoints; empty: it has another name
  Mutex mutex_;
  std::vector<std::string> checkpoint_warnings_ ABSL_GUARDED_BY(mutex_);  // that were not told
  std::unique_ptr<KeptCheckpoints> kept_;  // null: there is no folder
  std::unique_ptr<Checkpointer> checkpointer_;
  TrainingHistory history_;
  TrainResult trained_;  // by the last Fit
  std::optional<EarlyStopping> stopping_;
  std::optional<BestCheckpoints> best_;
  const std::atomic<int>* stop_ = nullptr;  // of Fit
  std::unique_ptr<StopPatience> patience_;  // while Fit runs
  bool evaluates_beside_ = false;           // the same; or by evaluate_checkpoint
  bool evaluates_current_ = false;          // beside training, without a checkpoint
  bool fails_on_error_ = false;             // FitOptions::fail_on_evaluation_error
  bool evaluation_failed_ = false;          // its error ends Fit
  bool rounds_ = false;                     // whether Fit trains in rounds
  std::unique_ptr<Beside> beside_;          // under way
  // How many servers were lost before the last evaluation of the current values; nullopt: they are
  // not known to have those values.
  std::optional<size_t> measured_after_;
  bool taken_up_ = false;  // it is one of a former coordinator
  std::atomic<uint64_t> trained_steps_{0};
  bool trained_since_ = true;         // the last checkpoint that Fit has taken or restored
  std::optional<RunStatus> outcome_;  // of the last Fit; nullopt: the run may go on
  bool unsaved_ = false;              // the last Save after it has failed
  bool begun_ = false;                // the last Fit was not refused
  bool has_begun_ = false;            // a Fit was not
  RestoredJob restored_;              // that Fit has restored itself
  bool has_restored_ = false;
  std::set<std::string> warned_;
  FailureTeller failures_;
  uint64_t steps_to_repeat_ = 0;  // of which on_repeating knows
  absl::Time looked_ = absl::InfinitePast();
};

}  // namespace mu
