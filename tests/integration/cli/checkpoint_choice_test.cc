// Which checkpoint the commands take that do not train, where nobody names one.
#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckpointChoiceCliTest : public testing::CliTest {
 protected:
  // With data to evaluate.
  std::string EvaluatedJob() {
    return Job(
        {{"model:",
          "  eval: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, {name: item, "
          "kind: id}, {name: rating, kind: number}]}\nmodel:"}});
  }
  // The last two checkpoints of a run in "run".
  std::pair<std::string, std::string> TrainWithTwoCheckpoints(const std::string& job) {
    EXPECT_EQ(Run({"train", job, "--ps=1", "--workers=1", "--job_dir=" + Path("run"), "--set",
                   "training={epochs: 10, batch_size: 32, steps_per_function: 10}", "--set",
                   "checkpoint={every: never, every_steps: 100, keep: 0}"}),
              0)
        << Output();
    const auto found = ListCheckpoints(Path("run/checkpoints"));
    if (!found.ok() || found->size() < 2) {
      ADD_FAILURE() << found.status() << "\n" << Output();
      return {};
    }
    return {(*found)[found->size() - 2], found->back()};
  }
};

// As deploy/quickstart.sh names its run.
TEST_F(CheckpointChoiceCliTest, ARunBelowRunsMayHaveAnyName) {
  folder_ = Path("");
  const std::string job = EvaluatedJob();
  ASSERT_EQ(Run({"train", job, "--ps=1", "--workers=1", "--job_dir=runs/quickstart"}), 0)
      << Output();
  ASSERT_EQ(Run({"eval", job, "--ps=1", "--workers=1"}), 0) << Output();
  EXPECT_THAT(Output(), AllOf(HasSubstr("/runs/quickstart/checkpoints/ckpt-00000001 ("),
                              Not(HasSubstr("is taken"))));
  ASSERT_EQ(Run({"export", job, "--onnx=model.onnx"}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("exports runs/quickstart/checkpoints/"));
  EXPECT_TRUE(FileExists(Path("model.onnx")));
}

TEST_F(CheckpointChoiceCliTest, TheNewestRunIsTakenAndNamed) {
  folder_ = Path("");
  const std::string job = EvaluatedJob();
  for (const char* run : {"runs/small-20990101-000000", "runs/long"})
    ASSERT_EQ(Run({"train", job, "--ps=1", "--workers=1", absl::StrCat("--job_dir=", run)}), 0)
        << Output();
  const std::string newest = "runs/long/checkpoints/ckpt-00000001";
  ASSERT_EQ(Run({"predict", job, "--ps=1", "--workers=1", "--out=predictions.csv"}), 0) << Output();
  EXPECT_THAT(Output(), AllOf(HasSubstr("note: " + newest +
                                        " is taken, of the newest of the 2 "
                                        "runs of this job below ./runs"),
                              HasSubstr("/" + newest + " (")));
  ASSERT_EQ(Run({"export", job, "--npy=npy"}), 0) << Output();
  EXPECT_THAT(Output(),
              AllOf(HasSubstr("note: " + newest + " is taken"), HasSubstr("exports " + newest)));
}

TEST_F(CheckpointChoiceCliTest, ADamagedCheckpointIsPassedOver) {
  const std::string job = EvaluatedJob();
  const auto [older, newest] = TrainWithTwoCheckpoints(job);
  const std::string shard = newest + "/ps-0.safetensors";
  const std::string whole = ReadFile(shard).value_or("");
  MU_ASSERT_OK(WriteFileAtomic(shard, whole.substr(0, whole.size() / 2)));
  const auto note =
      AllOf(HasSubstr("note: " + shard + " has "),
            HasSubstr(". " + older + " is taken, the newest good one; --checkpoint=DIR"));
  for (const char* command : {"eval", "predict"}) {
    // By its folder and as the run's directory.
    for (const std::string& run : {"--checkpoint=" + Path("run"), "--job_dir=" + Path("run")}) {
      EXPECT_EQ(Run({command, job, run, "--ps=1", "--workers=1", "--set", "job_dir=" + Path("own"),
                     "--report=" + Path("report.json")}),
                0)
          << Output();
      EXPECT_THAT(Output(), AllOf(note, HasSubstr("begins with " + older + " ("))) << command;
    }
  }
  EXPECT_EQ(Run({"export", Path("run"), "--npy=" + Path("npy")}), 0);
  EXPECT_THAT(Output(), AllOf(note, HasSubstr("exports " + older)));
  // A new run's values are those that were named.
  const std::string remedy = "--checkpoint=" + older + " is the newest good one before it";
  EXPECT_EQ(Run({"train", job, "--checkpoint=" + Path("run"), "--job_dir=" + Path("new")}), 2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("--checkpoint: " + shard + " has "), HasSubstr(remedy)));
  EXPECT_EQ(Run({"eval", job, "--checkpoint=" + newest, "--job_dir=" + Path("new")}), 2);
  EXPECT_THAT(Output(), HasSubstr(remedy));
  EXPECT_EQ(Run({"checkpoints", "verify", Path("run")}), 2);
  EXPECT_THAT(Output(), HasSubstr("a run that is continued takes the newest good one, " + older));
}

// What the sizes do not tell is found when it is loaded.
TEST_F(CheckpointChoiceCliTest, ADamagedContentIsAnErrorThatNamesTheOneBefore) {
  const std::string job = EvaluatedJob();
  const auto [older, newest] = TrainWithTwoCheckpoints(job);
  const std::string shard = newest + "/ps-0.safetensors";
  std::string bytes = ReadFile(shard).value_or("");
  ASSERT_FALSE(bytes.empty());
  bytes[bytes.size() / 2] ^= 1;
  MU_ASSERT_OK(WriteFileAtomic(shard, bytes));
  for (const char* command : {"eval", "predict", "train"}) {
    EXPECT_EQ(Run({command, job, "--checkpoint=" + Path("run"), "--ps=1", "--workers=1",
                   "--job_dir=" + Path(command)}),
              2)
        << Output();
    EXPECT_THAT(Output(), AllOf(HasSubstr(shard), HasSubstr("such as --checkpoint=" + older +
                                                            ", the newest before it")))
        << command;
  }
  EXPECT_EQ(Run({"export", job, "--checkpoint=" + Path("run"), "--npy=" + Path("npy")}), 2);
  EXPECT_THAT(Output(),
              AllOf(HasSubstr(shard + " is damaged"), HasSubstr("--checkpoint=" + older)));
  EXPECT_FALSE(FileExists(Path("npy")));
  EXPECT_EQ(Run({"export", job, "--checkpoint=" + older, "--npy=" + Path("npy")}), 0) << Output();
}

}  // namespace
}  // namespace mu
