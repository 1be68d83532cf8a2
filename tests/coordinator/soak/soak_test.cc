#include "coordinator/soak/soak.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/env/file_lock.h"
#include "coordinator/soak/soak_page.h"
#include "tests/coordinator/soak/soak_runs.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

class SoakTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(TempDirectory made, TempDirectory::Create("soak"));
    directory_ = std::make_unique<TempDirectory>(std::move(made));
    options_.record = JoinPath(directory_->path(), "record");
    options_.tell = [this](const std::string& line) { told_.push_back(line); };
  }
  // Its runs end as `status` says, the disturbed ones in twice the time.
  SoakJob Job(const std::string& name, const std::string& status = "done") {
    return {name, "a", [this, name, status](const SoakRun& run) -> absl::StatusOr<SoakRecord> {
              EXPECT_TRUE(DirectoryExists(run.directory));
              runs_.push_back(absl::StrCat(name, " ", run.chaos));
              limits_.push_back(run.limit);
              SoakRecord record = run.chaos.empty() ? testing::Calm(10) : testing::Disturbed(20);
              if (!run.chaos.empty()) record.status = status;
              return record;
            }};
  }
  std::string Page() const {
    return ReadFile(JoinPath(options_.record, "index.html")).value_or("");
  }

  std::unique_ptr<TempDirectory> directory_;
  SoakOptions options_;
  std::vector<std::string> told_, runs_;
  std::vector<absl::Duration> limits_;
};

TEST_F(SoakTest, JobsTakeTurnsAndEachHasItsUndisturbedRun) {
  options_.preemption = "worker:kill:every=1s";
  options_.rounds = 2;
  MU_ASSERT_OK_AND_ASSIGN(const SoakResult result, Soak(options_, {Job("a"), Job("b")}));
  EXPECT_EQ(result.runs, 6u);
  EXPECT_EQ(result.flagged, 0u);
  EXPECT_THAT(
      runs_,
      ElementsAre("a ", "a worker:kill:every=1s,after=0", "b ", "b worker:kill:every=1s,after=19s",
                  "a worker:kill:every=1s,after=38s", "b worker:kill:every=1s,after=57s"));
  EXPECT_EQ(limits_[0], absl::InfiniteDuration());
  EXPECT_EQ(limits_[1], absl::Minutes(10) + absl::Seconds(200));
  EXPECT_THAT(told_[1],
              HasSubstr("a, with preemptions: done after 20.0 s (2.00 times undisturbed)"));
  MU_ASSERT_OK_AND_ASSIGN(const auto left, ListDirectory(JoinPath(options_.record, "runs")));
  EXPECT_THAT(left, ElementsAre());
  EXPECT_THAT(Page(), AllOf(HasSubstr("<h2>a</h2>"), HasSubstr("<h2>b</h2>")));
}

TEST_F(SoakTest, ALaterSoakGoesOnWithTheRecord) {
  MU_ASSERT_OK(Soak(options_, {Job("a")}).status());
  MU_ASSERT_OK(Soak(options_, {Job("a")}).status());
  MU_ASSERT_OK_AND_ASSIGN(const auto records, ReadRecords(options_.record));
  EXPECT_EQ(records.size(), 4u);
  EXPECT_THAT(runs_[3], HasSubstr("after=19s"));
}

TEST_F(SoakTest, OtherPreemptionsBeginAnew) {
  options_.preemption = "worker:kill:every=1s";
  MU_ASSERT_OK(Soak(options_, {Job("a")}).status());
  options_.preemption = "worker:kill:every=2s";
  MU_ASSERT_OK(Soak(options_, {Job("a")}).status());
  EXPECT_EQ(runs_[3], "a worker:kill:every=2s,after=0");
}

TEST_F(SoakTest, AnUndisturbedRunComesAgainAfterAWhile) {
  options_.rounds = 5;
  options_.calm_every = 2;
  MU_ASSERT_OK_AND_ASSIGN(const SoakResult result, Soak(options_, {Job("a")}));
  EXPECT_EQ(result.runs, 8u);
  EXPECT_EQ(std::count(runs_.begin(), runs_.end(), "a "), 3);
}

TEST_F(SoakTest, WhatEndsBadlyIsFlaggedAndKept) {
  MU_ASSERT_OK_AND_ASSIGN(const SoakResult result, Soak(options_, {Job("a/b", "failed")}));
  EXPECT_EQ(result.runs, 2u);
  EXPECT_EQ(result.flagged, 1u);
  MU_ASSERT_OK_AND_ASSIGN(const auto left, ListDirectory(JoinPath(options_.record, "runs")));
  EXPECT_THAT(left, ElementsAre("a_b-2"));
  EXPECT_THAT(told_.back(), HasSubstr("a_b-2"));
  EXPECT_THAT(Page(), HasSubstr("it ended as failed"));
}

TEST_F(SoakTest, EndsWhenItIsStopped) {
  std::atomic<int> stop{0};
  options_.stop = &stop;
  options_.rounds = std::nullopt;
  SoakJob job = Job("a");
  const auto train = job.train;
  job.train = [&](const SoakRun& run) {
    if (runs_.size() == 3) stop = 1;
    auto record = train(run);
    if (stop > 0) record->status = "stopped";
    return record;
  };
  MU_ASSERT_OK_AND_ASSIGN(const SoakResult result, Soak(options_, {job}));
  EXPECT_EQ(runs_.size(), 4u);
  EXPECT_EQ(result.runs, 3u);
  EXPECT_EQ(result.flagged, 0u);
}

TEST_F(SoakTest, BeginsNoRunAfterItsTime) {
  options_.rounds = std::nullopt;
  options_.lasts = absl::ZeroDuration();
  MU_ASSERT_OK_AND_ASSIGN(const SoakResult result, Soak(options_, {Job("a")}));
  EXPECT_EQ(result.runs, 0u);
  EXPECT_THAT(Page(), HasSubstr("There is no run yet"));
}

TEST_F(SoakTest, AJobThatIsWrongEndsIt) {
  const SoakJob wrong = {"a", "a", [](const SoakRun&) -> absl::StatusOr<SoakRecord> {
                           return absl::InvalidArgumentError("the job is wrong");
                         }};
  EXPECT_THAT(Soak(options_, {wrong}),
              StatusIs(absl::StatusCode::kInvalidArgument, "the job is wrong"));
  MU_ASSERT_OK_AND_ASSIGN(const auto records, ReadRecords(options_.record));
  EXPECT_TRUE(records.empty());
}

TEST_F(SoakTest, RefusesWrongPreemptionsAndNoJobs) {
  EXPECT_THAT(Soak(options_, {}), StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  options_.preemption = "worker:eat:every=1s";
  EXPECT_THAT(Soak(options_, {Job("a")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("eat")));
  options_.preemption = "worker:kill:every=1s, after=3s";
  EXPECT_THAT(Soak(options_, {Job("a")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("leave it out")));
}

TEST_F(SoakTest, OneSoakAtATimeWritesARecord) {
  MU_ASSERT_OK(MakeDirectories(options_.record));
  FileLock lock;
  MU_ASSERT_OK(lock.Take(JoinPath(options_.record, "lock"), "somebody"));
  EXPECT_THAT(Soak(options_, {Job("a")}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("somebody")));
}

TEST(SoakPage, ShowsCostsAndEscapesNames) {
  std::vector<SoakRecord> records = {testing::Calm(3600), testing::Disturbed(7200)};
  for (SoakRecord& record : records) record.job = "<script>";
  const SoakPrices prices = {
      .currency = "EUR", .coordinator = {1, {}}, .worker = {2, 0.5}, .ps = {3, 1}};
  const std::string page = SoakPage(Judge(records, {}), prices);
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(
      page, AllOf(HasSubstr("EUR"), HasSubstr("<td>15.000000</td><td>10.000000</td><td>33%</td>")));
  EXPECT_THAT(
      page,
      HasSubstr("<td>worker</td><td>4</td><td>2.00 s</td><td>4.00 s</td><td>2.0</td><td>0.0</td>"));
  EXPECT_THAT(SoakPage(Judge(records, {}), std::nullopt), Not(HasSubstr("EUR")));
}

TEST(SoakPage, ShowsTheLongestRecoveryBesideTheMean) {
  std::vector<SoakRecord> records = {testing::Calm(), testing::Disturbed(), testing::Disturbed(),
                                     testing::Disturbed()};
  records[2].losses["worker"].longest_recovery_seconds = 5.5;
  records[3].losses["worker"].longest_recovery_seconds.reset();
  EXPECT_THAT(SoakPage(Judge(records, {}), std::nullopt),
              HasSubstr("<td>worker</td><td>12</td><td>2.00 s</td><td>5.50 s</td>"));
  // No run says it.
  for (SoakRecord& record : records) {
    for (auto& [role, losses] : record.losses) losses.longest_recovery_seconds.reset();
  }
  EXPECT_THAT(SoakPage(Judge(records, {}), std::nullopt),
              HasSubstr("<td>worker</td><td>12</td><td>2.00 s</td><td></td>"));
}

TEST(SoakPage, ShowsEachRunAgainstUndisturbedAndUntilItsWorkWentOn) {
  std::vector<SoakRecord> records = {testing::Calm(100, 0.8), testing::Disturbed(150, 0.79),
                                     testing::Disturbed(150, 0.83)};
  records[1].losses["worker"].recovery_seconds = 15;
  SoakLosses& servers = records[1].losses["psserver"];
  servers.count = 4;
  servers.recovered = 2;
  servers.recovery_seconds = 3;
  servers.longest_recovery_seconds = 2.5;
  std::string page = SoakPage(Judge(records, {}), std::nullopt);
  EXPECT_THAT(page, HasSubstr("<td>0.8000</td><td></td><td class=\"text\"></td>"
                              "<td class=\"text\"></td><td>0</td>"))
      << "undisturbed";
  EXPECT_THAT(page, HasSubstr("<td>0.7900</td><td>-0.0100</td>"
                              "<td class=\"text\">4 psserver, 4 worker</td>"
                              "<td class=\"text\">psserver 1.50 s, worker 5.00 s</td><td>8</td>"));
  EXPECT_THAT(page, HasSubstr("<td>0.8300</td><td>+0.0300</td><td class=\"text\">4 worker</td>"
                              "<td class=\"text\">worker 2.00 s</td><td>8</td>"));
  // Over the runs: of each role those that lost some.
  EXPECT_THAT(page, AllOf(HasSubstr("psserver: seconds until work went on, mean"),
                          HasSubstr("worker: seconds until work went on, mean")));
  EXPECT_THAT(page, AllOf(HasSubstr("version 1.2.3: 1.5;"), HasSubstr("version 1.2.3: 5;"),
                          HasSubstr("version 1.2.3: 2</title>")));
  // What is less is better.
  for (SoakRecord& record : records) record.metric = "rmse";
  EXPECT_THAT(SoakPage(Judge(records, {}), std::nullopt),
              AllOf(HasSubstr("<td>0.7900</td><td>+0.0100</td>"),
                    HasSubstr("<td>0.8300</td><td>-0.0300</td>")));
  // The run went on after no loss.
  records.pop_back();
  records[1].losses.erase("psserver");
  records[1].losses["worker"].recovered = 0;
  page = SoakPage(Judge(records, {}), std::nullopt);
  EXPECT_THAT(page,
              HasSubstr("<td class=\"text\">4 worker</td><td class=\"text\"></td><td>8</td>"));
  EXPECT_THAT(page, Not(HasSubstr("seconds until work went on")));
}

TEST(SoakPage, PlotsTheNewestRunsMetricOnly) {
  std::vector<SoakRecord> records = {testing::Calm(100, 0.71234), testing::Calm(100, 0.61234)};
  EXPECT_THAT(SoakPage(Judge(records, {}), std::nullopt), HasSubstr(": 0.71234"));
  records[1].metric = "logloss";
  EXPECT_THAT(SoakPage(Judge(records, {}), std::nullopt),
              AllOf(Not(HasSubstr("0.71234")), HasSubstr(": 0.61234")));
}

TEST(SoakPage, ShowsLossesByKind) {
  std::vector<SoakRecord> records = {testing::Calm(), testing::Disturbed(), testing::Disturbed()};
  records[2].failures[0].recovered_ms = 500;
  records[2].failures.push_back(
      {.role = "worker", .kind = "died", .at_seconds = 60, .recovered_ms = 1500});
  records[2].failures.push_back({.role = "worker", .kind = "<left>", .at_seconds = 70});
  const std::string page = SoakPage(Judge(records, {}), std::nullopt);
  EXPECT_THAT(page, HasSubstr("<td>worker</td><td class=\"text\">died</td><td>3</td>"
                              "<td>1.50 s</td><td>4.00 s</td><td>14</td>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"text\">silent</td><td>2</td><td></td><td></td>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"text\">&lt;left&gt;</td><td>1</td>"));
  // Two of the first run's.
  EXPECT_THAT(page, HasSubstr("The table by kind lacks 2 losses"));
  for (SoakRecord& record : records) {
    if (record.disturbed()) record.losses["worker"].count = record.failures.size();
  }
  EXPECT_THAT(SoakPage(Judge(records, {}), std::nullopt), Not(HasSubstr("lacks")));
  // Of older versions.
  for (SoakRecord& record : records) record.failures.clear();
  EXPECT_THAT(SoakPage(Judge(records, {}), std::nullopt), Not(HasSubstr("by kind")));
}

TEST_F(SoakTest, ARunsTimeIsMeasuredUnlessItSaysIt) {
  SoakJob job = Job("a");
  const auto train = job.train;
  job.train = [&](const SoakRun& run) {
    auto record = train(run);
    if (run.chaos.empty()) record->seconds = 0;
    return record;
  };
  MU_ASSERT_OK(Soak(options_, {job}).status());
  MU_ASSERT_OK_AND_ASSIGN(const auto records, ReadRecords(options_.record));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_GT(records[0].seconds, 0);
  EXPECT_LT(records[0].seconds, 10) << "not what the job says of other runs";
  EXPECT_EQ(records[1].seconds, 20);
}

TEST(SoakPage, ShowsJobsByTheirNewestRun) {
  std::vector<SoakRecord> records = {testing::Calm(), testing::Calm(), testing::Calm()};
  records[0].job = records[2].job = "newest";
  const std::string page = SoakPage(Judge(records, {}), std::nullopt);
  EXPECT_LT(page.find("<h2>newest"), page.find("<h2>clicks"));
  EXPECT_THAT(page, HasSubstr("2 runs"));
}

}  // namespace
}  // namespace mu
