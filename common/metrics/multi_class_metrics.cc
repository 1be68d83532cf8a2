#include "common/metrics/multi_class_metrics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/metrics/binary_metrics.h"

namespace mu {
namespace {

constexpr double kLogLossEpsilon = 1e-7;  // as BinaryMetrics has it
constexpr double kSumTolerance = 1e-3;

// From 0.
size_t RankOf(absl::Span<const float> row, size_t label) {
  size_t rank = 0;
  const float own = row[label];
  for (size_t c = 0; c < row.size(); ++c) rank += row[c] > own || (row[c] == own && c < label);
  return rank;
}

}  // namespace

absl::Status MultiClassMetrics::Check(const EvalRecords& records, size_t classes) const {
  MU_RETURN_IF_ERROR(CheckProbabilities(records.predictions));
  MU_RETURN_IF_ERROR(CheckWeights(records));
  if (!weight_by_rank_.empty() && weight_by_rank_.size() != classes) {
    return absl::InvalidArgumentError(absl::StrCat("probabilities of ", classes, " classes after ",
                                                   weight_by_rank_.size(), " of them"));
  }
  for (size_t i = 0; i < records.size(); ++i) {
    const int64_t label = records.classes[i];
    if (label < 0 || static_cast<uint64_t>(label) >= classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a label is ", label, ", and the model has the classes 0 to ", classes - 1));
    }
    double sum = 0;
    for (const float p : records.predictions.subspan(i * classes, classes)) sum += p;
    if (std::fabs(sum - 1) > kSumTolerance) {
      return absl::InvalidArgumentError(
          absl::StrCat("the probabilities of a record's classes add up to ", sum,
                       "; a multi-class model predicts those of a softmax"));
    }
  }
  return absl::OkStatus();
}

absl::Status MultiClassMetrics::Add(const EvalRecords& records) {
  if (records.predictions.empty() && records.classes.empty()) return absl::OkStatus();
  MU_RETURN_IF_ERROR(CheckSizes(records));
  const size_t classes = records.predictions.size() / records.size();
  MU_RETURN_IF_ERROR(Check(records, classes));
  weight_by_rank_.resize(classes);
  for (size_t i = 0; i < records.size(); ++i) {
    const auto row = records.predictions.subspan(i * classes, classes);
    const auto label = static_cast<size_t>(records.classes[i]);
    weight_by_rank_[RankOf(row, label)] += records.weight(i);
    log_loss_.Add(-records.weight(i) *
                  std::log(std::max(static_cast<double>(row[label]), kLogLossEpsilon)));
  }
  count_ += records.size();
  return absl::OkStatus();
}

void MultiClassMetrics::Merge(const MultiClassMetrics& other) {
  weight_by_rank_.resize(std::max(weight_by_rank_.size(), other.weight_by_rank_.size()));
  for (size_t rank = 0; rank < other.weight_by_rank_.size(); ++rank)
    weight_by_rank_[rank] += other.weight_by_rank_[rank];
  count_ += other.count_;
  log_loss_.Merge(other.log_loss_);
}

double MultiClassMetrics::weight() const {
  double sum = 0;
  for (const double weight : weight_by_rank_) sum += weight;
  return sum;
}

double MultiClassMetrics::top_k_accuracy(int64_t k) const {
  double within = 0;
  const size_t ranks = std::min(weight_by_rank_.size(), static_cast<size_t>(k));
  for (size_t rank = 0; rank < ranks; ++rank) within += weight_by_rank_[rank];
  return within / weight();
}

double MultiClassMetrics::logloss() const { return log_loss_.Value() / weight(); }

double MultiClassMetrics::ndcg(int64_t k) const {
  double gain = 0;
  const size_t ranks = std::min(weight_by_rank_.size(), static_cast<size_t>(k));
  for (size_t rank = 0; rank < ranks; ++rank)
    gain += weight_by_rank_[rank] / std::log2(static_cast<double>(rank) + 2);
  return gain / weight();
}

double MultiClassMetrics::mrr() const {
  double sum = 0;
  for (size_t rank = 0; rank < weight_by_rank_.size(); ++rank)
    sum += weight_by_rank_[rank] / (static_cast<double>(rank) + 1);
  return sum / weight();
}

}  // namespace mu
