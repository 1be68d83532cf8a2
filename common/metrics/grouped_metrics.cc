#include "common/metrics/grouped_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/metrics/binary_metrics.h"

namespace mu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Of `records` in random order of which `relevant` are: whether one of the first `taken` is.
double ChanceOfOne(uint64_t records, uint64_t relevant, uint64_t taken) {
  if (relevant + taken > records) return 1;
  double none = 1;
  for (uint64_t i = 0; i < taken; ++i)
    none *= static_cast<double>(records - relevant - i) / static_cast<double>(records - i);
  return 1 - none;
}

// 1 / log2(1 + rank), summed over the ranks first + 1 .. last.
double Discounts(uint64_t first, uint64_t last) {
  double sum = 0;
  for (uint64_t rank = first + 1; rank <= last; ++rank)
    sum += 1 / std::log2(static_cast<double>(rank) + 1);
  return sum;
}

}  // namespace

absl::Status GroupedMetrics::Add(const EvalRecords& records) {
  MU_RETURN_IF_ERROR(CheckSizes(records));
  if (records.groups.size() != records.size())
    return absl::InvalidArgumentError("metrics of groups need each record's group");
  MU_RETURN_IF_ERROR(CheckBinaryLabels(records.labels));
  for (const float score : records.predictions) {
    if (std::isfinite(score)) continue;
    return absl::InvalidArgumentError(absl::StrCat("a prediction is ", score,
                                                   ", which has no place in an order; look at the ",
                                                   "model's output"));
  }
  for (size_t i = 0; i < records.size(); ++i)
    entries_.push_back({records.groups[i], records.predictions[i], records.labels[i] == 1});
  sorted_ = sorted_ && records.size() == 0;
  return absl::OkStatus();
}

void GroupedMetrics::Merge(const GroupedMetrics& other) {
  entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
  sorted_ = false;
}

void GroupedMetrics::Sort() {
  if (std::exchange(sorted_, true)) return;
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tuple(a.group, -a.score) < std::tuple(b.group, -b.score);
  });
}

GroupedMetrics::Mean GroupedMetrics::MeanOverGroups(
    bool by_records, const std::function<double(const Group&)>& value) {
  Sort();
  Mean mean;
  double sum = 0, weight = 0;
  Group group;
  for (size_t i = 0; i < entries_.size();) {
    const int64_t id = entries_[i].group;
    group.ties.clear();
    group.records = group.relevant = 0;
    for (; i < entries_.size() && entries_[i].group == id; ++i) {
      const bool new_score = group.records == 0 || entries_[i].score != entries_[i - 1].score;
      if (new_score) group.ties.emplace_back();
      ++group.ties.back().records;
      ++group.records;
      if (!entries_[i].relevant) continue;
      ++group.ties.back().relevant;
      ++group.relevant;
    }
    ++mean.groups;
    const double of_group = value(group);
    if (std::isnan(of_group)) continue;
    ++mean.groups_used;
    const double group_weight = by_records ? static_cast<double>(group.records) : 1;
    sum += group_weight * of_group;
    weight += group_weight;
  }
  mean.value = mean.groups_used == 0 ? kNan : sum / weight;
  return mean;
}

GroupedMetrics::Mean GroupedMetrics::MeanOverRelevant(
    const std::function<double(const Group&)>& value) {
  return MeanOverGroups(/*by_records=*/false, [&](const Group& group) {
    return group.relevant == 0 ? kNan : value(group);
  });
}

GroupedMetrics::Mean GroupedMetrics::gauc() {
  return MeanOverGroups(/*by_records=*/true, [](const Group& group) {
    if (group.relevant == 0 || group.relevant == group.records) return kNan;
    double pairs = 0, relevant_above = 0;
    for (const Tie& tie : group.ties) {
      const auto relevant = static_cast<double>(tie.relevant);
      pairs += static_cast<double>(tie.records - tie.relevant) * (relevant_above + 0.5 * relevant);
      relevant_above += relevant;
    }
    return pairs / static_cast<double>(group.relevant) /
           static_cast<double>(group.records - group.relevant);
  });
}

GroupedMetrics::Mean GroupedMetrics::recall(int64_t k) {
  return MeanOverRelevant([k](const Group& group) {
    double found = 0;
    uint64_t left = static_cast<uint64_t>(k);
    for (const Tie& tie : group.ties) {
      const uint64_t taken = std::min(left, tie.records);
      found += static_cast<double>(tie.relevant) * static_cast<double>(taken) /
               static_cast<double>(tie.records);
      left -= taken;
    }
    return found / static_cast<double>(group.relevant);
  });
}

GroupedMetrics::Mean GroupedMetrics::hit_rate(int64_t k) {
  return MeanOverRelevant([k](const Group& group) {
    uint64_t left = static_cast<uint64_t>(k);
    for (const Tie& tie : group.ties) {
      if (tie.relevant > 0)
        return ChanceOfOne(tie.records, tie.relevant, std::min(left, tie.records));
      if (tie.records >= left) break;
      left -= tie.records;
    }
    return 0.0;
  });
}

GroupedMetrics::Mean GroupedMetrics::ndcg(int64_t k) {
  return MeanOverRelevant([k](const Group& group) {
    const auto most = static_cast<uint64_t>(k);
    double gain = 0;
    uint64_t above = 0;
    for (const Tie& tie : group.ties) {
      if (above >= most) break;
      if (tie.relevant > 0) {
        gain += Discounts(above, std::min(most, above + tie.records)) *
                static_cast<double>(tie.relevant) / static_cast<double>(tie.records);
      }
      above += tie.records;
    }
    return gain / Discounts(0, std::min(most, group.relevant));
  });
}

GroupedMetrics::Mean GroupedMetrics::mrr() {
  return MeanOverRelevant([](const Group& group) {
    uint64_t above = 0;
    for (const Tie& tie : group.ties) {
      if (tie.relevant == 0) {
        above += tie.records;
        continue;
      }
      // The first relevant one of the tie is at its place j with the chance `none` that those
      // before are not, times that of the next being so.
      double sum = 0, none = 1;
      for (uint64_t j = 0; j <= tie.records - tie.relevant; ++j) {
        const auto left = static_cast<double>(tie.records - j);
        const double next = static_cast<double>(tie.relevant) / left;
        sum += none * next / static_cast<double>(above + j + 1);
        none *= 1 - next;
      }
      return sum;
    }
    return 0.0;
  });
}

}  // namespace mu
