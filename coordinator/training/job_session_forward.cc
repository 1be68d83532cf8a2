// Evaluation and prediction of a job's session.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/obs/log.h"
#include "common/obs/telemetry.h"
#include "coordinator/training/check_files.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/forward.h"
#include "coordinator/training/job_session.h"
#include "coordinator/training/prediction_file.h"

namespace mu {

void JobSession::WatchStart() {
  if (starting_ == nullptr)
    starting_ = std::make_unique<StopWatcher>(&coordinator_->runtime(), options_.stop);
}

absl::Status JobSession::PrepareToRead(const Dataset& dataset) {
  MU_RETURN_IF_ERROR(coordinator_->StartEpoch(dataset, 0));
  starting_.reset();  // what reads looks itself
  return absl::OkStatus();
}

absl::StatusOr<Function> JobSession::DefineForward(const Dataset& dataset, bool with_label,
                                                   Forward* forward) {
  absl::StatusOr<Forward> returned = Forward();
  MU_ASSIGN_OR_RETURN(
      Function function,
      coordinator_->DefineFunction(
          with_label ? "eval_step" : "predict_step", [&](FunctionBuilder& f) {
            const BatchRef batch = f.NextBatch(dataset);
            const ModelOutput output = model_->Build(f, batch);
            returned = with_label ? ReturnForEvaluation(f, batch, output, job_.evaluation())
                                  : ReturnPredictions(f, batch, output, options_.predict_columns);
          }));
  MU_ASSIGN_OR_RETURN(*forward, std::move(returned));
  return function;
}

absl::Status JobSession::Evaluate(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "evaluate");
  WatchStart();
  MU_ASSIGN_OR_RETURN(const Dataset dataset, CreateDataset(DataPurpose::kEval));
  Forward outputs;
  MU_ASSIGN_OR_RETURN(const Function forward, DefineForward(dataset, true, &outputs));
  MU_ASSIGN_OR_RETURN(Measurement measurement, Measurement::Create(outputs, job_.evaluation()));
  progress_->Begin("evaluating", 0);
  MU_RETURN_IF_ERROR(PrepareToRead(dataset));
  uint64_t seen = 0;
  MU_ASSIGN_OR_RETURN(
      report->eval_examples,
      ForEachBatch(
          *coordinator_, forward, dataset,
          {.returns = measurement.returns(), .stop = options_.stop},
          [&](const EvaluatedBatch& batch) {
            seen += batch.records;
            return measurement.Add(batch);
          },
          [&](uint64_t steps, uint64_t total) { progress_->Update(1, steps, total, seen, 0); }));
  bool undefined = false;
  for (const MetricValue& metric : measurement.Values()) {
    report->eval_metrics[metric.name] = metric.value;
    undefined = undefined || !metric.undefined.empty();
    if (!metric.undefined.empty())
      Warn(report, absl::StrCat(metric.name, " is not defined: ", metric.undefined));
    if (!metric.note.empty()) MU_LOG(INFO, "{} {}", metric.name, metric.note);
  }
  if (const auto names = measurement.WithoutWeights(); !names.empty())
    Warn(report, absl::StrCat("weights do not enter ", absl::StrJoin(names, ", ")));
  // A job that trains towards labels of which none is positive learns nothing, and looks perfect.
  const NonePositive none = undefined ? LookForPositives(dataset.proto()) : NonePositive();
  if (none.why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(dataset.name(), ": ", none.why));
}

absl::Status JobSession::Predict(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "predict");
  WatchStart();
  MU_ASSIGN_OR_RETURN(const Dataset dataset, CreateDataset(DataPurpose::kPredict));
  Forward outputs;
  MU_ASSIGN_OR_RETURN(const Function forward, DefineForward(dataset, false, &outputs));
  progress_->Begin("predicting", 0);
  MU_RETURN_IF_ERROR(PrepareToRead(dataset));
  const std::string path =
      options_.predict_out.empty() ? options_.job_dir + "/predictions.csv" : options_.predict_out;
  PredictionFile file(path, outputs, dataset.proto().on_bad_record() == pb::ON_BAD_RECORD_SKIP);
  MU_RETURN_IF_ERROR(file.Open());
  MU_ASSIGN_OR_RETURN(report->samples,
                      ForEachBatch(
                          *coordinator_, forward, dataset,
                          {.returns = file.returns(), .stop = options_.stop, .in_order = true},
                          [&](const EvaluatedBatch& batch) { return file.Add(batch); },
                          [&](uint64_t steps, uint64_t total) {
                            progress_->Update(1, steps, total, file.written(), 0);
                          }));
  MU_RETURN_IF_ERROR(file.Close());
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
