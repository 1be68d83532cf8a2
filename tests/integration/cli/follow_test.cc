// `coordinator eval --follow`: an evaluation beside training, by a process of its own.
#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;

class FollowTest : public testing::CliTest {
 protected:
  std::string EvaluatedJob(const std::string& checkpoint, const std::string& training) {
    return Job(
        {{"model:",
          absl::StrCat("  eval: {format: csv, files: [data.csv], columns: [{name: user, "
                       "kind: id}, {name: item, kind: id}, {name: rating, kind: number}]}\n"
                       "checkpoint: {",
                       checkpoint, "}\nmodel:")},
         {"training: {epochs: 1, batch_size: 32}", absl::StrCat("training: {", training, "}")}});
  }
  // With a checkpoint after each epoch, and an evaluation of it.
  std::string EvaluatedJob(int epochs) {
    return EvaluatedJob("every: never, keep: 0, keep_best: {metric: rmse}",
                        absl::StrCat("epochs: ", epochs, ", batch_size: 20"));
  }
  std::vector<std::string> FollowCommand(const std::string& job) {
    return {"eval",        job,     "--follow=" + Path("run"), "--job_dir=" + Path("follower"),
            "--workers=1", "--ps=1"};
  }
  std::unique_ptr<Subprocess> Follow(const std::string& job) { return Start(FollowCommand(job)); }
  // Trains two epochs, and says that more are to come.
  std::string TrainUnfinished() {
    const std::string job = EvaluatedJob(2);
    EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--workers=1", "--ps=1"}), 0)
        << Output();
    WriteText("run/run.json", R"({"status": "running"})");
    return job;
  }
  // Starts to follow the run and returns when it holds the lock.
  std::unique_ptr<Subprocess> FollowLocked(const std::string& job) {
    auto follower = Follow(job);
    const std::string pid = absl::StrCat("pid: ", follower->pid(), "\n");
    EXPECT_TRUE(testing::Eventually([&] {
      return ReadFile(Path("run/followed/lock")).value_or("").find(pid) != std::string::npos ||
             follower->TryWait().has_value();
    })) << Output();
    EXPECT_FALSE(follower->TryWait().has_value()) << Output();
    return follower;
  }
  void WaitForNoRunNote() {
    EXPECT_TRUE(testing::Eventually([&] {
      return Output().find("note: there is no run in " + Path("run") + " yet; waiting for its " +
                           "first checkpoint") != std::string::npos;
    })) << Output();
  }
  // Each checkpoint of the run once, and all are sound.
  void ExpectAllEvaluated() {
    std::vector<std::string> names, evaluated;
    MU_ASSERT_OK_AND_ASSIGN(const auto checkpoints, ListCheckpoints(Path("run/checkpoints")));
    for (const std::string& checkpoint : checkpoints) names.push_back(BaseName(checkpoint));
    EXPECT_THAT(names, SizeIs(Ge(2)));
    for (const Json& evaluation : Evaluations()) {
      evaluated.push_back(evaluation["checkpoint"].get<std::string>());
      EXPECT_EQ(evaluation["examples"], 2000) << evaluation;
      EXPECT_FALSE(evaluation["metrics"].empty()) << evaluation;
    }
    EXPECT_THAT(evaluated, ElementsAreArray(names));
    EXPECT_FALSE(FileExists(Path("run/followed"))) << "nobody follows any more";
  }
  Json Evaluations() {
    const std::string text = ReadFile(Path("run/evaluations.json")).value_or("[]");
    return Json::parse(text, nullptr, false);
  }
  static int NumberOf(const std::string& checkpoint) {
    int number = 0;
    EXPECT_TRUE(absl::SimpleAtoi(BaseName(checkpoint).substr(strlen("ckpt-")), &number));
    return number;
  }
  // Numbers begin with 1; 0: there is none.
  int NewestCheckpoint() {
    const auto checkpoints = ListCheckpoints(Path("run/checkpoints"));
    return checkpoints.ok() && !checkpoints->empty() ? NumberOf(checkpoints->back()) : 0;
  }
};

TEST_F(FollowTest, ThirtyCheckpointsAndKilledTwice) {
  const std::string job = EvaluatedJob(30);
  auto follower = Follow(job);
  auto training = Start({"train", job, "--job_dir=" + Path("run"), "--workers=1", "--ps=2"});
  for (const size_t evaluated : {5, 15}) {
    EXPECT_TRUE(testing::Eventually(
        [&] { return Evaluations().size() >= evaluated || follower->TryWait().has_value(); }));
    ASSERT_FALSE(follower->TryWait().has_value()) << Output();
    MU_ASSERT_OK(follower->Kill(SIGKILL));
    ExitOf(follower.get());
    follower = Follow(job);
  }
  EXPECT_EQ(ExitOf(training.get()), 0);
  EXPECT_EQ(ExitOf(follower.get()), 0) << Output();
  const auto checkpoints = ListCheckpoints(Path("run/checkpoints"));
  MU_ASSERT_OK(checkpoints);
  ASSERT_GE(checkpoints->size(), 30u);
  std::map<std::string, Json> evaluated;
  for (const Json& evaluation : Evaluations()) {
    const auto name = evaluation["checkpoint"].get<std::string>();
    EXPECT_TRUE(evaluated.emplace(name, evaluation).second) << name << " twice";
    EXPECT_EQ(evaluation["examples"], 2000);
  }
  for (const std::string& checkpoint : *checkpoints)
    EXPECT_TRUE(evaluated.contains(BaseName(checkpoint))) << checkpoint << " is missed";
  EXPECT_EQ(evaluated.size(), checkpoints->size());
  // The training has evaluated them as well, on its own cluster.
  for (const Json& evaluation : Report(Path("run/report.json"))["evaluations"]) {
    const std::string name = BaseName(evaluation["checkpoint"].get<std::string>());
    EXPECT_EQ(evaluated[name]["metrics"], evaluation["metrics"]) << name;
    EXPECT_EQ(evaluated[name]["steps"], evaluation["steps"]) << name;
    EXPECT_EQ(evaluated[name]["epoch"], evaluation["epoch"]) << name;
  }
  const Json report = Report(Path("follower/report.json"));
  EXPECT_EQ(report["status"], "done");
  EXPECT_EQ(report["evaluations"].size(), checkpoints->size());
  EXPECT_EQ(report["eval"]["rmse"], evaluated[BaseName(checkpoints->back())]["metrics"]["rmse"]);
}

// The run keeps its newest checkpoint alone. It begins after its follower. It takes several while
// the follower starts its cluster, while one is evaluated, and while nobody follows.
TEST_F(FollowTest, TheRunKeepsOneAndEvaluationIsSlower) {
  const std::string job = EvaluatedJob("every: never, every_steps: 400, keep: 1",
                                       "epochs: 10, batch_size: 2, eval_batch_size: 1");
  auto follower = Follow(job);
  WaitForNoRunNote();
  auto training = Start({"train", job, "--job_dir=" + Path("run"), "--workers=1", "--ps=1"});
  EXPECT_TRUE(testing::Eventually(
      [&] { return !Evaluations().empty() || follower->TryWait().has_value(); }));
  ASSERT_FALSE(follower->TryWait().has_value()) << Output();
  MU_ASSERT_OK(follower->Kill(SIGKILL));
  ExitOf(follower.get());
  const int when_killed = NewestCheckpoint();
  EXPECT_TRUE(testing::Eventually(
      [&] { return NewestCheckpoint() >= when_killed + 3 || training->TryWait().has_value(); }));
  follower = Follow(job);
  EXPECT_EQ(ExitOf(training.get()), 0);
  EXPECT_EQ(ExitOf(follower.get()), 0) << Output();
  EXPECT_THAT(*ListCheckpoints(Path("run/checkpoints")), SizeIs(1));
  std::vector<int> all(NewestCheckpoint());
  std::iota(all.begin(), all.end(), 1);
  EXPECT_THAT(all, SizeIs(Ge(5))) << "too few";
  std::vector<int> evaluated;
  for (const Json& evaluation : Evaluations()) {
    evaluated.push_back(NumberOf(evaluation["checkpoint"].get<std::string>()));
    EXPECT_EQ(evaluation["examples"], 2000) << evaluation;
  }
  EXPECT_THAT(evaluated, ElementsAreArray(all));
  EXPECT_FALSE(FileExists(Path("run/followed"))) << "nobody follows any more";
}

TEST_F(FollowTest, AnEndedJobWithNothingNewIsDone) {
  const std::string job = EvaluatedJob(2);
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--workers=1", "--ps=1"}), 0)
      << Output();
  EXPECT_EQ(ExitOf(Follow(job).get()), 0) << Output();
  const size_t evaluated = Evaluations().size();
  EXPECT_GE(evaluated, 2u);
  EXPECT_EQ(ExitOf(Follow(job).get()), 0) << Output();
  EXPECT_EQ(Evaluations().size(), evaluated);
}

// As a pod that is started twice: the same command, the same job_dir.
TEST_F(FollowTest, ASecondFollowerIsRefusedAndTheFirstGoesOn) {
  const std::string job = TrainUnfinished();
  auto first = FollowLocked(job);
  std::vector<std::string> again = FollowCommand(job);
  again.push_back("--report=" + Path("refused.json"));
  EXPECT_EQ(Run(again), 2);
  const std::string refusal = absl::StrCat("error: a coordinator (process ", first->pid(), " on ");
  EXPECT_THAT(Output(), AllOf(HasSubstr(refusal),
                              HasSubstr(") follows the run in " + Path("run") + " since "),
                              HasSubstr("only one process may follow a run"),
                              HasSubstr("or stop it and start this one again")));
  EXPECT_EQ(Report(Path("refused.json"))["status"], "failed");
  EXPECT_FALSE(FileExists(Path("follower/report.json"))) << "it is the first one's";
  ASSERT_FALSE(first->TryWait().has_value());
  WriteText("run/run.json", R"({"status": "done"})");
  EXPECT_EQ(ExitOf(first.get()), 0);
  ExpectAllEvaluated();
  EXPECT_EQ(Report(Path("follower/report.json"))["status"], "done");
}

TEST_F(FollowTest, AKilledFollowerLeavesNoLock) {
  const std::string job = TrainUnfinished();
  auto first = FollowLocked(job);
  MU_ASSERT_OK(first->Kill(SIGKILL));
  EXPECT_EQ(ExitOf(first.get()), -SIGKILL);
  EXPECT_TRUE(FileExists(Path("run/followed/lock")));
  auto second = FollowLocked(job);
  WriteText("run/run.json", R"({"status": "done"})");
  EXPECT_EQ(ExitOf(second.get()), 0) << Output();
  ExpectAllEvaluated();
}

// More servers than the default number of partitions is for, so these must be known.
TEST_F(FollowTest, TheFirstCheckpointIsDamaged) {
  const std::string job = EvaluatedJob(3);
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--workers=1", "--ps=6"}), 0)
      << Output();
  MU_ASSERT_OK_AND_ASSIGN(const auto checkpoints, ListCheckpoints(Path("run/checkpoints")));
  ASSERT_THAT(checkpoints, SizeIs(Ge(3)));
  MU_ASSERT_OK(WriteFileAtomic(checkpoints[0] + "/manifest.json", "{"));
  EXPECT_EQ(ExitOf(Follow(job).get()), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr(BaseName(checkpoints[0]) + " (0 steps): not readable"));
  const Json evaluations = Evaluations();
  ASSERT_EQ(evaluations.size(), checkpoints.size());
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    EXPECT_EQ(evaluations[i]["checkpoint"], BaseName(checkpoints[i]));
    EXPECT_EQ(evaluations[i]["examples"], i == 0 ? 0 : 2000);
  }
}

// Nobody would notice a folder that was made for a misspelt name.
TEST_F(FollowTest, AFolderThatIsNotThereIsToldAndNotMade) {
  auto follower = Follow(EvaluatedJob(1));
  WaitForNoRunNote();
  EXPECT_FALSE(FileExists(Path("run")));
  MU_ASSERT_OK(follower->Kill(SIGTERM));
  EXPECT_EQ(ExitOf(follower.get()), 143) << Output();
  EXPECT_FALSE(FileExists(Path("run")));
  EXPECT_THAT(Output(), HasSubstr("\nstopping cleanly; again to stop at once\n"));
  EXPECT_THAT(Output(), HasSubstr("(no such folder: if the name is wrong, stop this process)\n"));
  EXPECT_THAT(ReadFile(Path("follower/logs/coordinator.log")).value_or(""),
              HasSubstr("there is no run in " + Path("run") + " yet"));
  EXPECT_THAT(Report(Path("follower/report.json"))["warnings"], SizeIs(0));
}

// As a copy leaves it that ran out of disk. It would wait for ever.
TEST_F(FollowTest, ARecordThatCannotBeReadIsAWarningThatSaysHowToEnd) {
  MU_ASSERT_OK(MakeDirectories(Path("run")));
  WriteText("run/job.json", "");
  const std::string warning = Path("run/job.json") + " is empty or damaged";
  auto follower = Follow(EvaluatedJob(1));
  EXPECT_TRUE(testing::Eventually([&] {
    return Output().find("or stop this process\n") != std::string::npos;
  })) << Output();
  EXPECT_THAT(Output(), HasSubstr(warning));
  EXPECT_THAT(Output(), HasSubstr("write {\"status\": \"done\"} into " + Path("run/run.json")));
  EXPECT_FALSE(follower->TryWait().has_value()) << Output();
  WriteText("run/run.json", R"({"status": "done"})");
  EXPECT_EQ(ExitOf(follower.get()), 0) << Output();
  const Json report = Report(Path("follower/report.json"));
  EXPECT_EQ(report["status"], "done");
  ASSERT_EQ(report["warnings"].size(), 1u);
  EXPECT_THAT(report["warnings"][0].get<std::string>(), HasSubstr(warning));
  EXPECT_THAT(ReadFile(Path("follower/logs/coordinator.log")).value_or(""), HasSubstr(warning));
}

TEST_F(FollowTest, ACheckpointBesideItIsRefused) {
  EXPECT_EQ(Run({"eval", EvaluatedJob(1), "--follow=" + Path("run"), "--checkpoint=x"}), 2);
  EXPECT_THAT(Output(), HasSubstr("--follow"));
}

}  // namespace
}  // namespace mu
