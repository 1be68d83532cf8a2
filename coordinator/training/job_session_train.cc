// Training of a job's session.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/obs/telemetry.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/core/job_position.h"
#include "coordinator/training/check_files.h"
#include "coordinator/training/job_gradients.h"
#include "coordinator/training/job_rates.h"
#include "coordinator/training/job_session.h"
#include "coordinator/training/loss_watch.h"
#include "coordinator/training/metric_text.h"
#include "coordinator/training/server_notes.h"
#include "coordinator/training/trainer.h"
#include "coordinator/training/warm_start_job.h"

namespace mu {
namespace {

std::vector<VariableReport> VariableReportsOf(const std::vector<ParameterInfo>& parameters) {
  std::vector<VariableReport> reports;
  for (const ParameterInfo& parameter : parameters) {
    VariableReport report = {parameter.name, parameter.is_table, parameter.Total(), {}};
    for (const PartitionInfo& partition : parameter.partitions)
      report.bytes_by_server[partition.server] += partition.load.bytes;
    reports.push_back(std::move(report));
  }
  return reports;
}

absl::StatusOr<FitOptions> FitOptionsOf(const pb::JobProto& job) {
  const pb::TrainingProto& training = job.training();
  FitOptions options;
  options.epochs = std::max<uint32_t>(1, training.epochs());
  options.max_steps = training.max_steps();
  options.bounded_staleness = BoundedStalenessOf(training);
  options.sync = RoundsOf(training);
  if (const std::string& steps = training.steps_per_function(); !steps.empty() && steps != "auto") {
    if (!absl::SimpleAtoi(steps, &options.steps_per_function) || options.steps_per_function == 0) {
      return absl::InvalidArgumentError(absl::StrCat("training.steps_per_function is '", steps,
                                                     "'; use auto or a number from 1"));
    }
  }
  if (training.has_max_gap()) options.max_gap = training.max_gap();
  options.eval_every = {.steps = training.eval_every().steps(),
                        .epochs = training.eval_every().epochs(),
                        .time = absl::Seconds(training.eval_every().seconds())};
  options.beside = job.evaluation().beside();
  if (job.evaluation().values() == "current") options.values = EvaluatedValues::kCurrent;
  options.fail_on_evaluation_error = job.evaluation().on_error() == "stop";
  if (job.has_early_stopping()) {
    const pb::EarlyStoppingProto& stopping = job.early_stopping();
    EarlyStoppingOptions& early = options.early_stopping.emplace();
    early.metric = stopping.metric();
    if (stopping.has_patience()) early.patience = stopping.patience();
    early.min_delta = stopping.min_delta();
    if (stopping.has_restore_best()) early.restore_best = stopping.restore_best();
  }
  if (job.checkpoint().has_keep_best()) {
    KeepBestOptions& best = options.keep_best.emplace();
    best.metric = job.checkpoint().keep_best().metric();
    if (job.checkpoint().keep_best().has_count()) best.count = job.checkpoint().keep_best().count();
  }
  return options;
}

absl::StatusOr<absl::Duration> CheckpointEvery(const pb::CheckpointOptionsProto& checkpoint) {
  absl::Duration every = absl::Minutes(5);
  if (checkpoint.every() == "never") return absl::InfiniteDuration();
  if (checkpoint.has_every() && !absl::ParseDuration(checkpoint.every(), &every)) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint.every is '", checkpoint.every(), "'; use 30s, 5m, 1h or never"));
  }
  return every;
}

std::string DescribeEarlyStopping(const EarlyStoppingReport& report) {
  const EarlyStoppingState& state = report.state;
  if (!std::isfinite(state.best) && state.seen_steps == 0)
    return absl::StrCat("early stopping: nothing has been evaluated, so ", report.metric,
                        " has no best value yet");
  if (!std::isfinite(state.best))
    return absl::StrCat("early stopping: ", report.metric, " was never defined");
  return absl::StrFormat("%s: %s was best, %s, after %d steps%s",
                         report.stopped ? "stopped early" : "early stopping did not stop",
                         report.metric, MetricText(state.best), state.best_steps,
                         report.restored_best ? "; these values are restored" : "");
}

// The error of an evaluation that has ended training, with why that is so.
absl::Status EndedByEvaluation(const absl::Status& error, const pb::JobProto& job) {
  std::string why = "checkpoint.keep_best needs each evaluation; the job can be continued";
  if (job.has_early_stopping()) {
    why = "early_stopping needs each evaluation; the job can be continued";
  } else if (job.evaluation().on_error() == "stop") {
    why =
        "evaluation.on_error is stop; the job can be continued, and with warn it goes on after "
        "such an error";
  }
  return Annotate(error, absl::StrCat("training has ended, since ", why));
}

}  // namespace

// Of the whole job. A run that goes on keeps the number that it began with: its function is the
// same.
absl::StatusOr<uint64_t> JobSession::CountUpdates(const Dataset& dataset) {
  const pb::TrainingProto& training = job_.training();
  // Looks through the files, which a stop ends as long as `starting_` lives.
  MU_ASSIGN_OR_RETURN(const uint64_t steps, coordinator_->BatchesInEpoch(dataset, 0));
  if (!RoundsOf(training).one_lease()) return UpdatesOf(training, steps);
  if (!continues_) {
    const auto leases_of_epoch = [&](uint64_t epoch) -> absl::StatusOr<std::vector<uint32_t>> {
      MU_RETURN_IF_ERROR(coordinator_->runtime().ended());
      return coordinator_->BatchesOfLeases(dataset, epoch);
    };
    MU_ASSIGN_OR_RETURN(record_.rounds, RoundsOfLeases(training, leases_of_epoch));
  }
  return record_.rounds > 0 ? record_.rounds : UpdatesOf(training, steps);
}

absl::StatusOr<Function> JobSession::DefineStep(const Dataset& dataset) {
  MU_ASSIGN_OR_RETURN(const uint64_t updates, CountUpdates(dataset));
  MU_ASSIGN_OR_RETURN(MinimizeOptions rates, JobRates(job_.training(), updates));
  const bool begins_warm = BeginsWarm() && job_.warm_start().slots();
  if (begins_warm || (!continues_ && !record_.checkpoint.empty())) {
    // The steps of the run that it begins with are counted, but its schedule is over.
    MU_ASSIGN_OR_RETURN(const std::string directory, begins_warm
                                                         ? WarmStartCheckpoint(job_)
                                                         : CheckpointToRestore(record_.checkpoint));
    MU_ASSIGN_OR_RETURN(const pb::CheckpointProto manifest, ReadManifest(directory));
    const uint64_t round = manifest.position().round();
    record_.first_step =
        RoundsOf(job_.training()).on() && round > 0 ? round - 1 : ScheduledSteps(manifest);
  }
  rates.first_step = record_.first_step;
  rates.gradients = GradientOptionsOf(job_.training());
  rates.micro_batches = MicroBatchesOf(job_.training());
  return coordinator_->DefineFunction("train_step", [&](FunctionBuilder& f) {
    f.Train();
    const ModelOutput output = model_->Build(f, f.NextBatch(dataset));
    f.Minimize(output.loss, rates);
    f.Return("loss", output.loss);
  });
}

absl::Status JobSession::CreateTrainer(const FitOptions& fit, RunReport* report) {
  TrainerOptions options;
  MU_ASSIGN_OR_RETURN(options.data, CreateDataset(DataPurpose::kTrain));
  // What is certain CheckJob has found. Nothing else would tell where nothing is evaluated.
  const pb::DatasetProto& data = options.data.proto();
  if (const NonePositive none = LookForPositives(data); !none.why.empty()) {
    Warn(report, absl::StrCat(data.name(), ": ", none.why,
                              "; if no others come further behind, the model learns nothing"));
  }
  MU_ASSIGN_OR_RETURN(options.step, DefineStep(options.data));
  if (job_.data().has_eval()) {
    MU_ASSIGN_OR_RETURN(options.evaluation, DefineEvaluation());
    // So that training does not stand still while the files are looked through.
    if (fit.eval_every.any() || fit.early_stopping.has_value() || fit.keep_best.has_value())
      MU_RETURN_IF_ERROR(coordinator_->BatchesInEpoch(options.evaluation->data, 0).status());
    if (job_.evaluation().where() == "coordinator") {
      evaluate_checkpoint_ = OwnEvaluator();
      options.evaluate_checkpoint = evaluate_checkpoint_;
    }
  }
  MU_ASSIGN_OR_RETURN(const absl::Duration every, CheckpointEvery(job_.checkpoint()));
  const pb::CheckpointOptionsProto& checkpoint = job_.checkpoint();
  options.checkpoints = {.directory = CheckpointFolder(),
                         .every = every,
                         .every_steps = checkpoint.every_steps(),
                         .keep = checkpoint.has_keep() ? static_cast<int>(checkpoint.keep()) : 3,
                         .requests = options_.checkpoint_requests,
                         .recovery = JobRecovery()};
  options.callbacks = CallbacksOf(report);
  TellOfServers(&options.callbacks);
  options.marks_run = false;  // the record says it
  trainer_ = std::make_unique<Trainer>(coordinator_.get(), std::move(options));
  return absl::OkStatus();
}

TrainerCallbacks JobSession::CallbacksOf(RunReport* report) {
  TrainerCallbacks callbacks;
  const uint32_t epochs = std::max<uint32_t>(1, job_.training().epochs());
  const bool entropy =
      model_->task() == Task::kBinaryClassification || model_->task() == Task::kMultiClass;
  callbacks.on_step = [this, report, epochs,
                       watch = std::make_shared<LossWatch>(entropy)](const TrainEvent& event) {
    if (std::exchange(progress_phase_, "training") != "training")
      progress_->Begin("training", event.total_steps, epochs);
    steps_ = event.steps;
    samples_ = event.samples;
    // Single steps are noise.
    if (!event.function_loss.has_value()) return;
    const double loss = *event.function_loss;
    progress_->Update(event.epoch, event.steps, event.total_steps, event.samples, loss);
    if (const std::string growth = watch->Observe(event.steps, loss); !growth.empty())
      Warn(report, growth);
  };
  callbacks.on_epoch = [this, epochs](const EpochLoss& epoch) {
    if (epochs > 1)
      Tell(absl::StrCat("epoch ", epoch.epoch, "/", epochs, ": loss ", MetricText(epoch.loss())));
  };
  callbacks.on_evaluation_progress = [this](uint64_t steps, uint64_t total) {
    if (std::exchange(progress_phase_, "evaluating") != "evaluating")
      progress_->Begin("evaluating", total);
    const uint64_t batch = job_.training().eval_batch_size();  // nearly: the last may be shorter
    progress_->Update(1, steps, total, steps * batch, 0);
  };
  callbacks.on_evaluation = [this](const Evaluation& evaluation) {
    progress_phase_.clear();
    if (evaluation.steps == 0) return;  // the last one is in the summary
    std::string line =
        absl::StrCat("evaluated after ", evaluation.steps, " steps, epoch ", evaluation.epoch, ":");
    for (const auto& [name, value] : evaluation.metrics)
      absl::StrAppend(&line, " ", name, " ", MetricText(value));
    Tell(absl::StrCat(line, evaluation.best_so_far ? ", the best so far" : ""));
  };
  callbacks.on_warning = [this, report](const std::string& text) { Warn(report, text); };
  callbacks.on_logged_warning = [this, report](const std::string& text) {
    Warn(report, text, /*is_logged=*/true);
  };
  return callbacks;
}

void JobSession::TellOfServers(TrainerCallbacks* callbacks) {
  // The log has all losses, and the report.
  const auto announce = [this](const std::string& note) {
    if (!note.empty() && options_.announce) options_.announce(note);
  };
  callbacks->on_failure = [announce](const MemberFailure& failure) {
    announce(NoteOfLoss(failure));
  };
  callbacks->on_recovery = [announce](const MemberFailure& failure) {
    announce(NoteOfRecovery(failure));
  };
  callbacks->on_repeating = [this](uint64_t steps) { progress_->Repeating(steps); };
}

absl::Status JobSession::ContinueOrBegin(RunReport* report, std::optional<RestoredJob>* restored) {
  if (continues_) {
    absl::StatusOr<RestoredJob> found =
        coordinator_->Restore(CoordinatorEpoch(record_.first_epoch));
    if (found.ok()) {
      *restored = *std::move(found);
      const pb::JobPositionProto& position = (*restored)->manifest.position();
      steps_ = position.steps();
      samples_ = position.samples();
      report->continued_from = (*restored)->directory;
      Announce(absl::StrCat(options_.job_dir,
                            " holds an unfinished run of this job: it CONTINUES from ",
                            (*restored)->directory, " after ", steps_.load(),
                            " steps; give another job_dir to begin anew"));
    } else if (absl::IsNotFound(found.status())) {
      Announce(
          absl::StrCat(options_.job_dir,
                       " holds an unfinished run of this job, but no checkpoint of it: it begins "
                       "anew"));
      continues_ = false;
    } else {
      return found.status();
    }
  }
  if (continues_) return absl::OkStatus();
  if (!record_.checkpoint.empty()) MU_RETURN_IF_ERROR(Restore(record_.checkpoint));
  if (BeginsWarm()) MU_RETURN_IF_ERROR(WarmStart());
  coordinator_->StartFresh();
  return absl::OkStatus();
}

absl::Status JobSession::Train(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "train");
  MU_ASSIGN_OR_RETURN(FitOptions fit, FitOptionsOf(job_));
  fit.stop = options_.stop;
  fit.list_variables = true;
  MU_RETURN_IF_ERROR(CreateTrainer(fit, report));
  std::optional<RestoredJob> restored;
  MU_RETURN_IF_ERROR(ContinueOrBegin(report, &restored));
  if (restored.has_value()) fit.restored = &*restored;
  starting_.reset();  // from here on a stop saves what there is
  MU_RETURN_IF_ERROR(coordinator_->runtime().ended());
  unsaved_ = true;
  if (!continues_) record_.first_epoch = coordinator_->runtime().options().epoch.value();
  MU_RETURN_IF_ERROR(Record("running"));
  // So that nothing depends on the other run's or model's checkpoint from here on.
  if (BeginsWarm() || (!continues_ && !record_.checkpoint.empty())) {
    const absl::Status saved = trainer_->checkpointer()->TakeNow().status();
    if (!saved.ok()) {
      Warn(report,
           absl::StrCat("no checkpoint of what the job begins with, so a lost server needs the "
                        "other ",
                        BeginsWarm() ? "model's" : "run's",
                        " until there is one: ", saved.message()));
    }
  }
  progress_->Begin("training", 0, fit.epochs);
  const absl::StatusOr<FitResult> result = trainer_->Fit(fit);
  if (result.ok()) {
    steps_ = result->train.steps;
    samples_ = result->train.samples;
  }
  ReportTrained(restored.has_value() ? restored->manifest.position().samples() : 0, report);
  report->ended_by_evaluation = trainer_->evaluation_failed();
  if (report->ended_by_evaluation) {
    report->checkpoint = CheckpointToRestore("").value_or("");
    return EndedByEvaluation(result.status(), job_);
  }
  MU_RETURN_IF_ERROR(result.status());
  // Else values that nothing was learned into would be saved, and the job would be done.
  if (report->samples == 0 && !result->train.stopped) return NothingRead("data.train");
  ReportFit(*result, report);
  return absl::OkStatus();
}

void JobSession::ReportTrained(uint64_t samples_before, RunReport* report) const {
  const TrainResult& trained = trainer_->trained();
  report->steps = steps_;
  report->samples = samples_;
  report->functions = trained.functions;
  report->steps_per_function = trained.steps_per_function;
  report->train_seconds = trained.seconds;
  // Of what this run did in its time; the report's samples may begin with another's.
  report->samples_per_second =
      static_cast<double>(report->samples - samples_before) / std::max(1e-9, trained.seconds);
  const TrainingHistory& history = trainer_->history();
  report->epochs.assign(history.epochs().begin(), history.epochs().end());
  report->evaluations.assign(history.evaluations().begin(), history.evaluations().end());
  for (Evaluation& evaluation : report->evaluations)
    evaluation.checkpoint = trainer_->PathOf(evaluation.checkpoint);
  if (const auto& stopping = trainer_->early_stopping(); stopping.has_value()) {
    report->early_stopping = {stopping->options().metric, stopping->state(), stopping->stopped(),
                              /*restored_best=*/false};
    std::string& best = report->early_stopping->state.best_checkpoint;
    best = trainer_->PathOf(best);
  }
  if (const auto& best = trainer_->kept_best(); best.has_value()) {
    report->best_checkpoints = best->best();
    for (BestCheckpoint& checkpoint : report->best_checkpoints)
      checkpoint.directory = trainer_->PathOf(checkpoint.directory);
  }
}

void JobSession::ReportFit(const FitResult& result, RunReport* report) {
  report->train_loss = result.train.last_epoch_loss;
  left_unfinished_ = result.train.unfinished;
  if (result.train.stopped) report->status = "stopped";
  report->variables = VariableReportsOf(result.variables);
  if (report->early_stopping.has_value()) {
    report->early_stopping->restored_best = result.restored_best;
    Tell(DescribeEarlyStopping(*report->early_stopping));
  }
  last_evaluation_ = result.last;
}

}  // namespace mu
