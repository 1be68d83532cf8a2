#include "coordinator/soak/soak_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

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
}

TEST(SoakRecord, LinesOfOlderAndOfNewerVersionsAreRead) {
  MU_ASSERT_OK_AND_ASSIGN(
      const SoakRecord read,
      FromJsonLine(R"({"job": "a", "setup": "b", "status": "done", "weather": "fine", "losses":
          {"worker": {"count": 3, "recovered": 2, "recovery_seconds": 6, "noise": 1}}})"));
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

}  // namespace
}  // namespace mu
