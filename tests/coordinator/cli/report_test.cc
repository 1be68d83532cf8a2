// A run's report, as JSON and as a few lines.
#include "coordinator/cli/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunReport SomeReport() {
  RunReport report;
  report.job = "criteo";
  report.status = "done";
  report.workers = 2;
  report.ps = 3;
  report.samples = 300000;
  report.steps = 586;
  report.functions = 20;
  report.train_seconds = 12.5;
  report.samples_per_second = 24000;
  report.train_loss = 0.47;
  report.parameters = 12345678901;
  report.epochs = {{.epoch = 2, .loss_sum = 5, .samples = 10}};
  report.evaluations = {{.steps = 100,
                         .epoch = 2,
                         .seconds = 1.5,
                         .examples = 50000,
                         .metrics = {{"auc", 0.75}, {"logloss", NAN}},
                         .best_so_far = true,
                         .checkpoint = "/runs/x/checkpoints/ckpt-1"}};
  report.early_stopping = {.metric = "auc",
                           .state = {0.75, 100, "/runs/x/checkpoints/ckpt-1", 3},
                           .stopped = true,
                           .restored_best = false};
  report.best_checkpoints = {{"/runs/x/checkpoints/ckpt-1", 0.75, 100}};
  report.eval_examples = 50000;
  report.eval_metrics = {{"auc", 0.784}, {"logloss", NAN}};
  report.failures = {{"worker", 1, "died", 3.5, "killed by SIGKILL"}};
  report.time_by_part = {{"worker.pull", {1.5, 586}}};
  report.variables = {
      {"ids",
       /*is_table=*/true,
       {.bytes = 800, .rows = 10, .reads = 7, .read_bytes = 70, .updates = 5, .update_bytes = 50},
       {{0, 300}, {2, 500}}}};
  report.bad_records = 2;
  report.first_bad_record = "a.tsv:7: \xff is no number";
  report.job_dir = "/runs/x";
  report.checkpoint = "/runs/x/checkpoints/ckpt-1";
  return report;
}

TEST(ReportTest, SaysHowLateGradientsWereIfTheJobAsks) {
  EXPECT_TRUE(nlohmann::json::parse(ReportToJson(SomeReport()))["staleness"].is_null());
  RunReport report = SomeReport();
  StalenessReport staleness = {.steps = 10, .mean = 1.5, .max = 20, .refused = 2};
  staleness.histogram = {{0, 0, 9}, {16, 31, 1}};
  report.staleness = staleness;
  const auto json = nlohmann::json::parse(ReportToJson(report))["staleness"];
  EXPECT_EQ(json.dump(),
            R"({"histogram":[{"from":0,"steps":9,"to":0},{"from":16,"steps":1,"to":31}],)"
            R"("max":20,"mean":1.5,"refused":2,"steps":10})");
}

TEST(ReportTest, SaysHowManyFunctionsWaitedForTheBound) {
  EXPECT_TRUE(nlohmann::json::parse(ReportToJson(SomeReport()))["bounded_staleness"].is_null());
  RunReport report = SomeReport();
  report.bounded_staleness = {.steps = 8, .functions_waited = 3};
  const auto json = nlohmann::json::parse(ReportToJson(report))["bounded_staleness"];
  EXPECT_EQ(json.dump(), R"({"functions_waited":3,"steps":8})");
}

TEST(ReportTest, CountsSynchronousRounds) {
  EXPECT_TRUE(nlohmann::json::parse(ReportToJson(SomeReport()))["sync"].is_null());
  RunReport report = SomeReport();
  report.sync = {{.replicas = 4, .backups = 1},
                 {.committed = 10, .contributions = 38, .small = 2, .late = 3}};
  const auto json = nlohmann::json::parse(ReportToJson(report))["sync"];
  EXPECT_EQ(json.dump(), R"({"backup_workers":1,"late_steps":3,"replicas":4,"rounds":10,)"
                         R"("small_rounds":2,"steps_in_rounds":38})");
}

TEST(ReportTest, HasEveryKey) {
  const auto json = nlohmann::json::parse(ReportToJson(SomeReport()));
  for (const char* key : {"job",
                          "status",
                          "error",
                          "workers",
                          "ps",
                          "samples",
                          "steps",
                          "functions",
                          "steps_per_function",
                          "train_seconds",
                          "samples_per_second",
                          "train_loss",
                          "staleness",
                          "bounded_staleness",
                          "sync",
                          "parameters",
                          "epochs",
                          "evaluations",
                          "early_stopping",
                          "best_checkpoints",
                          "eval",
                          "warnings",
                          "failures",
                          "time_by_part",
                          "variables",
                          "bad_records",
                          "job_dir",
                          "checkpoint"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["parameters"], 12345678901);
  EXPECT_EQ(json["eval"]["examples"], 50000);
  EXPECT_DOUBLE_EQ(json["eval"]["auc"], 0.784);
  EXPECT_TRUE(json["eval"]["logloss"].is_null());
  EXPECT_EQ(json["failures"][0]["role"], "worker");
  EXPECT_EQ(json["failures"][0]["kind"], "died");
  EXPECT_EQ(json["time_by_part"]["worker.pull"]["count"], 586);
  EXPECT_EQ(json["variables"].dump(),
            R"([{"bytes":800,"bytes_by_server":{"0":300,"2":500},"kind":"table","name":"ids",)"
            R"("read_bytes":70,"reads":7,"rows":10,"update_bytes":50,"updates":5}])");
  EXPECT_EQ(json["bad_records"]["count"], 2);
}

TEST(ReportTest, SaysHowItWentByEpochAndByEvaluation) {
  const auto json = nlohmann::json::parse(ReportToJson(SomeReport()));
  EXPECT_EQ(json["epochs"], nlohmann::json::parse(R"([{"epoch": 2, "loss": 0.5, "samples": 10}])"));
  EXPECT_EQ(json["evaluations"], nlohmann::json::parse(R"([{
    "steps": 100, "epoch": 2, "seconds": 1.5, "examples": 50000,
    "metrics": {"auc": 0.75, "logloss": null}, "best_so_far": true,
    "checkpoint": "/runs/x/checkpoints/ckpt-1"}])"));
  EXPECT_EQ(json["early_stopping"], nlohmann::json::parse(R"({
    "metric": "auc", "stopped": true, "best": 0.75, "best_steps": 100,
    "best_checkpoint": "/runs/x/checkpoints/ckpt-1", "waits": 3, "restored_best": false})"));
  EXPECT_EQ(json["best_checkpoints"], nlohmann::json::parse(R"([{
    "checkpoint": "/runs/x/checkpoints/ckpt-1", "value": 0.75, "steps": 100}])"));
  const auto none = nlohmann::json::parse(ReportToJson(RunReport()));
  EXPECT_TRUE(none["early_stopping"].is_null());
  for (const char* list : {"epochs", "evaluations", "best_checkpoints"})
    EXPECT_EQ(none[list], nlohmann::json::array()) << list;
}

TEST(ReportTest, SumsUpFailuresByRoleAlsoThoseThatAreNotListed) {
  RunReport report = SomeReport();
  report.failures = {
      {.role = "worker", .kind = "died", .recovered_ms = 250, .steps_repeated = 2},
      {.role = "worker", .kind = "left"},
      {.role = "psserver", .kind = "silent", .recovered_ms = 1500, .updates_rolled_back = 8}};
  const auto listed = nlohmann::json::parse(ReportToJson(report))["failure_totals"];
  EXPECT_EQ(listed["failures"], 2);
  EXPECT_FALSE(listed.contains("not_listed"));
  EXPECT_EQ(listed["by_role"], nlohmann::json::parse(R"({
      "worker": {"failures": 1, "left": 1, "recovered": 1, "recovery_ms": 250.0,
                 "longest_recovery_ms": 250.0, "steps_repeated": 2, "updates_rolled_back": 0,
                 "samples_repeated": 0},
      "psserver": {"failures": 1, "left": 0, "recovered": 1, "recovery_ms": 1500.0,
                   "longest_recovery_ms": 1500.0, "steps_repeated": 0, "updates_rolled_back": 8,
                   "samples_repeated": 0}})"));
  UnlistedFailureTotals& unlisted = report.unlisted_failures;
  unlisted.failures = 7;
  unlisted.left = 1;
  unlisted.steps_repeated = 10;
  unlisted.by_role["worker"] = {.failures = 7,
                                .left = 1,
                                .recovered = 6,
                                .recovery_ms = 3000,
                                .longest_recovery_ms = 900,
                                .steps_repeated = 10};
  unlisted.by_role["psserver"] = {};
  const auto all = nlohmann::json::parse(ReportToJson(report))["failure_totals"];
  EXPECT_EQ(all["failures"], 9);
  EXPECT_EQ(all["left"], 2);
  EXPECT_EQ(all["not_listed"], 8);
  EXPECT_EQ(all["steps_repeated"], 12);
  EXPECT_EQ(all["by_role"]["worker"], nlohmann::json::parse(R"({
      "failures": 8, "left": 2, "recovered": 7, "recovery_ms": 3250.0,
      "longest_recovery_ms": 900.0, "steps_repeated": 12, "updates_rolled_back": 0,
      "samples_repeated": 0})"));
  EXPECT_EQ(all["by_role"]["psserver"], listed["by_role"]["psserver"]);
  const auto none = nlohmann::json::parse(ReportToJson(RunReport()))["failure_totals"];
  EXPECT_EQ(none["by_role"], nlohmann::json::object());
}

TEST(ReportTest, WithoutEvaluationEvalIsNull) {
  RunReport report;
  report.status = "failed";
  report.train_loss = INFINITY;
  const auto json = nlohmann::json::parse(ReportToJson(report));
  EXPECT_TRUE(json["eval"].is_null());
  EXPECT_TRUE(json["train_loss"].is_null());
  EXPECT_EQ(json["failures"], nlohmann::json::array());
}

TEST(ReportTest, IsWrittenIntoAFolderThatIsMade) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("report_test"));
  const std::string path = JoinPath(directory.path(), "a/b/report.json");
  MU_ASSERT_OK(WriteReport(SomeReport(), path));
  MU_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(path));
  EXPECT_EQ(text, ReportToJson(SomeReport()));
}

TEST(ReportTest, SummarySaysWhatCameOut) {
  const std::string text = SummaryOf(SomeReport());
  EXPECT_THAT(
      text,
      HasSubstr(
          "criteo: done, 300,000 samples in 586 steps, 12.5 s, 24,000 samples/s, loss 0.4700\n"));
  EXPECT_THAT(text, HasSubstr("evaluated: 50,000 examples, auc 0.7840"));
  EXPECT_THAT(text, HasSubstr("bad records: 2 skipped, the first: a.tsv:7"));
  EXPECT_THAT(text, HasSubstr("worker 1 died after 3.5 s: killed by SIGKILL\n"));
  EXPECT_THAT(SummaryOf(RunReport()), Not(HasSubstr("samples")));
}

TEST(ReportTest, WhatIsNotKnownIsNotShownAsANumber) {
  RunReport failed;
  failed.job = "criteo";
  failed.status = "failed";
  failed.steps = 90;
  failed.samples = 9000;
  EXPECT_THAT(SummaryOf(failed), Not(HasSubstr("loss")));
  EXPECT_TRUE(nlohmann::json::parse(ReportToJson(failed))["train_loss"].is_null());
  EXPECT_THAT(SummaryOf(SomeReport()), HasSubstr("auc 0.7840, logloss not defined\n"));
}

TEST(ReportTest, NumbersThatAreTooLargeForFourDigitsBehindThePoint) {
  RunReport report = SomeReport();
  report.train_loss = 25168016146569681143997241228540248064.0;
  EXPECT_THAT(SummaryOf(report), HasSubstr(", loss 2.517e+37\n"));
  report.train_loss = 999999.5;
  EXPECT_THAT(SummaryOf(report), HasSubstr(", loss 999999.5000\n"));
}

TEST(ReportTest, WarningsAreListed) {
  RunReport report = SomeReport();
  report.warnings = {"auc is not defined: no label is 1"};
  const auto json = nlohmann::json::parse(ReportToJson(report));
  EXPECT_EQ(json["warnings"], nlohmann::json({"auc is not defined: no label is 1"}));
}

TEST(ReportTest, Commas) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(1234567.6), "1,234,568");
  EXPECT_EQ(WithCommas(-1234), "-1,234");
}

}  // namespace
}  // namespace mu
