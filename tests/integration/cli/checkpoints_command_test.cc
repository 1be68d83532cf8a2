// `coordinator checkpoints list|verify|show`, on what a real run has left.
#include <gmock/gmock.h>

#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckpointsCommandTest : public testing::CliTest {
 protected:
  // Trains the small job, with checkpoints on the way; gives their directories.
  std::vector<std::string> Train() {
    EXPECT_EQ(Run({"train", Job(), "--local", "--ps=2", "--job_dir=" + Path("run"), "--set",
                   "training={epochs: 10, batch_size: 32, steps_per_function: 10}", "--set",
                   "checkpoint={every: never, every_steps: 100, keep: 0}"}),
              0)
        << Output();
    return ListCheckpoints(Path("run/checkpoints")).value_or(std::vector<std::string>());
  }
};

TEST_F(CheckpointsCommandTest, WhatARunHasLeft) {
  const std::vector<std::string> checkpoints = Train();
  ASSERT_GT(checkpoints.size(), 1u);
  const std::string newest = checkpoints.back();
  const std::string name = newest.substr(newest.rfind('/') + 1);
  // A run's directory, its folder of checkpoints, and one of those.
  for (const std::string& directory : {Path("run"), Path("run/checkpoints"), newest}) {
    SCOPED_TRACE(directory);
    EXPECT_EQ(Run({"checkpoints", "list", directory}), 0);
    EXPECT_THAT(Output(), HasSubstr(name));
    EXPECT_EQ(Run({"checkpoints", "verify", directory}), 0);
    EXPECT_THAT(Output(), AllOf(HasSubstr(name), HasSubstr("every file has the size")));
    EXPECT_EQ(Run({"checkpoints", "show", directory}), 0);
    // 63 batches of 32 in each of 10 epochs
    EXPECT_THAT(Output(), AllOf(HasSubstr(newest), HasSubstr("630"), HasSubstr("ps-0.safetensors"),
                                HasSubstr("ps-1.safetensors")));
  }

  const std::string shard = newest + "/ps-1.safetensors";
  std::string bytes = ReadFile(shard).value_or("");
  ASSERT_FALSE(bytes.empty());
  bytes.back() ^= 1;
  MU_ASSERT_OK(WriteFileAtomic(shard, bytes));
  EXPECT_EQ(Run({"checkpoints", "list", Path("run")}), 0) << "it only reads manifests";
  EXPECT_EQ(Run({"checkpoints", "verify", Path("run")}), 2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("ps-1.safetensors"), HasSubstr("CRC32C"),
                              HasSubstr("is not restored: a run that is continued takes the newest "
                                        "good one, " +
                                        checkpoints[checkpoints.size() - 2] + ";")));
  EXPECT_EQ(Run({"checkpoints", "verify", newest}), 2);
  EXPECT_THAT(Output(), HasSubstr("is not restored; use another one"));

  MU_ASSERT_OK(WriteFileAtomic(newest + "/manifest.json", "{"));
  EXPECT_EQ(Run({"checkpoints", "list", Path("run")}), 0);
  EXPECT_THAT(Output(), HasSubstr("manifest.json"));
  EXPECT_EQ(Run({"checkpoints", "show", newest}), 2);
  EXPECT_THAT(Output(), HasSubstr("manifest.json"));
}

TEST_F(CheckpointsCommandTest, WhereThereIsNone) {
  for (const char* action : {"list", "verify", "show"}) {
    EXPECT_EQ(Run({"checkpoints", action, Path("nowhere")}), 2);
    EXPECT_THAT(Output(), AllOf(HasSubstr("nowhere"), HasSubstr("name a run's directory")));
  }
  EXPECT_EQ(Run({"checkpoints", "burn", Path("run")}), 2);
}

}  // namespace
}  // namespace mu
