// Which checkpoint the commands take that do not train, where nobody names one.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
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

}  // namespace
}  // namespace mu
