// The function that evaluation and prediction run: what it returns of a model's output, and what
// is measured of that.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metrics/metric_set.h"
#include "coordinator/frontend/model.h"
#include "coordinator/training/evaluator.h"
#include "proto/job.pb.h"

namespace mu {

struct ForwardTask {
  std::string name;  // empty: the model's only task
  Task task = Task::kBinaryClassification;
  std::string prediction;  // what the function returns it as
  std::string label;
};

// A column that is copied beside predictions: its value, or the text that its field has in the
// data.
struct CopiedColumn {
  std::string name;
  std::string value;  // what the function returns it as; empty: it is copied as a text
  std::string texts;  // of a text: what the function returns the list's values as
  std::string splits;
};

struct Forward {
  std::vector<ForwardTask> tasks;
  std::vector<CopiedColumn> columns;
  std::string group;   // what the function returns it as; empty: there is none
  std::string weight;  // the same
};

// One task: "prediction" and "label".
Forward ForwardOf(Task task);

// Returns the model's predictions, and columns of the data, from the function that is being traced.
// A column beside which there is its text (WithTexts, job_data.h) is returned as that.
// INVALID_ARGUMENT as CheckOutput; beginning with --columns for one that is not there, or has not
// one value for each record.
absl::StatusOr<Forward> ReturnPredictions(FunctionBuilder& builder, const BatchRef& batch,
                                          const ModelOutput& output,
                                          const std::vector<std::string>& columns = {});
// The same and labels, group and weight: the columns that the job names, or the model's own.
// INVALID_ARGUMENT also for a column that is not there, beginning with the key of the job file.
absl::StatusOr<Forward> ReturnForEvaluation(FunctionBuilder& builder, const BatchRef& batch,
                                            const ModelOutput& output,
                                            const muster::EvaluationProto& evaluation);

// INVALID_ARGUMENT unless there is one float32 for each record or, multi-class, a row of them.
absl::Status CheckPrediction(const ForwardTask& task, const Tensor& values, uint32_t records);

// Measures the batches of such a function. Not synchronised.
class Measurement {
 public:
  // These metrics or, if there are none, the defaults of each task. INVALID_ARGUMENT beginning with
  // the key of the job file for a metric that no task of the model has, or that needs a group and
  // there is none.
  static absl::StatusOr<Measurement> Create(const Forward& forward,
                                            const std::vector<std::string>& metrics);
  static absl::StatusOr<Measurement> Create(const Forward& forward,
                                            const muster::EvaluationProto& evaluation) {
    return Create(forward, std::vector<std::string>(evaluation.metrics().begin(),
                                                    evaluation.metrics().end()));
  }

  // What ForEachBatch is to ask for, and its callback.
  const std::vector<std::string>& returns() const { return returns_; }
  absl::Status Add(const EvaluatedBatch& batch);

  // What is measured; a task's own name stands before the metric's: "income.auc".
  std::vector<std::string> Names() const;
  // Of all tasks, under these names.
  std::vector<MetricValue> Values() const;
  // Metrics that a weight does not change, where there is one.
  std::vector<std::string> WithoutWeights() const;

 private:
  struct Measured {
    ForwardTask task;
    MetricSet metrics;
    size_t prediction;  // indexes of returns_
    size_t label;
  };
  std::vector<std::string> returns_;
  std::vector<Measured> tasks_;
  size_t group_ = 0;  // index of returns_; 0: none, a prediction is there
  size_t weight_ = 0;
};

}  // namespace mu
