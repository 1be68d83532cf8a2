// Evaluation and prediction of a job's session.
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/obs/log.h"
#include "common/obs/telemetry.h"
#include "coordinator/training/check_files.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/forward.h"
#include "coordinator/training/in_process_evaluation.h"
#include "coordinator/training/job_rates.h"
#include "coordinator/training/job_session.h"
#include "coordinator/training/parameter_rules.h"
#include "coordinator/training/prediction_file.h"
#include "coordinator/training/trainer.h"
#include "coordinator/training/worse_end.h"

namespace mu {

void JobSession::WatchStart() {
  if (starting_ == nullptr)
    starting_ = std::make_unique<StopWatcher>(&coordinator_->runtime(), options_.stop);
}

namespace {

absl::StatusOr<EvaluationSpec> DefineEvaluationOf(const pb::JobProto& job, Model& model,
                                                  Coordinator& coordinator) {
  EvaluationSpec spec;
  MU_ASSIGN_OR_RETURN(pb::DatasetProto dataset, DatasetOf(job, DataPurpose::kEval));
  BoundIds(model, &dataset);
  MU_ASSIGN_OR_RETURN(spec.data, coordinator.CreateDataset(std::move(dataset)));
  absl::StatusOr<Forward> outputs = Forward();
  MU_ASSIGN_OR_RETURN(
      spec.function, coordinator.DefineFunction("eval_step", [&](FunctionBuilder& f) {
        const BatchRef batch = f.NextBatch(spec.data);
        outputs = ReturnForEvaluation(f, batch, model.Build(f, batch), job.evaluation());
      }));
  MU_ASSIGN_OR_RETURN(spec.outputs, std::move(outputs));
  spec.metrics.assign(job.evaluation().metrics().begin(), job.evaluation().metrics().end());
  return spec;
}

// What is to be said of a job that ends with values of which `last` was measured: nothing if it
// keeps, or has brought back, the best ones.
std::string WorseEndOf(const pb::JobProto& job, const Trainer& trainer, const RunReport& report,
                       Evaluation last) {
  const bool stops = job.has_early_stopping();
  // Early stopping brings the best back by default.
  const bool restores =
      stops && (!job.early_stopping().has_restore_best() || job.early_stopping().restore_best());
  if (restores || job.checkpoint().has_keep_best()) return "";
  // They are not those of the last step, as a warning says already.
  if (trainer.history().brought_back().has_value()) return "";
  const absl::StatusOr<std::vector<std::string>> metrics = trainer.Metrics();
  if (!metrics.ok() || metrics->empty()) return "";
  last.steps = report.steps;
  last.epoch = report.epochs.empty() ? 0 : report.epochs.back().epoch;
  return DescribeWorseEnd(stops ? job.early_stopping().metric() : metrics->front(),
                          report.evaluations, last, job.evaluation().values() == "current");
}

}  // namespace

absl::Status JobSession::PrepareToRead(const Dataset& dataset) {
  MU_RETURN_IF_ERROR(coordinator_->StartEpoch(dataset, 0));
  starting_.reset();  // what reads looks itself
  return absl::OkStatus();
}

absl::StatusOr<Function> JobSession::DefinePrediction(const Dataset& dataset, Forward* outputs) {
  absl::StatusOr<Forward> returned = Forward();
  MU_ASSIGN_OR_RETURN(
      Function function, coordinator_->DefineFunction("predict_step", [&](FunctionBuilder& f) {
        const BatchRef batch = f.NextBatch(dataset);
        returned = ReturnPredictions(f, batch, model_->Build(f, batch), options_.predict_columns);
      }));
  MU_ASSIGN_OR_RETURN(*outputs, std::move(returned));
  return function;
}

absl::StatusOr<EvaluationSpec> JobSession::DefineEvaluation() {
  return DefineEvaluationOf(job_, *model_, *coordinator_);
}

CheckpointEvaluator JobSession::OwnEvaluator() {
  const ClusterOptions job = ClusterOptionsOf(job_, options_, /*trains=*/false);
  ClusterOptions own;
  own.name = job.name;
  own.seed = job.seed;
  own.job_fingerprint = job.job_fingerprint;
  own.default_optimizer = job.default_optimizer;
  own.functions_in_flight = job.functions_in_flight;
  own.cache_dir = options_.job_dir + "/evaluation_cache";
  const auto model = std::make_shared<std::unique_ptr<Model>>();
  return EvaluateInProcess(
      std::move(own), [this, model](Coordinator& coordinator) -> absl::StatusOr<EvaluationSpec> {
        MU_ASSIGN_OR_RETURN(*model, models_.Create(job_.model()));
        RuledFactory factory(job_, &coordinator);
        MU_RETURN_IF_ERROR((*model)->Create(factory));
        MU_RETURN_IF_ERROR(factory.Check());
        return DefineEvaluationOf(job_, **model, coordinator);
      });
}

absl::StatusOr<Evaluation> JobSession::EvaluateSaved(RunReport* report) {
  starting_.reset();  // it looks itself whether it is to stop
  std::vector<std::string> warnings;
  absl::StatusOr<Evaluation> evaluation =
      evaluate_checkpoint_(report->checkpoint, options_.stop, &warnings);
  for (const std::string& warning : warnings) Warn(report, warning);
  if (evaluation.ok() || absl::IsCancelled(evaluation.status())) return evaluation;
  // A machine's fault is none of the job's, whatever its code.
  if (absl::IsInvalidArgument(evaluation.status()) &&
      KindOf(evaluation.status()) != pb::ERROR_MACHINE)
    return evaluation;
  Warn(report, absl::StrCat("the coordinator's process cannot evaluate, so the workers do: ",
                            evaluation.status().message()));
  WatchStart();
  MU_RETURN_IF_ERROR(PrepareToRead(trainer_->evaluation()->data));
  return trainer_->Evaluate(options_.stop);
}

absl::Status JobSession::Evaluate(RunReport* report) {
  if (!last_evaluation_.has_value()) {
    WatchStart();
    if (trainer_ == nullptr) {
      MU_ASSIGN_OR_RETURN(EvaluationSpec spec, DefineEvaluation());
      trainer_ = std::make_unique<Trainer>(
          coordinator_.get(),
          TrainerOptions{.evaluation = std::move(spec), .callbacks = CallbacksOf(report)});
    }
    progress_->Begin("evaluating", 0);
    progress_phase_ = "evaluating";
    if (evaluate_checkpoint_ && !report->checkpoint.empty()) {
      MU_ASSIGN_OR_RETURN(last_evaluation_, EvaluateSaved(report));
    } else {
      MU_RETURN_IF_ERROR(PrepareToRead(trainer_->evaluation()->data));
      MU_ASSIGN_OR_RETURN(last_evaluation_, trainer_->Evaluate(options_.stop));
    }
  }
  report->eval_examples = last_evaluation_->examples;
  report->eval_metrics = last_evaluation_->metrics;
  if (report->eval_examples == 0) return NothingRead(trainer_->evaluation()->data.proto().name());
  if (trains_) {
    if (const std::string worse = WorseEndOf(job_, *trainer_, *report, *last_evaluation_);
        !worse.empty())
      Warn(report, worse);
  }
  const bool undefined = absl::c_any_of(
      report->eval_metrics, [](const auto& metric) { return std::isnan(metric.second); });
  if (!undefined) return absl::OkStatus();
  // A job that trains towards labels of which none is positive learns nothing, and looks perfect.
  const pb::DatasetProto& data = trainer_->evaluation()->data.proto();
  const NonePositive none = LookForPositives(data);
  if (none.why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(data.name(), ": ", none.why));
}

absl::StatusOr<Evaluation> JobSession::EvaluateCheckpoint(const std::string& directory,
                                                          RunReport* report) {
  MU_RETURN_IF_ERROR(Restore(directory));
  last_evaluation_.reset();
  MU_RETURN_IF_ERROR(Evaluate(report));
  return *last_evaluation_;
}

absl::Status JobSession::Predict(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "predict");
  WatchStart();
  MU_ASSIGN_OR_RETURN(const Dataset dataset, CreateDataset(DataPurpose::kPredict));
  Forward outputs;
  MU_ASSIGN_OR_RETURN(const Function forward, DefinePrediction(dataset, &outputs));
  progress_->Begin("predicting", 0);
  MU_RETURN_IF_ERROR(PrepareToRead(dataset));
  const std::string path =
      options_.predict_out.empty() ? options_.job_dir + "/predictions.csv" : options_.predict_out;
  PredictionFile file(path, outputs, dataset.proto().on_bad_record() == pb::ON_BAD_RECORD_SKIP);
  MU_RETURN_IF_ERROR(file.Open());
  TrainerCallbacks callbacks;
  callbacks.on_evaluation_progress = [&](uint64_t steps, uint64_t total) {
    progress_->Update(1, steps, total, file.written(), 0);
  };
  Trainer trainer(coordinator_.get(), {.callbacks = std::move(callbacks)});
  MU_ASSIGN_OR_RETURN(report->samples, trainer.Predict(forward, dataset,
                                                       {.returns = file.returns(),
                                                        .returned_lists = file.returned_lists(),
                                                        .stop = options_.stop},
                                                       [&](const EvaluatedBatch& batch) {
                                                         return file.Add(batch);
                                                       }));
  MU_RETURN_IF_ERROR(file.Close());
  if (file.written() == file.skipped()) return NothingRead(dataset.proto().name());
  MU_LOG(INFO, "{} lines are in {}", file.written(), path);
  if (file.not_finite() > 0) {
    Warn(report, absl::StrCat(file.not_finite(), " of ", file.written(),
                              " predictions are not finite, the first is prediction ",
                              file.first_not_finite(), ": has the training diverged?"));
  }
  if (file.skipped() > 0) {
    Warn(report, absl::StrCat(file.skipped(), " records were left out (on_bad_record: skip), the ",
                              "first is ", coordinator_->Stats().first_bad_record, "; their lines ",
                              "of ", path, " have no prediction, and say why under `skipped`"));
  }
  return absl::OkStatus();
}

}  // namespace mu
