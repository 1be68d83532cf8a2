// Metrics of groups against their definitions over every order of records with equal scores.
#include "common/metrics/grouped_metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "tests/common/metrics/records.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::Records;
using testing::StatusIs;

struct Scored {
  float score;
  bool relevant;
};
using Group = std::vector<Scored>;

// Small groups with few scores, so that there are ties of all kinds.
Records TiedRecords(uint64_t seed, size_t groups) {
  SplitMix random(seed);
  Records records;
  for (size_t group = 0; group < groups; ++group) {
    const uint64_t size = 1 + random.Below(7);
    for (uint64_t i = 0; i < size; ++i) {
      records.groups.push_back(static_cast<int64_t>(group) * 1'000'003 - 40);
      records.predictions.push_back(static_cast<float>(random.Below(4)) - 1.5f);
      records.labels.push_back(random.Below(3) == 0 ? 1.0f : 0.0f);
    }
  }
  return records;
}

std::vector<Group> GroupsOf(const Records& r) {
  std::map<int64_t, Group> groups;
  for (size_t i = 0; i < r.size(); ++i)
    groups[r.groups[i]].push_back({r.predictions[i], r.labels[i] == 1});
  std::vector<Group> list;
  for (auto& [id, group] : groups) list.push_back(std::move(group));
  return list;
}

bool HasRelevant(const Group& group) {
  return std::any_of(group.begin(), group.end(), [](const Scored& s) { return s.relevant; });
}

// Mean over all orders that the scores allow.
double OverOrders(const Group& group, const std::function<double(const Group&)>& value) {
  std::vector<size_t> order(group.size());
  std::iota(order.begin(), order.end(), size_t{0});
  double sum = 0, orders = 0;
  do {
    Group ordered;
    for (const size_t i : order) ordered.push_back(group[i]);
    const bool sorted =
        std::is_sorted(ordered.begin(), ordered.end(),
                       [](const Scored& a, const Scored& b) { return a.score > b.score; });
    if (!sorted) continue;
    sum += value(ordered);
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  return sum / orders;
}

double MeanOverGroups(const Records& r, const std::function<double(const Group&)>& value) {
  double sum = 0, groups = 0;
  for (const Group& group : GroupsOf(r)) {
    if (!HasRelevant(group)) continue;
    sum += OverOrders(group, value);
    ++groups;
  }
  return sum / groups;
}

double RelevantIn(const Group& group, size_t k) {
  double found = 0;
  for (size_t i = 0; i < std::min(k, group.size()); ++i) found += group[i].relevant ? 1 : 0;
  return found;
}

double Gain(const Group& group, size_t k) {
  double gain = 0;
  for (size_t i = 0; i < std::min(k, group.size()); ++i)
    gain += group[i].relevant ? 1 / std::log2(static_cast<double>(i) + 2) : 0;
  return gain;
}

double Ndcg(const Group& group, size_t k) {
  Group best = group;
  std::sort(best.begin(), best.end(),
            [](const Scored& a, const Scored& b) { return a.relevant > b.relevant; });
  return Gain(group, k) / Gain(best, k);
}

double ReciprocalRank(const Group& group) {
  for (size_t i = 0; i < group.size(); ++i) {
    if (group[i].relevant) return 1 / static_cast<double>(i + 1);
  }
  return 0;
}

TEST(GroupedMetrics, AgreesWithTheDefinitions) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const Records r = TiedRecords(seed, 40);
    GroupedMetrics metrics;
    MU_ASSERT_OK(metrics.Add(r.All()));
    for (const size_t k : {1, 2, 3, 5, 20}) {
      SCOPED_TRACE(k);
      const auto at = static_cast<int64_t>(k);
      EXPECT_NEAR(metrics.recall(at).value,
                  MeanOverGroups(r,
                                 [&](const Group& group) {
                                   return RelevantIn(group, k) / RelevantIn(group, group.size());
                                 }),
                  1e-12);
      EXPECT_NEAR(metrics.hit_rate(at).value,
                  MeanOverGroups(
                      r, [&](const Group& group) { return RelevantIn(group, k) > 0 ? 1.0 : 0.0; }),
                  1e-12);
      EXPECT_NEAR(metrics.ndcg(at).value,
                  MeanOverGroups(r, [&](const Group& group) { return Ndcg(group, k); }), 1e-12);
    }
    EXPECT_NEAR(metrics.mrr().value, MeanOverGroups(r, ReciprocalRank), 1e-12);
  }
}

TEST(GroupedMetrics, TheAreaIsWeightedByRecordsAndLeavesOutGroupsOfOneClass) {
  const Records r = TiedRecords(9, 60);
  GroupedMetrics metrics;
  MU_ASSERT_OK(metrics.Add(r.All()));
  double sum = 0, records = 0;
  uint64_t used = 0;
  for (const Group& group : GroupsOf(r)) {
    double good = 0, pairs = 0;
    for (const Scored& a : group) {
      for (const Scored& b : group) {
        if (!a.relevant || b.relevant) continue;
        ++pairs;
        good += a.score > b.score ? 1 : a.score == b.score ? 0.5 : 0;
      }
    }
    if (pairs == 0) continue;
    ++used;
    sum += good / pairs * static_cast<double>(group.size());
    records += static_cast<double>(group.size());
  }
  const GroupedMetrics::Mean mean = metrics.gauc();
  EXPECT_NEAR(mean.value, sum / records, 1e-12);
  EXPECT_EQ(mean.groups, 60u);
  EXPECT_EQ(mean.groups_used, used);
  EXPECT_LT(used, 60u);
}

TEST(GroupedMetrics, ManyEqualScoresAreLikeARandomOrder) {
  Records r;
  for (int i = 0; i < 1000; ++i) {
    r.groups.push_back(7);
    r.predictions.push_back(0.5f);
    r.labels.push_back(i == 999 ? 1.0f : 0.0f);
  }
  GroupedMetrics metrics;
  MU_ASSERT_OK(metrics.Add(r.All()));
  EXPECT_NEAR(metrics.hit_rate(10).value, 0.01, 1e-12);
  EXPECT_NEAR(metrics.recall(10).value, 0.01, 1e-12);
  EXPECT_EQ(metrics.gauc().value, 0.5);
}

TEST(GroupedMetrics, RefusesWhatHasNoOrderAndAddsNothing) {
  GroupedMetrics metrics;
  const auto add = [&](std::vector<float> scores, std::vector<float> labels,
                       std::vector<int64_t> groups) {
    return metrics.Add({.predictions = scores, .labels = labels, .groups = groups});
  };
  EXPECT_THAT(add({NAN}, {1}, {1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no place in an order")));
  EXPECT_THAT(add({1}, {2}, {1}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(add({1}, {1}, {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("group")));
  EXPECT_EQ(metrics.count(), 0u);
  EXPECT_TRUE(std::isnan(metrics.ndcg(10).value));
  MU_ASSERT_OK(add({-5, 3}, {0, 0}, {1, 2}));
  EXPECT_TRUE(std::isnan(metrics.ndcg(10).value));
  EXPECT_EQ(metrics.ndcg(10).groups, 2u);
}

}  // namespace
}  // namespace mu
