// A run that an earlier version left unfinished, in fixtures/unfinished_run: commit cd329be trained
// job.yaml with two workers and two servers and was killed after its first checkpoint (996 steps,
// 8 functions unfinished). What it wrote is not changed.
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

class EarlierVersionTest : public testing::CliTest {
 protected:
  std::string Fixture(const std::string& name) const {
    const auto text = ReadFile(JoinPath(MUSTER_FIXTURES "/unfinished_run", name));
    EXPECT_THAT(text, testing::IsOk());
    return text.value_or("");
  }
  // The run's folder as it was, with its checkpoint.
  void Copy() {
    for (const char* folder : {"run/epochs", "run/checkpoints/ckpt-00000001"})
      MU_ASSERT_OK(MakeDirectories(Path(folder)));
    WriteText("job.yaml", Fixture("job.yaml"));
    WriteText("run/job.json", Fixture("job.json"));
    // The checkpoint knows its data by their path. Whoever else runs this test writes the same.
    MU_ASSERT_OK(MakeDirectories("/tmp/muster-unfinished-run"));
    MU_ASSERT_OK(WriteFileAtomic("/tmp/muster-unfinished-run/data.csv",
                                 ReadFile(Path("data.csv")).value_or("")));
    WriteText("run/epochs/job", Fixture("job_id"));
    WriteText("run/epochs/1", "");
    for (const char* file : {"manifest.json", "ps-0.safetensors", "ps-1.safetensors"}) {
      WriteText(absl::StrCat("run/checkpoints/ckpt-00000001/", file),
                Fixture(absl::StrCat("checkpoint/", file)));
    }
  }
};

TEST_F(EarlierVersionTest, ItsCheckpointIsWhole) {
  Copy();
  EXPECT_EQ(Run({"checkpoints", "verify", Path("run")}), 0) << Output();
}

TEST_F(EarlierVersionTest, ItsRunIsContinuedOnAnotherNumberOfServers) {
  Copy();
  ASSERT_EQ(Run({"train", Path("job.yaml"), "--local", "--workers=2", "--ps=3",
                 "--job_dir=" + Path("run"), "--report=" + Path("report.json")}),
            0)
      << Output();
  EXPECT_THAT(Output(), ::testing::HasSubstr("CONTINUES from"));
  const auto report = Report(Path("report.json"));
  EXPECT_EQ(report["samples"], 4 * 2000) << "each record once per epoch";
  EXPECT_EQ(report["steps"], 4 * 500);
}

}  // namespace
}  // namespace mu
