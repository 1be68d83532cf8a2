#include "coordinator/soak/soak_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/env/file.h"
#include "tests/coordinator/soak/soak_runs.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

TEST(SoakRecord, ComesBackFromItsLine) {
  SoakRecord record = testing::Disturbed(12.5, 0.75);
  record.began = 1'795'000'000;
  record.error = "a \"text\"\nof two lines";
  record.exact = false;
  MU_ASSERT_OK_AND_ASSIGN(const SoakRecord read, FromJsonLine(ToJsonLine(record)));
  EXPECT_EQ(ToJsonLine(record).find('\n'), std::string::npos);
  EXPECT_EQ(ToJsonLine(read), ToJsonLine(record));
  EXPECT_EQ(read.error, record.error);
  EXPECT_EQ(read.preemption, record.preemption);
  EXPECT_EQ(read.began, record.began);
  EXPECT_FALSE(read.exact);
  EXPECT_EQ(read.quality, 0.75);
  EXPECT_EQ(read.losses.at("worker").recovery_seconds, 6);
  EXPECT_EQ(read.losses.at("worker").longest_recovery_seconds, 4);
  ASSERT_EQ(read.failures.size(), 2u);
  EXPECT_EQ(read.failures[0].role, "worker");
  EXPECT_EQ(read.failures[0].kind, "died");
  EXPECT_EQ(read.failures[0].at_seconds, 20.5);
  EXPECT_EQ(read.failures[0].recovered_ms, 4000);
  EXPECT_EQ(read.failures[0].steps_repeated, 7u);
  EXPECT_FALSE(read.failures[1].recovered_ms.has_value());
  EXPECT_EQ(read.failures_not_listed(), 2u);
  EXPECT_THAT(ToJsonLine(record), HasSubstr(R"("failures_not_listed":2})"));
}

TEST(SoakRecord, LinesOfOlderAndOfNewerVersionsAreRead) {
  MU_ASSERT_OK_AND_ASSIGN(
      const SoakRecord read,
      FromJsonLine(R"({"job": "a", "setup": "b", "status": "done", "weather": "fine", "losses":
          {"worker": {"count": 3, "recovered": 2, "recovery_seconds": 6, "noise": 1}}})"));
  EXPECT_TRUE(read.failures.empty());
  EXPECT_EQ(read.failures_not_listed(), 3u);
  EXPECT_EQ(read.losses.at("worker").recovery_seconds, 6);
  // It was not kept, and nothing is made up in its place.
  EXPECT_FALSE(read.losses.at("worker").longest_recovery_seconds.has_value());
  MU_ASSERT_OK_AND_ASSIGN(const SoakRecord again, FromJsonLine(ToJsonLine(read)));
  EXPECT_FALSE(again.losses.at("worker").longest_recovery_seconds.has_value());
}

TEST(SoakRecord, AQualityThatIsNotDefinedStaysSo) {
  MU_ASSERT_OK_AND_ASSIGN(const SoakRecord read,
                          FromJsonLine(ToJsonLine(testing::Calm(1, std::nan("")))));
  EXPECT_TRUE(std::isnan(read.quality));
}

class SoakRecordFile : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(TempDirectory made, TempDirectory::Create("soak"));
    directory_ = std::make_unique<TempDirectory>(std::move(made));
  }
  std::string Folder() const { return JoinPath(directory_->path(), "record"); }
  std::string File() const { return JoinPath(Folder(), "runs.jsonl"); }

  std::unique_ptr<TempDirectory> directory_;
};

TEST_F(SoakRecordFile, HasEachRunInOrder) {
  MU_ASSERT_OK_AND_ASSIGN(auto none, ReadRecords(Folder()));
  EXPECT_TRUE(none.empty());
  MU_ASSERT_OK(AddRecord(Folder(), testing::Calm(1)));
  MU_ASSERT_OK(AddRecord(Folder(), testing::Disturbed(2)));
  MU_ASSERT_OK_AND_ASSIGN(const auto records, ReadRecords(Folder()));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].seconds, 1);
  EXPECT_TRUE(records[1].disturbed());
}

TEST_F(SoakRecordFile, WhatACrashLeftOfALineIsMended) {
  MU_ASSERT_OK(AddRecord(Folder(), testing::Calm(1)));
  MU_ASSERT_OK(AppendToFile(File(), ToJsonLine(testing::Calm(2)).substr(0, 40)));
  MU_ASSERT_OK_AND_ASSIGN(auto records, ReadRecords(Folder()));
  EXPECT_EQ(records.size(), 1u);
  MU_ASSERT_OK(AddRecord(Folder(), testing::Calm(3)));
  MU_ASSERT_OK_AND_ASSIGN(records, ReadRecords(Folder()));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].seconds, 3);
}

TEST_F(SoakRecordFile, AWrongLineIsNamed) {
  MU_ASSERT_OK(AddRecord(Folder(), testing::Calm(1)));
  MU_ASSERT_OK(AppendToFile(File(), "{\"job\": \"a\"}\nno json\n"));
  const auto records = ReadRecords(Folder());
  EXPECT_THAT(records,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("runs.jsonl:2: it lacks")));
}

TEST(SoakReport, SaysWhatLossesCost) {
  SoakRecord record;
  MU_ASSERT_OK(FillFromReport(R"({"status": "done", "workers": 3, "ps": 2, "train_seconds": 4.5,
      "samples": 70, "steps": 7, "eval": {"examples": 9, "accuracy": 0.5, "auc": 0.7}, "failures": [
      {"role": "worker", "kind": "died", "recovered_ms": 250},
      {"role": "worker", "kind": "died", "recovered_ms": 500, "steps_repeated": 2},
      {"role": "worker", "kind": "died", "recovered_ms": null, "steps_repeated": 1},
      {"role": "worker", "kind": "left", "recovered_ms": null},
      {"role": "psserver", "kind": "silent", "recovered_ms": 1500, "updates_rolled_back": 8}]})",
                              &record));
  EXPECT_TRUE(record.done());
  EXPECT_EQ(record.workers, 3);
  EXPECT_EQ(record.samples, 70u);
  EXPECT_EQ(record.metric, "auc");
  EXPECT_EQ(record.quality, 0.7);
  const SoakLosses& workers = record.losses.at("worker");
  EXPECT_EQ(workers.count, 4u);
  EXPECT_EQ(workers.recovered, 3u);
  EXPECT_EQ(workers.recovery_seconds, 0.75);
  EXPECT_EQ(workers.longest_recovery_seconds, 0.5);
  EXPECT_EQ(workers.steps_repeated, 3u);
  EXPECT_EQ(record.losses.at("psserver").longest_recovery_seconds, 1.5);
  EXPECT_EQ(record.losses.at("psserver").updates_rolled_back, 8u);
  ASSERT_EQ(record.failures.size(), 5u);
  EXPECT_EQ(record.failures[1].recovered_ms, 500);
  EXPECT_EQ(record.failures[1].steps_repeated, 2u);
  EXPECT_FALSE(record.failures[2].recovered_ms.has_value());
  EXPECT_EQ(record.failures[3].kind, "left");
  EXPECT_EQ(record.failures[4].role, "psserver");
  EXPECT_EQ(record.failures_not_listed(), 0u);
}

// A report lists 1,000 of them, and the record some of those.
TEST(SoakReport, MoreLossesThanTheReportLists) {
  std::vector<std::string> listed;
  for (int i = 0; i < 1000; ++i) {
    listed.push_back(absl::StrCat(R"({"role": ")", i % 10 == 0 ? "psserver" : "worker",
                                  R"(", "kind": "died", "at_seconds": )", i,
                                  R"(, "recovered_ms": 100})"));
  }
  const std::string report = absl::StrCat(
      R"({"status": "done", "failures": [)", absl::StrJoin(listed, ","),
      R"(], "failure_totals": {"failures": 5400, "left": 100, "not_listed": 4500, "by_role": {
          "worker": {"failures": 4900, "left": 100, "recovered": 4899, "recovery_ms": 600000,
                     "longest_recovery_ms": 30500, "steps_repeated": 70, "updates_rolled_back": 0},
          "psserver": {"failures": 500, "left": 0, "recovered": 500, "recovery_ms": 50000,
                       "longest_recovery_ms": 200, "steps_repeated": 9000,
                       "updates_rolled_back": 80}}}})");
  SoakRecord record;
  MU_ASSERT_OK(FillFromReport(report, &record));
  const SoakLosses& workers = record.losses.at("worker");
  EXPECT_EQ(workers.count, 5000u);
  EXPECT_EQ(workers.recovered, 4999u) << "who left was missed by nobody";
  EXPECT_EQ(workers.recovery_seconds, 600);
  EXPECT_EQ(workers.longest_recovery_seconds, 30.5);
  EXPECT_EQ(workers.steps_repeated, 70u);
  const SoakLosses& servers = record.losses.at("psserver");
  EXPECT_EQ(servers.count, 500u);
  EXPECT_EQ(servers.steps_repeated, 9000u);
  EXPECT_EQ(servers.updates_rolled_back, 80u);
  ASSERT_EQ(record.failures.size(), SoakRecord::kMostFailures);
  EXPECT_EQ(record.failures.front().at_seconds, 0);
  EXPECT_EQ(record.failures[99].at_seconds, 99);
  EXPECT_EQ(record.failures[100].at_seconds, 900);
  EXPECT_EQ(record.failures.back().at_seconds, 999);
  EXPECT_EQ(record.failures_not_listed(), 5300u);
}

TEST(SoakReport, ALossAfterWhichNothingWentOnHasNoRecovery) {
  SoakRecord record;
  MU_ASSERT_OK(FillFromReport(R"({"status": "failed", "failures": [
      {"role": "psserver", "kind": "died", "recovered_ms": null}]})",
                              &record));
  EXPECT_EQ(record.losses.at("psserver").count, 1u);
  EXPECT_EQ(record.losses.at("psserver").recovered, 0u);
  EXPECT_FALSE(record.losses.at("psserver").longest_recovery_seconds.has_value());
}

TEST(SoakReport, GoesByTheMetricThatWasAskedFor) {
  SoakRecord record;
  record.metric = "accuracy";
  MU_ASSERT_OK(
      FillFromReport(R"({"status": "done", "eval": {"accuracy": 0.5, "auc": 0.7}})", &record));
  EXPECT_EQ(record.quality, 0.5);
}

TEST(SoakReport, OfSeveralTasksGoesByTheFirst) {
  constexpr char kReport[] = R"({"status": "done", "eval": {"examples": 9, "income.logloss": 0.4,
      "income.auc": 0.75, "married.auc": 0.9}})";
  for (const char* metric : {"", "auc", "income.auc", "married.auc"}) {
    SoakRecord record;
    record.metric = metric;
    MU_ASSERT_OK(FillFromReport(kReport, &record));
    const bool second = record.metric == "married.auc";
    EXPECT_EQ(record.metric, second ? metric : "income.auc") << metric;
    EXPECT_EQ(record.quality, second ? 0.9 : 0.75) << metric;
  }
  SoakRecord record;
  record.metric = "rmse";
  MU_ASSERT_OK(FillFromReport(kReport, &record));
  EXPECT_EQ(record.metric, "rmse");
  EXPECT_TRUE(std::isnan(record.quality));
}

TEST(SoakReport, WithoutEvaluationHasNoQuality) {
  SoakRecord record;
  MU_ASSERT_OK(FillFromReport(R"({"status": "failed", "error": "e", "eval": null})", &record));
  EXPECT_EQ(record.status, "failed");
  EXPECT_EQ(record.error, "e");
  EXPECT_TRUE(std::isnan(record.quality));
  EXPECT_THAT(FillFromReport("garbage", &record),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  EXPECT_THAT(FillFromReport("[1]", &record),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
}

TEST(SoakStats, SayWhatAProgramsOwnRunDid) {
  RuntimeStats stats;
  stats.failures = {{{.steps_repeated = 3}, pb::ROLE_WORKER, 1, "died", 2.5, "killed"},
                    {{.updates_rolled_back = -4}, pb::ROLE_PSSERVER, 0, "silent", 7, ""}};
  stats.failures[0].recovered_seconds = 0.25;
  stats.unlisted_failures.of_workers.failures = 2;
  stats.unlisted_failures.of_workers.left = 1;
  stats.unlisted_failures.of_workers.recovered = 2;
  stats.unlisted_failures.of_workers.recovery_seconds = 3;
  stats.unlisted_failures.of_workers.longest_recovery_seconds = 2;
  stats.unlisted_failures.of_workers.steps_repeated = 10;
  FitResult fit;
  fit.train.steps = 7;
  fit.train.samples = 70;
  fit.train.seconds = 4.5;
  fit.last = Evaluation{.metrics = {{"auc", 0.7}, {"logloss", 0.5}}};
  SoakRecord record;
  record.workers = 3;
  FillFromStats(stats, fit, &record);
  EXPECT_TRUE(record.done());
  EXPECT_EQ(record.workers, 3);
  EXPECT_EQ(record.steps, 7u);
  EXPECT_EQ(record.samples, 70u);
  EXPECT_EQ(record.train_seconds, 4.5);
  EXPECT_EQ(record.metric, "auc");
  EXPECT_EQ(record.quality, 0.7);
  const SoakLosses& workers = record.losses.at("worker");
  EXPECT_EQ(workers.count, 4u);
  EXPECT_EQ(workers.recovered, 4u);
  EXPECT_EQ(workers.recovery_seconds, 3.25);
  EXPECT_EQ(workers.longest_recovery_seconds, 2);
  EXPECT_EQ(workers.steps_repeated, 13u);
  const SoakLosses& servers = record.losses.at("psserver");
  EXPECT_EQ(servers.count, 1u);
  EXPECT_EQ(servers.recovered, 0u);
  EXPECT_EQ(servers.updates_rolled_back, 0u);
  ASSERT_EQ(record.failures.size(), 2u);
  EXPECT_EQ(record.failures[0].recovered_ms, 250);
  EXPECT_EQ(record.failures[1].kind, "silent");
  EXPECT_EQ(record.failures_not_listed(), 3u);
}

TEST(SoakStats, SayHowFitEnded) {
  SoakRecord stopped, failed;
  FitResult fit;
  fit.train.stopped = true;
  FillFromStats({}, fit, &stopped);
  EXPECT_EQ(stopped.status, "stopped");
  EXPECT_TRUE(std::isnan(stopped.quality));
  FillFromStats({}, absl::UnavailableError("server 1 is lost"), &failed);
  EXPECT_EQ(failed.status, "failed");
  EXPECT_EQ(failed.error, "server 1 is lost");
}

}  // namespace
}  // namespace mu
