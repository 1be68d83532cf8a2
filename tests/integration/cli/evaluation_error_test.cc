// Jobs whose evaluations on the way fail: what they say, and how they are continued.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class EvaluationErrorCli : public testing::CliTest {
 protected:
  // Its bad record is too far behind for a look at the beginning.
  void WriteEval(const std::string& end) {
    std::string data = "user,item,rating\n";
    for (int i = 0; i < 500; ++i)
      absl::StrAppend(&data, i % 10, ",", i * 7 % 20, ",", i % 5, ".5\n");
    WriteText("eval.csv", data + end);
  }
  // Three epochs of 100 steps. `keys` stand beside the model.
  std::string EvaluatedJob(const std::string& keys) {
    return Job({{"model:",
                 "  eval: {format: csv, files: [eval.csv], columns: [{name: user, kind: id}, "
                 "{name: item, kind: id}, {name: rating, kind: number}]}\n" +
                     keys + "\nmodel:"},
                {"training: {epochs: 1, batch_size: 32}",
                 "training: {epochs: 3, batch_size: 20, eval_every: {epochs: 1}}"}});
  }
  int Train(const std::string& job) {
    return Run({"train", job, "--job_dir=" + Path("run"), "--workers=1", "--ps=2"});
  }
  Json ReportOfRun() { return Report(Path("run/report.json")); }
};

constexpr char kBad[] = "1,two,3\n";
constexpr char kWhere[] = "eval.csv:502: column item: \"two\" is not an integer";

std::vector<uint64_t> StepsOf(const Json& evaluations) {
  std::vector<uint64_t> steps;
  for (const Json& evaluation : evaluations) steps.push_back(evaluation["steps"].get<uint64_t>());
  return steps;
}

// The values of `evaluation`, beside those of where and when it is evaluated.
class EachWayCli : public EvaluationErrorCli, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ways, EachWayCli,
                         ::testing::Values("", ", beside: true", ", where: coordinator"));

TEST_P(EachWayCli, StopEndsTrainingAndTheSameCommandContinues) {
  WriteEval(kBad);
  const std::string job =
      EvaluatedJob(absl::StrCat("evaluation: {on_error: stop", GetParam(), "}"));
  EXPECT_EQ(Run({"check", job}), 0) << Output();
  ASSERT_EQ(Train(job), 2) << Output();
  EXPECT_THAT(
      Output(),
      AllOf(HasSubstr("error: training has ended, since evaluation.on_error is stop; the job can "
                      "be continued, and with warn it goes on after such an error: the evaluation "
                      "after 100 steps, in epoch 1, failed: "),
            HasSubstr(kWhere), HasSubstr("\nto continue: "), Not(HasSubstr("training goes on: "))));
  const Json failed = ReportOfRun();
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_THAT(failed["error"].get<std::string>(), HasSubstr(kWhere));
  EXPECT_LT(failed["steps"].get<uint64_t>(), 300u);
  EXPECT_NE(failed["checkpoint"], "") << "what the next start goes on from";
  EXPECT_EQ(Report(Path("run/job.json"))["status"], "failed");
  // Still bad: the same again, and nothing is trained twice.
  ASSERT_EQ(Train(job), 2) << Output();
  EXPECT_THAT(Output(), AllOf(HasSubstr("it CONTINUES from "),
                              HasSubstr("the evaluation after 100 steps, in epoch 1, failed: ")));
  EXPECT_GE(ReportOfRun()["steps"], failed["steps"]);
  WriteEval("");
  ASSERT_EQ(Train(job), 0) << Output();
  const Json report = ReportOfRun();
  EXPECT_EQ(report["status"], "done");
  EXPECT_NE(report["continued_from"], "");
  EXPECT_EQ(report["steps"], 300);
  EXPECT_EQ(report["samples"], 6000);
  EXPECT_THAT(StepsOf(report["evaluations"]), ElementsAre(100, 200, 300));
  EXPECT_THAT(report["warnings"].dump(), Not(HasSubstr("given up")));
}

// What was trained is saved; the evaluation at the end fails the run, as it does without others.
TEST_P(EachWayCli, WarnLetsTrainingGoOnToItsEnd) {
  WriteEval(kBad);
  for (const char* keys : {"on_error: warn", "metrics: [rmse]"}) {  // the first is the default
    SCOPED_TRACE(keys);
    const std::string job = EvaluatedJob(absl::StrCat("evaluation: {", keys, GetParam(), "}"));
    const std::string run = Path(keys[0] == 'o' ? "given" : "default");
    ASSERT_EQ(Run({"train", job, "--job_dir=" + run, "--workers=1", "--ps=2"}), 2) << Output();
    EXPECT_THAT(Output(), AllOf(HasSubstr(kWhere), Not(HasSubstr("training has ended")),
                                Not(HasSubstr("\nto continue: "))));
    const Json report = Report(run + "/report.json");
    EXPECT_EQ(report["status"], "failed");
    EXPECT_EQ(report["steps"], 300);
    EXPECT_NE(report["checkpoint"], "");
    EXPECT_THAT(report["warnings"].get<std::vector<std::string>>(),
                Contains(HasSubstr("an evaluation failed, training goes on: ")));
  }
}

// With the key changed, which an unfinished run may be continued with.
TEST_F(EvaluationErrorCli, AJobThatStopEndedGoesOnWithWarn) {
  WriteEval(kBad);
  const std::string job = EvaluatedJob("evaluation: {on_error: stop}");
  ASSERT_EQ(Train(job), 2) << Output();
  ASSERT_EQ(ReportOfRun()["steps"], 100);
  ASSERT_EQ(Run({"train", job, "--set", "evaluation.on_error=warn", "--job_dir=" + Path("run"),
                 "--workers=1", "--ps=2"}),
            2)
      << Output();
  EXPECT_THAT(Output(), AllOf(HasSubstr("it CONTINUES from "),
                              HasSubstr("an evaluation failed, training goes on: ")));
  EXPECT_EQ(ReportOfRun()["steps"], 300);
}

TEST_F(EvaluationErrorCli, EarlyStoppingEndsTrainingWithoutTheKeyToo) {
  WriteEval(kBad);
  const std::string job = EvaluatedJob("early_stopping: {metric: rmse}");
  ASSERT_EQ(Train(job), 2) << Output();
  EXPECT_THAT(Output(),
              AllOf(HasSubstr("error: training has ended, since early_stopping needs each "
                              "evaluation; the job can be continued: the evaluation after 100 "
                              "steps, in epoch 1, failed: "),
                    HasSubstr(kWhere), HasSubstr("\nto continue: ")));
  WriteEval("");
  ASSERT_EQ(Train(job), 0) << Output();
  EXPECT_THAT(StepsOf(ReportOfRun()["evaluations"]), ElementsAre(100, 200, 300));
}

// Of which all records are left out; then they are mended.
TEST_P(EachWayCli, DataWithoutAGoodRecordIsReadAgainOnceItIsMended) {
  WriteEval(kBad);
  const std::string job = Job(
      {{"model:",
        "  eval: {format: csv, files: [eval.csv], on_bad_record: skip, records: {modulo: 501, "
        "keep: "
        "[500]}, columns: [{name: user, kind: id}, {name: item, kind: id}, {name: rating, kind: "
        "number}]}\nevaluation: {on_error: warn" +
            std::string(GetParam()) + "}\nmodel:"},
       {"training: {epochs: 1, batch_size: 32}",
        "training: {epochs: 3, batch_size: 20, eval_every: {epochs: 1}}"}});
  ASSERT_EQ(Train(job), 2) << Output();
  EXPECT_THAT(Output(),
              HasSubstr("an evaluation failed, training goes on: data.eval has no good record"));
  const Json failed = ReportOfRun();
  EXPECT_EQ(failed["steps"], 300);
  EXPECT_EQ(failed["evaluations"], Json::array()) << "they say nothing of the model";
  ASSERT_EQ(Train(job), 2) << Output();
  EXPECT_THAT(Output(), HasSubstr("has no good record")) << "still";
  WriteEval("1,2,3\n");
  ASSERT_EQ(Train(job), 0) << Output();
  const Json report = ReportOfRun();
  EXPECT_EQ(report["status"], "done");
  EXPECT_EQ(report["steps"], 300);
  EXPECT_EQ(report["eval"]["examples"], 1);
}

// Killed between its end and the note that it is done; then other files and another metric.
TEST_F(EvaluationErrorCli, AJobThatIsContinuedAtItsEndMeasuresWhatItsFileSaysNow) {
  WriteEval("");
  WriteText("other.csv", "user,item,rating\n1,2,3\n3,4,5\n");
  const std::string job = EvaluatedJob("evaluation: {metrics: [rmse]}");
  ASSERT_EQ(Train(job), 0) << Output();
  ASSERT_EQ(ReportOfRun()["eval"]["examples"], 500);
  Json record = Report(Path("run/job.json"));
  ASSERT_EQ(record["status"], "done");
  record["status"] = "running";
  WriteText("run/job.json", record.dump());
  ASSERT_EQ(
      Run({"train", job, "--set=data.eval.files=[" + Path("other.csv") + "]",
           "--set=evaluation.metrics=[mae]", "--job_dir=" + Path("run"), "--workers=1", "--ps=2"}),
      0)
      << Output();
  EXPECT_THAT(Output(), HasSubstr("it CONTINUES from "));
  const Json report = ReportOfRun();
  EXPECT_EQ(report["steps"], 300);
  EXPECT_EQ(report["eval"]["examples"], 2);
  EXPECT_TRUE(report["eval"].contains("mae"));
  EXPECT_FALSE(report["eval"].contains("rmse"));
}

}  // namespace
}  // namespace mu
