// Metrics of a classifier of several classes. Mergeable, in any order and any cut with the same
// numbers to the last bit (with weights: see BinaryMetrics); pure; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/metrics/eval_records.h"
#include "common/metrics/exact_sum.h"

namespace mu {

// Of each record only the rank of the true class matters, and its probability. Classes of the same
// probability have no order: metrics of ranks are the mean over all their orders, as those of
// groups are (GroupedMetrics). Accuracy alone is of one predicted class, the lowest of the most
// probable ones, as numpy's argmax and the file of predictions have it.
//
// Memory: a number for each class, and a map's entry for each place of a tie that occurred (at most
// one a record).
class MultiClassMetrics {
 public:
  // `predictions` are [records, classes] probabilities, the same number of classes in every call,
  // `classes` the true ones. INVALID_ARGUMENT for what is no probability, a record whose
  // probabilities do not add up to 1 (within 1e-3), a class that is not among them, a negative
  // weight; nothing is added then.
  absl::Status Add(const EvalRecords& records);
  void Merge(const MultiClassMetrics& other);

  uint64_t count() const { return count_; }  // records
  double weight() const;
  // NaN without records, or where every weight is 0.
  double accuracy() const;                 // the true class is the predicted one
  double top_k_accuracy(int64_t k) const;  // the true class is among the k most probable
  double logloss() const;
  // With one relevant item a record, its class, among all classes:
  double ndcg(int64_t k) const;  // 1 / log2(1 + rank) where the rank (from 1) is at most k, else 0
  double mrr() const;            // 1 / rank

 private:
  absl::Status Check(const EvalRecords& records, size_t classes) const;
  // `gains` of the ranks from 0; beyond them there is none.
  double MeanGain(absl::Span<const double> gains) const;
  size_t RanksUpTo(int64_t k) const;

  std::vector<double> weight_by_rank_;  // from 0, where the true class ties with no other
  // By the number of classes that are more probable than the true one, and of those that are as
  // probable. The share of a rank would be no exact number, the weight of all of them is one.
  std::map<std::pair<size_t, size_t>, double> weight_by_tie_;
  double right_ = 0;
  uint64_t count_ = 0;
  ExactSum log_loss_;
};

}  // namespace mu
