// Metrics of how records are ordered within groups, such as the items that were shown to one user.
// Mergeable, in any order and any cut with the same numbers to the last bit; pure; not
// synchronised.
//
// A group's records may come in any batch, so all are kept: 16 bytes for each.
//
// Records of a group with the same score have no order. Each metric is then the mean over all their
// orders, so a model that gives all the same score gets what a random order would get, not the
// best.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/metrics/eval_records.h"

namespace mu {

class GroupedMetrics {
 public:
  // A mean over groups, and how many there were.
  struct Mean {
    double value = 0;          // NaN if no group has a value
    uint64_t groups = 0;       // all
    uint64_t groups_used = 0;  // that have a value
  };

  // `predictions` are scores, any finite number, `labels` 1 for what is relevant to its group, else
  // 0; `groups` must be there. Weights are ignored. INVALID_ARGUMENT otherwise; nothing is added
  // then.
  absl::Status Add(const EvalRecords& records);
  void Merge(const GroupedMetrics& other);

  uint64_t count() const { return entries_.size(); }  // records

  // All of these sort the records if any were added since the last call.
  //
  // The mean of the groups' areas under the ROC curve, each weighted by its records, without those
  // of one class only (Zhu et al., "Optimized cost per click in Taobao display advertising", 2017).
  Mean gauc();
  // Means over the groups that have a relevant record:
  Mean recall(int64_t k);    // how much of what is relevant is among the first k
  Mean hit_rate(int64_t k);  // whether anything relevant is among the first k
  // Discounted gain of the first k divided by the greatest possible one (Järvelin and Kekäläinen,
  // "Cumulated gain-based evaluation of IR techniques", 2002), with gains 1 and 0.
  Mean ndcg(int64_t k);
  Mean mrr();  // 1 / the rank (from 1) of the first that is relevant

 private:
  struct Entry {
    int64_t group;
    float score;
    bool relevant;
  };
  // Of a group, from the highest score down: records of one score.
  struct Tie {
    uint64_t records = 0;
    uint64_t relevant = 0;
  };
  struct Group {
    std::vector<Tie> ties;
    uint64_t records = 0;
    uint64_t relevant = 0;
  };

  void Sort();
  // Of the groups for which `value` is not NaN.
  Mean MeanOverGroups(bool by_records, const std::function<double(const Group&)>& value);
  Mean MeanOverRelevant(const std::function<double(const Group&)>& value);

  std::vector<Entry> entries_;
  bool sorted_ = true;
};

}  // namespace mu
