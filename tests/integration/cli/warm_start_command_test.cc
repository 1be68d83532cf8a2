// `warm_start` of a job file, with real processes.
#include <gmock/gmock.h>

#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class WarmStartCommandTest : public testing::CliTest {
 protected:
  // The values of a table or variable in a checkpoint, as bytes.
  std::string Values(const std::string& checkpoint, const std::string& name) {
    const std::string folder = Path(absl::StrCat("npy-", ++exports_));
    EXPECT_EQ(Run({"export", checkpoint, "--npy=" + folder, "--name=" + name}), 0) << Output();
    return ReadFile(absl::StrCat(folder, "/", name, ".npy")).value_or("");
  }
  // The small job over other items, with a warm start.
  std::string WarmJob(const std::string& map, const std::string& more = "") {
    const std::string path =
        Job({{"name: small", "name: warm"},
             {"items: 20", "items: 40"},
             {"training: {epochs: 1, batch_size: 32}\n",
              absl::StrCat("training: {epochs: 2, batch_size: 32}\n",
                           "checkpoint: {every: never, every_steps: 20, keep: 0}\n",
                           "warm_start:\n  checkpoint: run-a\n  map: ", map, "\n", more)}});
    return path;
  }

  int exports_ = 0;
};

TEST_F(WarmStartCommandTest, BeginsWithTheOtherModelsValuesOnce) {
  ASSERT_EQ(Run({"train", Job(), "--ps=2", "--job_dir=" + Path("run-a")}), 0) << Output();
  MU_ASSERT_OK_AND_ASSIGN(const std::string a, FindCheckpoint(Path("run-a")));
  const std::string job =
      WarmJob("[{from: \"user*\"}]", "parameters: [{match: user, trainable: false}]\n");
  ASSERT_EQ(Run({"train", job, "--ps=2", "--job_dir=" + Path("run-b")}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("begins with 2 variables and tables of " + a));
  MU_ASSERT_OK_AND_ASSIGN(const auto checkpoints, ListCheckpoints(Path("run-b/checkpoints")));
  // The first one is taken before the first step.
  MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto first, ReadManifest(checkpoints.front()));
  EXPECT_EQ(first.steps(), 0u);
  for (const char* name : {"user", "user_bias"})
    EXPECT_EQ(Values(checkpoints.front(), name), Values(a, name)) << name;
  EXPECT_EQ(Values(checkpoints.front(), "item").size(), 128 + 40 * 4 * sizeof(float));
  // The frozen table stays, the others learn.
  EXPECT_EQ(Values(checkpoints.back(), "user"), Values(a, "user"));
  EXPECT_NE(Values(checkpoints.back(), "user_bias"), Values(a, "user_bias"));
  EXPECT_NE(Values(checkpoints.back(), "item"), Values(checkpoints.front(), "item"));
}

// As with --checkpoint: steps are counted on, which Adam's moments need, and the schedule begins.
TEST_F(WarmStartCommandTest, WithSlotsTheNextStepIsThatOfTheRunsOwn) {
  for (const char* optimizer : {"adam: {learning_rate: 0.01}", "adamw: {learning_rate: 0.01}",
                                "rmsprop: {learning_rate: 0.01, momentum: 0.9}"}) {
    SCOPED_TRACE(optimizer);
    const auto job = [&](const std::string& more) {
      return Job({{"sgd: {learning_rate: 0.1}", optimizer},
                  {"batch_size: 32}\n", "batch_size: 32, warmup_steps: 10}\n" + more}});
    };
    const auto train = [&](const std::string& path, const std::string& run,
                           std::vector<std::string> more) {
      more.insert(more.begin(), {"train", path, "--ps=1", "--workers=1", "--job_dir=" + Path(run)});
      EXPECT_EQ(Run(std::move(more)), 0) << Output();
      return FindCheckpoint(Path(run)).value_or("");
    };
    const std::string first = train(job(""), "run-a", {"--train_again"});
    const std::string warm_job = job("warm_start: {checkpoint: run-a, slots: true}\n");
    const std::vector<std::string> one = {"--train_again", "--set", "training.max_steps=1"};
    std::vector<std::string> named = one;
    named.push_back("--checkpoint=" + Path("run-a"));
    const std::string expected = train(warm_job, "run-b", named);
    const std::string warm = train(warm_job, "run-c", one);
    EXPECT_THAT(Output(), HasSubstr("begins with 4 variables and tables of " + first +
                                    ", and with their slots"));
    for (const char* name : {"user", "item", "user_bias", "item_bias"}) {
      EXPECT_NE(Values(warm, name), Values(first, name)) << name;
      EXPECT_EQ(Values(warm, name), Values(expected, name)) << name;
    }
  }
}

// What is new has new moments, but counts the other run's steps.
TEST_F(WarmStartCommandTest, NewMomentsThatAreNotCorrectedAreANote) {
  const auto job = [&](const std::string& map, const std::string& more = "") {
    return Job({{"sgd: {learning_rate: 0.1}", "adam: {learning_rate: 0.01}"},
                {"batch_size: 32}\n",
                 "batch_size: 32}\nwarm_start: {checkpoint: run-a, slots: "
                 "true" +
                     map + "}\n" + more}});
  };
  ASSERT_EQ(Run({"train", Job({{"sgd: {learning_rate: 0.1}", "adam: {learning_rate: 0.01}"}}),
                 "--job_dir=" + Path("run-a")}),
            0)
      << Output();
  EXPECT_EQ(Run({"check", job("")}), 0) << Output();
  EXPECT_THAT(Output(), Not(HasSubstr("warm_start")));
  const std::string map = ", map: [{from: user}, {from: \"item*\"}]";
  EXPECT_EQ(Run({"check", job(map)}), 0) << Output();
  EXPECT_THAT(Output(), AllOf(HasSubstr("note: warm_start.slots: user_bias is not taken"),
                              HasSubstr("`bias_correction: row`")));
  EXPECT_EQ(Run({"check", job(map,
                              "parameters: [{match: user_bias, optimizer: {adam: "
                              "{learning_rate: 0.01, bias_correction: row}}}]\n")}),
            0)
      << Output();
  EXPECT_THAT(Output(), Not(HasSubstr("warm_start.slots")));
}

// A coordinator that was lost continues from the run's own checkpoints, even where the other
// model's is gone.
TEST_F(WarmStartCommandTest, ARestartDoesNotBeginWarmAgain) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("run-a")}), 0) << Output();
  const std::string job = WarmJob("[{from: \"user*\"}]");
  const std::vector<std::string> command = {"train", job, "--job_dir=" + Path("run-b"), "--set",
                                            "training.epochs=1000000"};
  const auto process = Start(command);
  ASSERT_TRUE(testing::Eventually([&] {
    return ListCheckpoints(Path("run-b/checkpoints")).value_or(std::vector<std::string>()).size() >
           2;
  })) << Output();
  MU_ASSERT_OK(process->Kill(SIGKILL));
  EXPECT_EQ(ExitOf(process.get()), -SIGKILL);
  MU_ASSERT_OK(RemoveTree(Path("run-a")));
  const auto again = Start(command);
  ASSERT_TRUE(testing::Eventually([&] {
    return Output().find("\ntraining ") != std::string::npos || again->TryWait();
  })) << Output();
  EXPECT_THAT(Output(), AllOf(HasSubstr("CONTINUES"), Not(HasSubstr("begins with 2"))));
  MU_ASSERT_OK(again->Kill(SIGTERM));
  EXPECT_EQ(ExitOf(again.get()), 143) << Output();
}

TEST_F(WarmStartCommandTest, MistakesHaveTheirPlace) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("run-a")}), 0) << Output();
  EXPECT_EQ(Run({"check", WarmJob("[{from: users}, {from: item}, {from: user, to: member}]")}), 2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("3 problems"), HasSubstr("job.yaml:18:"),
                              HasSubstr("warm_start.map[0].from: is `users`"),
                              HasSubstr("did you mean `user`?"), HasSubstr("20 rows of 4"),
                              HasSubstr("40 rows of 4"), HasSubstr("is `member`")));
  EXPECT_EQ(Run({"check", WarmJob("[{from: user}]", "# no more\n"), "--set",
                 "warm_start.checkpoint=nowhere"}),
            2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("nowhere"), HasSubstr("name a checkpoint")));
  EXPECT_EQ(Run({"check", WarmJob("[{from: \"user*\"}]")}), 0) << Output();
  // Who does not begin with it does not look for it.
  EXPECT_EQ(Run({"train", WarmJob("[{from: nobody}]"), "--set", "training.max_steps=1", "--set",
                 "model.matrix_factorization.items=20", "--checkpoint=" + Path("run-a"),
                 "--job_dir=" + Path("run-c")}),
            0)
      << Output();
}

}  // namespace
}  // namespace mu
