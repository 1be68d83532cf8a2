// Metrics of a classifier of several classes. Mergeable, in any order and any cut with the same
// numbers to the last bit (with weights: see BinaryMetrics); pure; not synchronised.
#pragma once

#include <cstdint>
#include <vector>

#include "common/metrics/eval_records.h"
#include "common/metrics/exact_sum.h"

namespace mu {

// Of each record only the rank of the true class matters, and its probability. Classes of the same
// probability rank by their number, the lowest first, as numpy's argmax has it.
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
  double accuracy() const { return top_k_accuracy(1); }
  double top_k_accuracy(int64_t k) const;  // the true class is among the k most probable
  double logloss() const;
  // With one relevant item a record, its class, among all classes:
  double ndcg(int64_t k) const;  // 1 / log2(1 + rank) where the rank (from 1) is at most k, else 0
  double mrr() const;            // 1 / rank

 private:
  absl::Status Check(const EvalRecords& records, size_t classes) const;

  std::vector<double> weight_by_rank_;  // from 0
  uint64_t count_ = 0;
  ExactSum log_loss_;
};

}  // namespace mu
