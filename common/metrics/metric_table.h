// The one table of metrics: their names in job files and reports, which tasks they are of, what
// they need. docs/reference/metrics.md is made from it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/metrics/binary_metrics.h"
#include "common/metrics/grouped_metrics.h"
#include "common/metrics/multi_class_metrics.h"
#include "common/metrics/regression_metrics.h"
#include "common/metrics/task.h"
#include "common/metrics/threshold_metrics.h"

namespace mu {

// What is gathered for metrics; each part only if one of them reads it.
struct MetricParts {
  std::unique_ptr<BinaryMetrics> binary;
  std::map<double, ThresholdMetrics> thresholds;
  std::unique_ptr<RegressionMetrics> regression;
  std::unique_ptr<MultiClassMetrics> multi_class;
  std::unique_ptr<GroupedMetrics> grouped;

  absl::Status Add(const EvalRecords& records);
  // `other` must have the same parts.
  void Merge(const MetricParts& other);
};

struct MetricValue {
  std::string name;
  double value = 0;       // NaN: not defined
  std::string undefined;  // why it is not; empty if it is defined
  std::string note;       // what the value leaves out; may be empty
};

// What stands behind the @ of a metric's name.
enum class MetricParameter {
  kNone,
  kK,          // ndcg@10: a whole number from 1
  kThreshold,  // precision@0.3: between 0 and 1; left out: 0.5
};

// Which of two values of a metric is the better one.
enum class Better {
  kGreater,
  kLess,
  kNearOne,  // calibration: the one whose distance from 1 is less
};

// A metric of one task; several tasks may have one of the same name and parameter.
struct MetricDef {
  const char* name;
  Task task;
  MetricParameter parameter;
  bool needs_group;
  bool takes_weights;
  Better better;  // the same in every task that has the metric
  void (*require)(double parameter, MetricParts* parts);
  MetricValue (*value)(double parameter, const MetricParts& parts);  // without the name
  const char* doc;
};

absl::Span<const MetricDef> MetricTable();

}  // namespace mu
