// Evaluation and prediction of a job's session.
#include <cmath>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/metrics/binary_metrics.h"
#include "common/metrics/regression_metrics.h"
#include "common/obs/log.h"
#include "common/obs/telemetry.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/job_session.h"

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
                                                   Task* task) {
  return coordinator_->DefineFunction(
      with_label ? "eval_step" : "predict_step", [&](FunctionBuilder& f) {
        const ModelOutput output = model_->Build(f, f.NextBatch(dataset));
        *task = output.task;
        f.Return("prediction", output.prediction);
        if (with_label) f.Return("label", output.label);
      });
}

absl::Status JobSession::Evaluate(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "evaluate");
  WatchStart();
  MU_ASSIGN_OR_RETURN(const Dataset dataset, CreateDataset(DataPurpose::kEval));
  Task task = Task::kRegression;
  MU_ASSIGN_OR_RETURN(const Function forward, DefineForward(dataset, true, &task));
  progress_->Begin("evaluating", 0);
  MU_RETURN_IF_ERROR(PrepareToRead(dataset));
  BinaryMetrics binary;
  RegressionMetrics regression;
  EvalOptions options;
  options.stop = options_.stop;
  uint64_t seen = 0;
  MU_ASSIGN_OR_RETURN(
      const uint64_t examples,
      ForEachPrediction(
          *coordinator_, forward, dataset, options,
          [&](absl::Span<const float> predictions, absl::Span<const float> labels) {
            seen += predictions.size();
            return task == Task::kBinaryClassification ? binary.Add(predictions, labels)
                                                       : regression.Add(predictions, labels);
          },
          [&](uint64_t steps, uint64_t total) { progress_->Update(1, steps, total, seen, 0); }));
  report->eval_examples = examples;
  report->eval_metrics =
      task == Task::kBinaryClassification ? binary.Values() : regression.Values();
  return absl::OkStatus();
}

absl::Status JobSession::Predict(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "predict");
  WatchStart();
  MU_ASSIGN_OR_RETURN(const Dataset dataset, CreateDataset(DataPurpose::kPredict));
  Task task = Task::kRegression;
  MU_ASSIGN_OR_RETURN(const Function forward, DefineForward(dataset, false, &task));
  progress_->Begin("predicting", 0);
  MU_RETURN_IF_ERROR(PrepareToRead(dataset));
  const std::string path =
      options_.predict_out.empty() ? options_.job_dir + "/predictions.csv" : options_.predict_out;
  const std::string temporary = path + ".part";
  std::ofstream out(temporary, std::ios::trunc);
  out << "prediction\n";
  EvalOptions options;
  options.stop = options_.stop;
  options.label = "";
  options.in_order = true;
  uint64_t written = 0, not_finite = 0, first_not_finite = 0;
  const auto examples = ForEachPrediction(
      *coordinator_, forward, dataset, options,
      [&](absl::Span<const float> predictions, absl::Span<const float>) {
        char line[32];
        for (size_t i = 0; i < predictions.size(); ++i) {
          const float value = predictions[i];
          if (!std::isfinite(value) && not_finite++ == 0) first_not_finite = written + i + 1;
          out.write(line, std::snprintf(line, sizeof(line), "%.9g\n", value));
        }
        written += predictions.size();
        return out.good() ? absl::OkStatus()
                          : absl::ResourceExhaustedError("cannot write " + temporary);
      },
      [&](uint64_t steps, uint64_t total) { progress_->Update(1, steps, total, written, 0); });
  out.close();
  if (!examples.ok()) {
    RemoveFile(temporary).IgnoreError();
    return examples.status();
  }
  if (!out.good()) return absl::ResourceExhaustedError("cannot write " + temporary);
  MU_RETURN_IF_ERROR(RenameFile(temporary, path));
  MU_LOG(INFO, "{} predictions are in {}", written, path);
  if (not_finite > 0) {
    Announce(absl::StrCat(not_finite, " of ", written, " predictions are not finite, the first is ",
                          "prediction ", first_not_finite, ": has the training diverged?"));
  }
  if (const RuntimeStats stats = coordinator_->Stats(); stats.bad_records > 0) {
    Announce(absl::StrCat(stats.bad_records, " records were left out (on_bad_record: skip), the ",
                          "first is ", stats.first_bad_record, "; ", path,
                          " has no lines for them, so its lines are not those of the files"));
  }
  report->samples = *examples;
  return absl::OkStatus();
}

}  // namespace mu
