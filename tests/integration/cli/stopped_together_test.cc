// `coordinator train`, its servers and its workers get SIGTERM at the same time, and nobody comes
// back: as when a machine goes down, or a namespace is deleted. RestartTest has the plain case.
#include <gmock/gmock.h>

#include <functional>

#include "absl/strings/str_split.h"
#include "common/base/steady_now.h"
#include "tests/integration/cli/restart.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

// It is stopped after 500 of 3,000 steps, and the rest is trained afterwards.
constexpr int kEpochs = 6;

class StoppedTogetherTest : public testing::RestartTest {
 protected:
  // As LongJob, with data to evaluate on.
  std::string EvaluatedJob(const std::string& training, const std::string& checkpoint) {
    return Job(
        {{"learning_rate: 0.1", "learning_rate: 0.01"},
         {"model:",
          "  eval: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, "
          "{name: item, kind: id}, {name: rating, kind: number}]}\n"
          "model:"},
         {"training: {epochs: 1, batch_size: 32}",
          absl::StrCat("training: {epochs: ", kEpochs, ", batch_size: 4, functions_in_flight: 1, ",
                       training, "}\ncheckpoint: {every: never, ", checkpoint, "}")}});
  }
  std::vector<std::string> Command(const std::string& job, const std::string& address) {
    return {"train",       job,      "--listen=" + address,
            "--workers=2", "--ps=2", "--job_dir=" + Path("cluster")};
  }
  // Of a run with its daemons, when `ready` holds. All of it is saved, and soon.
  void StopAll(Subprocess* run, const std::string& address, const std::function<bool()>& ready) {
    const auto daemons = StartDaemons(address);
    EXPECT_TRUE(testing::Eventually(ready)) << Output();
    const absl::Time asked = SteadyNow();
    for (const auto& daemon : daemons) MU_ASSERT_OK(daemon->Kill(SIGTERM));
    MU_ASSERT_OK(run->Kill(SIGTERM));
    EXPECT_EQ(ExitOf(run), 143) << Output();
    EXPECT_LT(SteadyNow() - asked, absl::Minutes(1)) << "it waited for servers";
    const auto stopped = Report(Path("cluster/report.json"));
    EXPECT_EQ(stopped["status"], "stopped");
    EXPECT_TRUE(FileExists(JoinPath(stopped["checkpoint"].get<std::string>(), "manifest.json")));
  }
};

// Whoever waits for whole functions has seen fewer steps than the servers' checkpoint holds.
TEST_F(StoppedTogetherTest, AJobThatEvaluatesAndPacksSteps) {
  const std::string address = FreeAddress();
  const auto command = Command(
      EvaluatedJob("steps_per_function: 50, eval_every: {epochs: 1000}", "every_steps: 500"),
      address);
  const auto first = Start(command);
  StopAll(first.get(), address, [&] { return !Checkpoints(Path("cluster")).empty(); });
  EXPECT_THAT(Output(), HasSubstr("holds all steps that were done"));
  const auto daemons = StartDaemons(address);
  EXPECT_EQ(Run(command), 0) << Output();
  ExpectWhole(Report(Path("cluster/report.json")), kEpochs);
}

// The stop comes at one moment or another of evaluations, of which there are many. A test of its
// own for each: it waits for those who are gone.
class StoppedAtEvaluationsTest : public StoppedTogetherTest,
                                 public ::testing::WithParamInterface<size_t> {};

TEST_P(StoppedAtEvaluationsTest, AnEvaluationOrItsCheckpoint) {
  const std::string address = FreeAddress();
  const auto run = Start(Command(
      EvaluatedJob("eval_every: {steps: 5}", "keep_best: {metric: rmse, count: 1}"), address));
  StopAll(run.get(), address, [&] {
    const std::vector<std::string> parts = absl::StrSplit(Output(), "evaluated after ");
    return parts.size() > GetParam();
  });
}

INSTANTIATE_TEST_SUITE_P(Evaluations, StoppedAtEvaluationsTest, ::testing::Values(1, 3, 5));

// All steps are done, and nobody but the servers was needed any more.
TEST_F(StoppedTogetherTest, TheLastCheckpoint) {
  const std::string address = FreeAddress();
  // Its checkpoint takes a while.
  WriteText("job.yaml",
            "name: large\n"
            "data: {train: {format: csv, files: [data.csv], columns: [{name: user, kind: number}, "
            "{name: item, kind: number}, {name: rating, kind: label, positive: [\"3.5\"]}]}}\n"
            "model: {mlp: {features: [{column: user}, {column: item}], label_column: rating, "
            "hidden: [2048, 2048]}}\n"
            "optimizer: {sgd: {learning_rate: 0.01}}\n"
            "training: {batch_size: 8, max_steps: 3}\n"
            "checkpoint: {every: never}\n");
  const auto command = Command(Path("job.yaml"), address);
  constexpr int kMostTries = 20;  // the machine may be too quick
  for (int tries = 0, code = 0; code != 143; ++tries) {
    ASSERT_LT(tries, kMostTries) << "every checkpoint was complete before the stop";
    MU_ASSERT_OK(RemoveTree(Path("cluster")));
    const auto run = Start(command);
    const auto daemons = StartDaemons(address);
    EXPECT_TRUE(testing::Eventually([&] {
      const auto files = ListDirectory(Path("cluster/checkpoints/ckpt-00000001"));
      return files.ok() && !files->empty();
    })) << Output();
    // Whoever was quick has ended.
    for (const auto& daemon : daemons) daemon->Kill(SIGTERM).IgnoreError();
    run->Kill(SIGTERM).IgnoreError();
    code = ExitOf(run.get());
    ASSERT_TRUE(code == 0 || code == 143) << code << "\n" << Output();
  }
  EXPECT_EQ(Report(Path("cluster/report.json"))["status"], "stopped");
  const auto daemons = StartDaemons(address);
  EXPECT_EQ(Run(command), 0) << Output();
  EXPECT_EQ(Report(Path("cluster/report.json"))["steps"], 3);
}

}  // namespace
}  // namespace mu
