#include "coordinator/soak/soak_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "coordinator/soak/soak_cost.h"
#include "tests/coordinator/soak/soak_runs.h"

namespace mu {
namespace {

using testing::Calm;
using testing::Disturbed;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

SoakVerdict Last(const std::vector<SoakRecord>& records) { return Judge(records, {}).back(); }

TEST(SoakJudge, ComparesWithTheMedianOfUndisturbedRuns) {
  const std::vector<SoakRecord> records = {Calm(90), Calm(100), Calm(500), Disturbed(150)};
  const SoakVerdict verdict = Last(records);
  EXPECT_DOUBLE_EQ(verdict.slowdown, 1.5);
  EXPECT_FALSE(verdict.flagged());
}

TEST(SoakJudge, AnUndisturbedRunAfterwardsDoesWhereNoneWasBefore) {
  const std::vector<SoakRecord> records = {Disturbed(150), Calm(100)};
  EXPECT_DOUBLE_EQ(Judge(records, {}).front().slowdown, 1.5);
}

TEST(SoakJudge, OtherSetupsAndJobsAreNotCompared) {
  SoakRecord setup = Calm(1), job = Calm(1), failed = Calm(1);
  setup.setup = "b";
  job.job = "other";
  failed.status = "failed";
  const std::vector<SoakRecord> records = {setup, job, failed, Disturbed()};
  EXPECT_FALSE(Last(records).calm.has_value());
}

TEST(SoakJudge, WhatDidNotComeToItsEndIsWrong) {
  SoakRecord hung = Disturbed();
  hung.status = "hung";
  hung.error = "it still ran after 1h";
  const std::vector<SoakRecord> records = {Calm(), hung};
  EXPECT_THAT(Last(records).wrong, ElementsAre("it ended as hung: it still ran after 1h"));
}

TEST(SoakJudge, WhatSomebodyStoppedSaysNothing) {
  SoakRecord stopped = Disturbed();
  stopped.status = "stopped";
  stopped.samples = 3;
  EXPECT_FALSE(Last({Calm(), stopped}).flagged());
}

TEST(SoakJudge, OtherNumbersOfSamplesAreWrongWhereTheyMustBeEqual) {
  SoakRecord run = Disturbed();
  run.samples = 999;
  std::vector<SoakRecord> records = {Calm(), run};
  EXPECT_THAT(Last(records).wrong, ElementsAre("it used 999 samples, undisturbed 1000"));
  records.back().exact = false;
  EXPECT_THAT(Last(records).wrong, IsEmpty());
}

TEST(SoakJudge, QualityIsJudgedByTheMetricsBetterSide) {
  EXPECT_THAT(Last({Calm(100, 0.8), Disturbed(100, 0.79)}).worse,
              ElementsAre("auc: 0.7900, undisturbed 0.8000"));
  EXPECT_FALSE(Last({Calm(100, 0.8), Disturbed(100, 0.9)}).flagged());
  EXPECT_FALSE(Last({Calm(100, 0.8), Disturbed(100, 0.796)}).flagged());
  std::vector<SoakRecord> records = {Calm(100, 0.8), Disturbed(100, 0.9)};
  for (SoakRecord& record : records) record.metric = "income.rmse";
  EXPECT_THAT(Last(records).worse, ElementsAre("income.rmse: 0.9000, undisturbed 0.8000"));
}

TEST(SoakJudge, LostQualityIsPositiveWhereItIsWorse) {
  std::vector<SoakRecord> records = {Calm(100, 0.8), Disturbed(100, 0.77)};
  EXPECT_THAT(Last(records).quality_lost, Optional(DoubleNear(0.03, 1e-9)));
  for (SoakRecord& record : records) record.metric = "rmse";
  EXPECT_THAT(Last(records).quality_lost, Optional(DoubleNear(-0.03, 1e-9)));
  for (SoakRecord& record : records) record.metric = "of my own";
  EXPECT_EQ(Last(records).quality_lost, std::nullopt) << "which is better is not known";
  EXPECT_EQ(Last({Calm(100, 0.8)}).quality_lost, std::nullopt) << "it is undisturbed itself";
}

// Who soaks has named another one since.
TEST(SoakJudge, QualitiesByOtherMetricsAreNotCompared) {
  const auto by = [](SoakRecord record, const std::string& metric) {
    record.metric = metric;
    return record;
  };
  const SoakRecord run = by(Disturbed(150, 0.5), "logloss");
  std::vector<SoakRecord> records = {Calm(100, 0.3), Disturbed(150, 0.3), Disturbed(150, 0.3),
                                     Disturbed(150, 0.3), run};
  EXPECT_THAT(Last(records).worse, IsEmpty());
  EXPECT_DOUBLE_EQ(Last(records).slowdown, 1.5) << "time is time";
  EXPECT_EQ(Last(records).quality_lost, std::nullopt);
  records.insert(records.begin(), by(Calm(100, 0.3), "logloss"));
  EXPECT_THAT(Last(records).worse, ElementsAre("logloss: 0.5000, undisturbed 0.3000"))
      << "the newest undisturbed run has another metric";
  records[2].metric = records[3].metric = records[4].metric = "logloss";
  EXPECT_THAT(Last(records).worse, ElementsAre("logloss: 0.5000, undisturbed 0.3000",
                                               HasSubstr("worse than the median of the 3 before")));
}

TEST(SoakJudge, AMetricWithoutAValueIsTold) {
  SoakRecord run = Disturbed(100, std::nan(""));
  EXPECT_THAT(Last({Calm(), run}).worse, ElementsAre(HasSubstr("no value of auc")));
  EXPECT_THAT(Last({Calm(100, std::nan(""))}).worse, SizeIs(1)) << "undisturbed as well";
  run.metric = "";
  EXPECT_FALSE(Last({Calm(), run}).flagged()) << "the job has none";
}

TEST(SoakJudge, TimeIsComparedWithEnoughEarlierRunsOfTheSameKind) {
  std::vector<SoakRecord> records = {Calm(), Disturbed(150), Disturbed(150), Disturbed(200)};
  EXPECT_FALSE(Last(records).flagged());
  records.insert(records.begin(), Disturbed(150));
  EXPECT_THAT(Last(records).worse, ElementsAre(HasSubstr("1.33 times the median of the 3 before")));
  // Other preemptions take other times.
  for (size_t i = 0; i + 1 < records.size(); ++i) {
    if (records[i].disturbed()) records[i].preemption = "ps:kill:every=1s";
  }
  EXPECT_FALSE(Last(records).flagged());
}

TEST(SoakJudge, UndisturbedRunsMayBecomeWorse) {
  EXPECT_THAT(Last({Calm(), Calm(), Calm(), Calm(130, 0.7)}).worse,
              ElementsAre(HasSubstr("time undisturbed: 130 s"), HasSubstr("0.1000 worse")));
}

TEST(SoakJudge, RecoveryIsJudgedByRole) {
  SoakRecord slow = Disturbed();
  slow.losses["worker"].recovery_seconds = 15;
  EXPECT_THAT(Last({Calm(), Disturbed(), Disturbed(), Disturbed(), slow}).worse,
              ElementsAre(HasSubstr("recovery from the loss of a worker: 5 s, 2.50 times")));
  // Seven seconds more of 150.
  slow.losses["worker"].recovery_seconds = 13;
  EXPECT_FALSE(Last({Calm(), Disturbed(), Disturbed(), Disturbed(), slow}).flagged());
}

TEST(SoakJudge, OnlyTheNewestRunsCount) {
  std::vector<SoakRecord> records = {Calm()};
  for (int i = 0; i < 20; ++i) records.push_back(Disturbed(1000));
  for (int i = 0; i < 10; ++i) records.push_back(Disturbed(100));
  records.push_back(Disturbed(150));
  EXPECT_THAT(Last(records).worse,
              ElementsAre(HasSubstr("1.50 times the median of the 10 before")));
}

TEST(SoakCost, PaysPreemptibleMachinesForAsLongAsTheRunTook) {
  const std::vector<SoakRecord> records = {Calm(3600), Disturbed(7200)};
  const SoakPrices prices = {.coordinator = {1, {}}, .worker = {2, 0.5}, .ps = {3, 1}};
  const auto verdicts = Judge(records, {});
  const std::vector<RoleCost> costs = CostOf(verdicts.back(), prices);
  ASSERT_EQ(costs.size(), 3u);
  EXPECT_EQ(costs[0].on_demand, 1);
  EXPECT_EQ(costs[0].preemptible, 2);  // on demand all the same
  EXPECT_EQ(costs[1].machines, 4);
  EXPECT_EQ(costs[1].on_demand, 8);
  EXPECT_EQ(costs[1].preemptible, 4);
  EXPECT_EQ(costs[2].on_demand, 6);
  EXPECT_EQ(costs[2].preemptible, 4);
  EXPECT_EQ(TotalOf(costs).machines, 7);
  EXPECT_EQ(TotalOf(costs).on_demand, 15);
  EXPECT_EQ(TotalOf(costs).preemptible, 10);
}

}  // namespace
}  // namespace mu
