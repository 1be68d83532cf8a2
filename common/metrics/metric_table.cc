#include "common/metrics/metric_table.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {
namespace {

constexpr char kNoRecords[] = "there are no records";
constexpr char kNoWeight[] = "every record's weight is 0";

template <typename Part>
Part* Make(std::unique_ptr<Part>* part) {
  if (*part == nullptr) *part = std::make_unique<Part>();
  return part->get();
}

void Binary(double, MetricParts* parts) { Make(&parts->binary); }
void Threshold(double threshold, MetricParts* parts) {
  parts->thresholds.emplace(threshold, ThresholdMetrics(threshold));
}
void Regression(double, MetricParts* parts) { Make(&parts->regression); }
void MultiClass(double, MetricParts* parts) { Make(&parts->multi_class); }
void Grouped(double, MetricParts* parts) { Make(&parts->grouped); }

// A value, or the first reason why it is not defined.
MetricValue Value(double value, const char* no_records, const std::string& reason) {
  MetricValue result;
  result.value = value;
  if (!std::isfinite(value)) {
    result.value = std::nan("");
    result.undefined = no_records != nullptr ? no_records
                       : !reason.empty()     ? reason
                                             : "the sums are too large for a number";
  }
  return result;
}

template <typename Part>
const char* NoRecords(const Part& part, double weight) {
  return part.count() == 0 ? kNoRecords : weight == 0 ? kNoWeight : nullptr;
}

std::string MissingClass(const BinaryMetrics& binary) {
  return binary.positive_weight() == 0   ? "no label is 1"
         : binary.negative_weight() == 0 ? "all labels are 1"
                                         : "";
}

template <double (BinaryMetrics::*kMethod)() const>
MetricValue OfBinary(double, const MetricParts& parts) {
  const BinaryMetrics& binary = *parts.binary;
  return Value((binary.*kMethod)(),
               NoRecords(binary, binary.positive_weight() + binary.negative_weight()),
               MissingClass(binary));
}

template <double (ThresholdMetrics::*kMethod)() const>
MetricValue OfThreshold(double threshold, const MetricParts& parts) {
  const ThresholdMetrics& counts = parts.thresholds.at(threshold);
  const std::string reason =
      counts.positive() == 0 ? "no label is 1" : absl::StrCat("no prediction reaches ", threshold);
  return Value((counts.*kMethod)(), NoRecords(counts, counts.weight()), reason);
}

MetricValue Precision(double threshold, const MetricParts& parts) {
  const ThresholdMetrics& counts = parts.thresholds.at(threshold);
  return Value(counts.precision(), NoRecords(counts, counts.weight()),
               absl::StrCat("no prediction reaches ", threshold));
}

MetricValue F1(double threshold, const MetricParts& parts) {
  const ThresholdMetrics& counts = parts.thresholds.at(threshold);
  return Value(counts.f1(), NoRecords(counts, counts.weight()),
               absl::StrCat("no label is 1, and no prediction reaches ", threshold));
}

template <double (RegressionMetrics::*kMethod)() const>
MetricValue OfRegression(double, const MetricParts& parts) {
  const RegressionMetrics& regression = *parts.regression;
  return Value((regression.*kMethod)(), NoRecords(regression, regression.weight()),
               regression.label_sum() == 0 ? "the labels add up to 0" : "");
}

MetricValue R2(double, const MetricParts& parts) {
  const RegressionMetrics& regression = *parts.regression;
  return Value(regression.r2(), NoRecords(regression, regression.weight()), "all labels are equal");
}

template <double (MultiClassMetrics::*kMethod)() const>
MetricValue OfMultiClass(double, const MetricParts& parts) {
  const MultiClassMetrics& classes = *parts.multi_class;
  return Value((classes.*kMethod)(), NoRecords(classes, classes.weight()), "");
}

template <double (MultiClassMetrics::*kMethod)(int64_t) const>
MetricValue OfMultiClassAt(double k, const MetricParts& parts) {
  const MultiClassMetrics& classes = *parts.multi_class;
  return Value((classes.*kMethod)(static_cast<int64_t>(k)), NoRecords(classes, classes.weight()),
               "");
}

MetricValue OfGroups(const GroupedMetrics::Mean& mean, const GroupedMetrics& grouped,
                     const char* lacks) {
  MetricValue result = Value(mean.value, grouped.count() == 0 ? kNoRecords : nullptr,
                             absl::StrCat("each of the ", mean.groups, " groups has ", lacks));
  if (result.undefined.empty() && mean.groups_used < mean.groups) {
    result.note = absl::StrCat("leaves out ", mean.groups - mean.groups_used, " of ", mean.groups,
                               " groups, which have ", lacks);
  }
  return result;
}

constexpr char kOneClass[] = "labels of one kind only";
constexpr char kNothingRelevant[] = "no label that is 1";

MetricValue Gauc(double, const MetricParts& parts) {
  return OfGroups(parts.grouped->gauc(), *parts.grouped, kOneClass);
}
MetricValue Mrr(double, const MetricParts& parts) {
  return OfGroups(parts.grouped->mrr(), *parts.grouped, kNothingRelevant);
}
template <GroupedMetrics::Mean (GroupedMetrics::*kMethod)(int64_t)>
MetricValue OfGroupsAt(double k, const MetricParts& parts) {
  return OfGroups((parts.grouped.get()->*kMethod)(static_cast<int64_t>(k)), *parts.grouped,
                  kNothingRelevant);
}

constexpr Task kBinary = Task::kBinaryClassification;
constexpr Task kRanking = Task::kRanking;
constexpr Task kMulti = Task::kMultiClass;
constexpr MetricParameter kNone = MetricParameter::kNone;
constexpr MetricParameter kK = MetricParameter::kK;
constexpr MetricParameter kAt = MetricParameter::kThreshold;

constexpr Better kGreater = Better::kGreater;
constexpr Better kLess = Better::kLess;
constexpr Better kNearOne = Better::kNearOne;

constexpr char kGaucDoc[] =
    "mean of the groups' AUC, weighted by their records; groups of one class are left out";
constexpr char kRecallDoc[] =
    "mean over groups: the part of what is relevant in the first k; groups without a label of 1 "
    "are left out";
constexpr char kHitRateDoc[] =
    "part of the groups that have something relevant in the first k; groups without a label of 1 "
    "are left out";
constexpr char kNdcgDoc[] =
    "mean over groups: discounted gain of the first k, divided by the best; groups without a label "
    "of 1 are left out";
constexpr char kMrrDoc[] =
    "mean over groups: 1 / rank of the first relevant record; groups without a label of 1 are left "
    "out";

// By task; the order of docs/reference/metrics.md.
constexpr MetricDef kTable[] = {
    {"auc", kBinary, kNone, false, true, kGreater, Binary, OfBinary<&BinaryMetrics::auc>,
     "area under the ROC curve: exact for up to 1,048,576 different predictions; beyond, those may "
     "count as equal that differ by less than 1/4096 of themselves (from 0.5 on: of 1 - "
     "prediction)"},
    {"pr_auc", kBinary, kNone, false, true, kGreater, Binary, OfBinary<&BinaryMetrics::pr_auc>,
     "area under the precision-recall curve: average precision; as exact as `auc`"},
    {"logloss", kBinary, kNone, false, true, kLess, Binary, OfBinary<&BinaryMetrics::logloss>,
     "mean of -log(probability of the true label); probabilities are clipped to [1e-7, 1 - 1e-7]"},
    {"normalized_entropy", kBinary, kNone, false, true, kLess, Binary,
     OfBinary<&BinaryMetrics::normalized_entropy>,
     "log loss divided by that of predicting the mean label always; below 1 is better than that"},
    {"calibration", kBinary, kNone, false, true, kNearOne, Binary,
     OfBinary<&BinaryMetrics::calibration>, "mean prediction / mean label"},
    {"accuracy", kBinary, kAt, false, true, kGreater, Threshold,
     OfThreshold<&ThresholdMetrics::accuracy>,
     "part of the records on whose label threshold and prediction agree"},
    {"precision", kBinary, kAt, false, true, kGreater, Threshold, Precision,
     "part of the records predicted as 1 whose label is 1"},
    {"recall", kBinary, kAt, false, true, kGreater, Threshold,
     OfThreshold<&ThresholdMetrics::recall>,
     "part of the records with label 1 that are predicted as 1"},
    {"f1", kBinary, kAt, false, true, kGreater, Threshold, F1,
     "harmonic mean of precision and recall"},
    {"gauc", kBinary, kNone, true, false, kGreater, Grouped, Gauc, kGaucDoc},
    {"recall", kBinary, kK, true, false, kGreater, Grouped, OfGroupsAt<&GroupedMetrics::recall>,
     kRecallDoc},
    {"hit_rate", kBinary, kK, true, false, kGreater, Grouped, OfGroupsAt<&GroupedMetrics::hit_rate>,
     kHitRateDoc},
    {"ndcg", kBinary, kK, true, false, kGreater, Grouped, OfGroupsAt<&GroupedMetrics::ndcg>,
     kNdcgDoc},
    {"mrr", kBinary, kNone, true, false, kGreater, Grouped, Mrr, kMrrDoc},
    {"rmse", Task::kRegression, kNone, false, true, kLess, Regression,
     OfRegression<&RegressionMetrics::rmse>, "root of the mean squared error"},
    {"mae", Task::kRegression, kNone, false, true, kLess, Regression,
     OfRegression<&RegressionMetrics::mae>, "mean absolute error"},
    {"calibration", Task::kRegression, kNone, false, true, kNearOne, Regression,
     OfRegression<&RegressionMetrics::calibration>, "mean prediction / mean label"},
    {"r2", Task::kRegression, kNone, false, true, kGreater, Regression, R2,
     "coefficient of determination: 1 - squared errors / squared distances of the labels from "
     "their mean; 0 is what predicting the mean label always reaches"},
    {"accuracy", kMulti, kNone, false, true, kGreater, MultiClass,
     OfMultiClass<&MultiClassMetrics::accuracy>,
     "part of the records whose most probable class is the true one"},
    {"top_k_accuracy", kMulti, kK, false, true, kGreater, MultiClass,
     OfMultiClassAt<&MultiClassMetrics::top_k_accuracy>,
     "part of the records whose true class is among the k most probable"},
    {"logloss", kMulti, kNone, false, true, kLess, MultiClass,
     OfMultiClass<&MultiClassMetrics::logloss>,
     "mean of -log(probability of the true class); probabilities are at least 1e-7"},
    {"hit_rate", kMulti, kK, false, true, kGreater, MultiClass,
     OfMultiClassAt<&MultiClassMetrics::top_k_accuracy>,
     "the same as top_k_accuracy: each record is a group, its true class what is relevant"},
    {"ndcg", kMulti, kK, false, true, kGreater, MultiClass,
     OfMultiClassAt<&MultiClassMetrics::ndcg>,
     "mean of 1 / log2(1 + rank of the true class), 0 beyond rank k"},
    {"mrr", kMulti, kNone, false, true, kGreater, MultiClass, OfMultiClass<&MultiClassMetrics::mrr>,
     "mean of 1 / rank of the true class"},
    {"gauc", kRanking, kNone, true, false, kGreater, Grouped, Gauc, kGaucDoc},
    {"recall", kRanking, kK, true, false, kGreater, Grouped, OfGroupsAt<&GroupedMetrics::recall>,
     kRecallDoc},
    {"hit_rate", kRanking, kK, true, false, kGreater, Grouped,
     OfGroupsAt<&GroupedMetrics::hit_rate>, kHitRateDoc},
    {"ndcg", kRanking, kK, true, false, kGreater, Grouped, OfGroupsAt<&GroupedMetrics::ndcg>,
     kNdcgDoc},
    {"mrr", kRanking, kNone, true, false, kGreater, Grouped, Mrr, kMrrDoc},
};

}  // namespace

absl::Span<const MetricDef> MetricTable() { return kTable; }

absl::Status MetricParts::Add(const EvalRecords& records) {
  if (binary != nullptr)
    MU_RETURN_IF_ERROR(binary->Add(records.predictions, records.labels, records.weights));
  for (auto& [threshold, counts] : thresholds) MU_RETURN_IF_ERROR(counts.Add(records));
  if (regression != nullptr)
    MU_RETURN_IF_ERROR(regression->Add(records.predictions, records.labels, records.weights));
  if (multi_class != nullptr) MU_RETURN_IF_ERROR(multi_class->Add(records));
  if (grouped != nullptr) MU_RETURN_IF_ERROR(grouped->Add(records));
  return absl::OkStatus();
}

void MetricParts::Merge(const MetricParts& other) {
  if (binary != nullptr) binary->Merge(*other.binary);
  for (auto& [threshold, counts] : thresholds) counts.Merge(other.thresholds.at(threshold));
  if (regression != nullptr) regression->Merge(*other.regression);
  if (multi_class != nullptr) multi_class->Merge(*other.multi_class);
  if (grouped != nullptr) grouped->Merge(*other.grouped);
}

}  // namespace mu
