// The metrics of one task that a job asks for, by their names.
//
//   MU_ASSIGN_OR_RETURN(MetricSet set, MetricSet::Create(Task::kBinaryClassification, {"auc"}));
//   MU_RETURN_IF_ERROR(set.Add({.predictions = p, .labels = y}));  // of each batch
//   for (const MetricValue& metric : set.Values()) ...
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metrics/metric_table.h"

namespace mu {

// A metric's name, taken apart: "ndcg@10".
struct MetricName {
  std::string name;             // "ndcg"
  bool has_parameter = false;   // there is an @
  double parameter = 0;         // 10
  bool whole_parameter = true;  // written as a whole number
};
// INVALID_ARGUMENT unless it is NAME or NAME@NUMBER.
absl::StatusOr<MetricName> ParseMetricName(const std::string& text);

// What is wrong with a metric of a job, and what to do about it. INVALID_ARGUMENT for a name that
// no task has (with the nearest one), or that needs another parameter.
absl::Status CheckMetricName(const std::string& text);

// Whether the task has the metric. The name must have passed CheckMetricName.
bool TaskHasMetric(Task task, const std::string& text);

// Which value of the metric is the better one, in whatever task. `text` may have a task's name
// before it ("income.auc"). INVALID_ARGUMENT as CheckMetricName.
absl::StatusOr<Better> BetterOf(const std::string& text);

// By how much `value` is better than `than`; negative: worse. NaN if one of them is (not defined).
double Improvement(Better better, double value, double than);

// What a job that asks for none gets; `has_group`: the records have groups.
std::vector<std::string> DefaultMetrics(Task task, bool has_group);

// Mergeable; not synchronised.
class MetricSet {
 public:
  // INVALID_ARGUMENT as CheckMetricName, or if the task does not have a metric (the message lists
  // those that it has), or one needs groups and there are none.
  static absl::StatusOr<MetricSet> Create(Task task, const std::vector<std::string>& names,
                                          bool has_group = false);

  // INVALID_ARGUMENT for what the task does not predict, such as a probability above 1.
  absl::Status Add(const EvalRecords& records) { return parts_.Add(records); }
  // `other` must have been made with the same arguments. In any order and any cut of the records
  // the values are the same.
  void Merge(const MetricSet& other) { parts_.Merge(other.parts_); }

  std::vector<std::string> Names() const;
  std::vector<MetricValue> Values() const;
  // Those that a record's weight does not change.
  std::vector<std::string> WithoutWeights() const;

 private:
  struct Chosen {
    std::string name;
    double parameter;
    const MetricDef* def;
  };
  std::vector<Chosen> chosen_;
  MetricParts parts_;
};

}  // namespace mu
