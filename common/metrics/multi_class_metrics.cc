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

// Where the true class stands among all.
struct PlaceOfLabel {
  size_t above = 0;    // classes that are more probable
  size_t ties = 0;     // classes of the same probability, itself among them
  bool first = false;  // of the most probable classes, it has the lowest number
};

PlaceOfLabel PlaceOf(absl::Span<const float> row, size_t label) {
  PlaceOfLabel place;
  const float own = row[label];
  size_t ties_before = 0;
  for (size_t c = 0; c < row.size(); ++c) {
    place.above += row[c] > own;
    place.ties += row[c] == own;
    ties_before += row[c] == own && c < label;
  }
  place.first = place.above == 0 && ties_before == 0;
  return place;
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
    const PlaceOfLabel place = PlaceOf(row, label);
    if (place.first) right_ += records.weight(i);
    if (place.ties == 1) {
      weight_by_rank_[place.above] += records.weight(i);
    } else {
      weight_by_tie_[{place.above, place.ties}] += records.weight(i);
    }
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
  for (const auto& [tie, weight] : other.weight_by_tie_) weight_by_tie_[tie] += weight;
  right_ += other.right_;
  count_ += other.count_;
  log_loss_.Merge(other.log_loss_);
}

double MultiClassMetrics::weight() const {
  double sum = 0;
  for (const double weight : weight_by_rank_) sum += weight;
  for (const auto& [tie, weight] : weight_by_tie_) sum += weight;
  return sum;
}

double MultiClassMetrics::MeanGain(absl::Span<const double> gains) const {
  double sum = 0;
  std::vector<double> gains_before(gains.size() + 1);
  for (size_t rank = 0; rank < gains.size(); ++rank) {
    sum += weight_by_rank_[rank] * gains[rank];
    gains_before[rank + 1] = gains_before[rank] + gains[rank];
  }
  for (const auto& [tie, weight] : weight_by_tie_) {
    const auto [above, ties] = tie;
    const double of_tie = gains_before[std::min(above + ties, gains.size())] -
                          gains_before[std::min(above, gains.size())];
    sum += weight * (of_tie / static_cast<double>(ties));
  }
  return sum / weight();
}

size_t MultiClassMetrics::RanksUpTo(int64_t k) const {
  return std::min(weight_by_rank_.size(), static_cast<size_t>(k));
}

double MultiClassMetrics::accuracy() const { return right_ / weight(); }

double MultiClassMetrics::top_k_accuracy(int64_t k) const {
  return MeanGain(std::vector<double>(RanksUpTo(k), 1.0));
}

double MultiClassMetrics::logloss() const { return log_loss_.Value() / weight(); }

double MultiClassMetrics::ndcg(int64_t k) const {
  std::vector<double> gains(RanksUpTo(k));
  for (size_t rank = 0; rank < gains.size(); ++rank)
    gains[rank] = 1 / std::log2(static_cast<double>(rank) + 2);
  return MeanGain(gains);
}

double MultiClassMetrics::mrr() const {
  std::vector<double> gains(weight_by_rank_.size());
  for (size_t rank = 0; rank < gains.size(); ++rank)
    gains[rank] = 1 / (static_cast<double>(rank) + 1);
  return MeanGain(gains);
}

}  // namespace mu
