// The table of metrics: names, what is wrong with them, merging, reasons of what is not defined.
#include "common/metrics/metric_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/common/metrics/records.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::BinaryRecords;
using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::MultiClassRecords;
using ::testing::Not;
using testing::Records;
using testing::RegressionRecords;
using testing::StatusIs;

constexpr Task kTasks[] = {Task::kBinaryClassification, Task::kRegression, Task::kMultiClass,
                           Task::kRanking};

Records RecordsOf(Task task, uint64_t seed) {
  switch (task) {
    case Task::kRegression:
      return RegressionRecords(seed, 300);
    case Task::kMultiClass:
      return MultiClassRecords(seed, 300, 7, /*ties=*/true);
    default:
      return BinaryRecords(seed, 300, /*ties=*/true);
  }
}

// Every metric of a task, with some parameter.
std::vector<std::string> AllMetrics(Task task) {
  std::vector<std::string> names;
  for (const MetricDef& def : MetricTable()) {
    if (def.task != task) continue;
    if (def.parameter != MetricParameter::kK) names.emplace_back(def.name);
    if (def.parameter == MetricParameter::kK) names.push_back(absl::StrCat(def.name, "@3"));
    if (def.parameter == MetricParameter::kThreshold)
      names.push_back(absl::StrCat(def.name, "@0.3"));
  }
  return names;
}

TEST(MetricSet, EveryMetricIsTheSameForAnyOrderAndCut) {
  for (const Task task : kTasks) {
    SCOPED_TRACE(TaskName(task));
    const Records records = RecordsOf(task, 11);
    const std::vector<std::string> names = AllMetrics(task);
    ASSERT_FALSE(names.empty());
    MU_ASSERT_OK_AND_ASSIGN(MetricSet whole, MetricSet::Create(task, names, true));
    MU_ASSERT_OK(whole.Add(records.All()));
    SplitMix random(3);
    for (int round = 0; round < 5; ++round) {
      std::vector<size_t> order(records.size());
      std::iota(order.begin(), order.end(), size_t{0});
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
      std::vector<MetricSet> parts;
      for (size_t begin = 0; begin < order.size();) {
        const size_t end = std::min<size_t>(order.size(), begin + 1 + random.Below(120));
        MU_ASSERT_OK_AND_ASSIGN(MetricSet part, MetricSet::Create(task, names, true));
        MU_ASSERT_OK(part.Add(records.Some(order, begin, end).All()));
        parts.push_back(std::move(part));
        begin = end;
      }
      while (parts.size() > 1) {
        const size_t from = random.Below(parts.size() - 1) + 1;
        parts[0].Merge(parts[from]);
        std::swap(parts[from], parts.back());
        parts.pop_back();
      }
      const std::vector<MetricValue> expected = whole.Values(), merged = parts[0].Values();
      ASSERT_EQ(expected.size(), names.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(std::isfinite(expected[i].value)) << names[i];
        EXPECT_EQ(merged[i].value, expected[i].value) << names[i];
        EXPECT_EQ(merged[i].name, names[i]);
      }
    }
  }
}

TEST(MetricSet, EveryUndefinedMetricSaysWhy) {
  for (const Task task : kTasks) {
    MU_ASSERT_OK_AND_ASSIGN(const MetricSet empty, MetricSet::Create(task, AllMetrics(task), true));
    for (const MetricValue& metric : empty.Values()) {
      EXPECT_TRUE(std::isnan(metric.value)) << metric.name;
      EXPECT_EQ(metric.undefined, "there are no records") << metric.name;
    }
  }
  const auto reason = [](const std::string& name, float prediction, float label,
                         float weight) -> std::string {
    auto set = MetricSet::Create(Task::kBinaryClassification, {name}, true);
    MU_EXPECT_OK(set.status());
    const std::vector<float> predictions(2, prediction), labels(2, label), weights(2, weight);
    const std::vector<int64_t> groups(2, 5);
    MU_EXPECT_OK(set->Add(
        {.predictions = predictions, .labels = labels, .groups = groups, .weights = weights}));
    EXPECT_EQ(std::isnan(set->Values()[0].value), !set->Values()[0].undefined.empty());
    return set->Values()[0].undefined;
  };
  EXPECT_EQ(reason("auc", 0.3f, 0, 1), "no label is 1");
  EXPECT_EQ(reason("auc", 0.3f, 1, 1), "all labels are 1");
  EXPECT_EQ(reason("calibration", 0.3f, 0, 1), "no label is 1");
  EXPECT_EQ(reason("logloss", 0.3f, 0, 0), "every record's weight is 0");
  EXPECT_EQ(reason("logloss", 0.3f, 0, 1), "");
  EXPECT_EQ(reason("precision", 0.3f, 1, 1), "no prediction reaches 0.5");
  EXPECT_EQ(reason("precision@0.2", 0.3f, 0, 1), "");
  EXPECT_EQ(reason("recall", 0.3f, 0, 1), "no label is 1");
  EXPECT_EQ(reason("f1", 0.3f, 0, 1), "no label is 1, and no prediction reaches 0.5");
  EXPECT_EQ(reason("f1", 0.3f, 1, 1), "");
  EXPECT_EQ(reason("f1", 0.6f, 0, 1), "");
  MU_ASSERT_OK_AND_ASSIGN(MetricSet r2, MetricSet::Create(Task::kRegression, {"r2"}, false));
  MU_ASSERT_OK(r2.Add({.predictions = {1, 2}, .labels = {3, 3}}));
  EXPECT_EQ(r2.Values()[0].undefined, "all labels are equal");
  EXPECT_EQ(reason("gauc", 0.3f, 1, 1), "each of the 1 groups has labels of one kind only");
  EXPECT_EQ(reason("ndcg@10", 0.3f, 0, 1), "each of the 1 groups has no label that is 1");
}

TEST(MetricSet, NotesGroupsThatAreLeftOut) {
  MU_ASSERT_OK_AND_ASSIGN(MetricSet set,
                          MetricSet::Create(Task::kBinaryClassification, {"mrr"}, true));
  MU_ASSERT_OK(
      set.Add({.predictions = {0.1f, 0.2f, 0.3f}, .labels = {1, 0, 0}, .groups = {1, 1, 2}}));
  EXPECT_EQ(set.Values()[0].value, 0.5);
  EXPECT_EQ(set.Values()[0].note, "leaves out 1 of 2 groups, which have no label that is 1");
}

TEST(MetricSet, SaysWhatIsWrongWithAName) {
  const auto wrong = [](Task task, const std::string& name, bool has_group = true) {
    const auto set = MetricSet::Create(task, {name}, has_group);
    EXPECT_THAT(set, HasCode(absl::StatusCode::kInvalidArgument)) << name;
    return std::string(set.status().message());
  };
  constexpr Task kBinary = Task::kBinaryClassification;
  EXPECT_THAT(wrong(kBinary, "acuracy"), HasSubstr("did you mean `accuracy`?"));
  EXPECT_THAT(wrong(kBinary, "acc"), HasSubstr("did you mean `accuracy`?"));
  EXPECT_THAT(wrong(kBinary, "accuracy@2"),
              ::testing::EndsWith("; write accuracy or accuracy@0.3"));
  EXPECT_THAT(wrong(kBinary, "ndcg"), HasSubstr("write ndcg@10"));
  EXPECT_THAT(wrong(kBinary, "ndcg@0"), HasSubstr("write ndcg@10"));
  EXPECT_THAT(wrong(kBinary, "ndcg@ten"), HasSubstr("no number behind the @"));
  EXPECT_THAT(wrong(kBinary, "ndcg@-1"), HasSubstr("no number behind the @"));
  EXPECT_THAT(wrong(kBinary, "auc@3"), HasSubstr("write auc"));
  EXPECT_THAT(wrong(kBinary, "precision@2"), HasSubstr("write precision or precision@0.3"));
  EXPECT_THAT(wrong(kBinary, "rmse"), HasSubstr("which is binary classification; it has auc, "));
  EXPECT_THAT(wrong(Task::kRegression, "auc"), HasSubstr("it has rmse, mae, calibration"));
  EXPECT_THAT(wrong(kBinary, "gauc", /*has_group=*/false), HasSubstr("evaluation.group"));
  EXPECT_THAT(wrong(kBinary, ""), HasSubstr("there is no metric ``"));
}

TEST(MetricSet, ANumberBehindTheNameChoosesTheMetric) {
  MU_ASSERT_OK_AND_ASSIGN(MetricSet set, MetricSet::Create(Task::kBinaryClassification,
                                                           {"recall@1", "recall@0.5"}, true));
  MU_ASSERT_OK(set.Add({.predictions = {0.4f, 0.9f}, .labels = {1, 0}, .groups = {1, 1}}));
  EXPECT_EQ(set.Values()[0].value, 0) << "of the first of the group";
  EXPECT_EQ(set.Values()[1].value, 0) << "of the probabilities from 0.5";
  MU_ASSERT_OK(set.Add({.predictions = {0.6f}, .labels = {1}, .groups = {2}}));
  EXPECT_EQ(set.Values()[0].value, 0.5);
  EXPECT_EQ(set.Values()[1].value, 0.5);
  EXPECT_THAT(set.WithoutWeights(), ElementsAre("recall@1"));
}

TEST(MetricSet, DefaultsAreMetricsOfTheirTask) {
  for (const Task task : kTasks) {
    for (const bool has_group : {false, true}) {
      if (task == Task::kRanking && !has_group) continue;  // an order needs groups
      MU_EXPECT_OK(MetricSet::Create(task, DefaultMetrics(task, has_group), has_group).status());
    }
  }
  EXPECT_THAT(DefaultMetrics(Task::kBinaryClassification, false),
              ElementsAre("auc", "logloss", "accuracy"));
  EXPECT_THAT(DefaultMetrics(Task::kRegression, false), ElementsAre("rmse", "mae"));
}

TEST(MetricSet, KnowsWhichValueIsBetter) {
  EXPECT_EQ(*BetterOf("auc"), Better::kGreater);
  EXPECT_EQ(*BetterOf("rmse"), Better::kLess);
  EXPECT_EQ(*BetterOf("income.logloss"), Better::kLess);
  EXPECT_EQ(*BetterOf("income.precision@0.3"), Better::kGreater);
  EXPECT_EQ(*BetterOf("calibration"), Better::kNearOne);
  EXPECT_THAT(BetterOf("income.acu"),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("`auc`")));
  EXPECT_EQ(Improvement(Better::kGreater, 0.75, 0.5), 0.25);
  EXPECT_EQ(Improvement(Better::kLess, 0.75, 0.5), -0.25);
  EXPECT_EQ(Improvement(Better::kNearOne, 0.75, 1.5), 0.25);
  EXPECT_TRUE(std::isnan(Improvement(Better::kLess, std::nan(""), 0.5)));
}

// A name says which value is better; it must not depend on the model.
TEST(MetricTable, TheBetterValueIsTheSameInEveryTask) {
  for (const MetricDef& def : MetricTable()) {
    for (const MetricDef& other : MetricTable()) {
      if (std::string(def.name) != other.name) continue;
      EXPECT_EQ(def.better, other.better) << def.name;
    }
  }
}

TEST(MetricTable, EachLineCanBeChosen) {
  for (const MetricDef& def : MetricTable()) {
    EXPECT_NE(std::string(def.doc), "");
    size_t same = 0;
    for (const MetricDef& other : MetricTable())
      same += std::string(def.name) == other.name && def.task == other.task &&
              def.parameter == other.parameter;
    EXPECT_EQ(same, 1u) << def.name << " stands twice";
  }
}

}  // namespace
}  // namespace mu
