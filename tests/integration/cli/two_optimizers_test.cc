// A model with two optimizers: deploy/jobs/adult_wide_deep_ftrl.yaml, on a few made-up lines.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/integration/cli/checkpoint_floats.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::Gt;
using ::testing::Not;
using ::testing::SizeIs;

class TwoOptimizersTest : public testing::CliTest {
 protected:
  // Lines as adult.data has them: who has learned for long earns more.
  void WriteAdults(const std::string& name) {
    std::string lines;
    for (int i = 0; i < 320; ++i) {
      const int years = 5 + i % 12;
      absl::StrAppend(&lines, 20 + i % 50, i % 3 == 0 ? ", Private" : ", State-gov", ", 77516, ",
                      "School-", years, ", ", years, ", Never-married, Sales, Husband, White, ",
                      i % 2 == 0 ? "Male" : "Female", ", ", i % 7 == 0 ? 2174 : 0, ", 0, ",
                      30 + i % 20, ", Cuba, ", years > 10 ? ">50K" : "<=50K", "\n");
    }
    WriteText(name, lines);
  }
};

TEST_F(TwoOptimizersTest, TheWidePartHasFtrlAndTheDeepPartAdagrad) {
  WriteAdults("train.data");
  WriteAdults("test.data");
  ASSERT_EQ(Run({"train", "deploy/jobs/adult_wide_deep_ftrl.yaml", "--local", "--ps=2",
                 "--job_dir=" + Path("run"), "--set",
                 absl::StrCat("data.train.files=[", Path("train.data"), "]"), "--set",
                 absl::StrCat("data.eval.files=[", Path("test.data"), "]"), "--set",
                 "training={epochs: 5, batch_size: 32}"}),
            0)
      << Output();
  const auto checkpoints = ListCheckpoints(Path("run/checkpoints"));
  MU_ASSERT_OK(checkpoints);
  ASSERT_FALSE(checkpoints->empty());
  ASSERT_EQ(Run({"checkpoints", "show", checkpoints->back()}), 0) << Output();
  for (const char* wide : {"wide/numbers", "wide/education", "wide/sex", "bias"})
    EXPECT_THAT(Output(), ContainsRegex(absl::StrCat("  ", wide, " [^\n]* ftrl\n")));
  for (const char* deep : {"embedding/education", "embedding/sex", "deep_0/kernel", "deep_2/bias"})
    EXPECT_THAT(Output(), ContainsRegex(absl::StrCat("  ", deep, " [^\n]* adagrad\n")));

  // What the servers have computed: FTRL's values follow from its two slots (docs/reference).
  constexpr double kRate = 0.1, kBeta = 1, kL1 = 0.5;  // those of the job
  const auto floats = testing::FloatsOf(checkpoints->back(), 2);
  int wide = 0, moved = 0, deep = 0;
  for (const auto& [name, values] : floats) {
    const std::string partition = name.substr(0, name.rfind('/'));
    if (absl::StartsWith(name, "variables/wide/numbers/") && absl::EndsWith(name, "/value")) {
      const std::vector<float>& linear = floats.at(partition + "/slot_0");
      const std::vector<float>& squares = floats.at(partition + "/slot_1");
      ASSERT_THAT(linear, SizeIs(values.size()));
      ASSERT_THAT(squares, SizeIs(values.size()));
      for (size_t i = 0; i < values.size(); ++i) {
        const double z = linear[i], slowness = (kBeta + std::sqrt(squares[i])) / kRate;
        const double expected = std::abs(z) <= kL1 ? 0 : (std::copysign(kL1, z) - z) / slowness;
        EXPECT_NEAR(values[i], expected, 1e-5) << name << "[" << i << "]";
        ++wide;
        moved += values[i] != 0 ? 1 : 0;
      }
    }
    if (absl::StartsWith(name, "variables/deep_0/kernel/") && absl::EndsWith(name, "/slot_0")) {
      ++deep;
      EXPECT_THAT(floats, Not(::testing::Contains(::testing::Key(partition + "/slot_1"))));
      EXPECT_THAT(values, Each(::testing::Ge(0))) << "sums of squares";
      EXPECT_GT(*std::max_element(values.begin(), values.end()), 0) << name;
    }
  }
  EXPECT_EQ(wide, 5) << "weights of numbers";
  EXPECT_THAT(moved, Gt(0));
  EXPECT_GT(deep, 0);
}

}  // namespace
}  // namespace mu
