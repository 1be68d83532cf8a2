#include "common/env/glob.h"

#include <vector>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GlobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(root_, MakeTempDirectory("glob_test"));
    MU_ASSERT_OK(MakeDirectories(Path("sub")));
    for (const char* name : {"b-10", "b-9", "B", "a", "odd[1].tsv", "odd1.tsv", "sub/c"}) {
      MU_ASSERT_OK(WriteFileAtomic(Path(name), ""));
    }
  }
  void TearDown() override { MU_ASSERT_OK(RemoveTree(root_)); }
  std::string Path(absl::string_view name) const { return JoinPath(root_, name); }
  std::string root_;
};

TEST_F(GlobTest, SortsByBytesAndLeavesOutDirectories) {
  MU_ASSERT_OK_AND_ASSIGN(const auto files, ExpandGlob(Path("*")));
  EXPECT_THAT(files, ElementsAre(Path("B"), Path("a"), Path("b-10"), Path("b-9"), Path("odd1.tsv"),
                                 Path("odd[1].tsv")));
}

TEST_F(GlobTest, MatchesAcrossDirectories) {
  MU_ASSERT_OK_AND_ASSIGN(const auto files, ExpandGlob(Path("*/?")));
  EXPECT_THAT(files, ElementsAre(Path("sub/c")));
}

TEST_F(GlobTest, AFileThatLooksLikeAPatternIsThatFile) {
  MU_ASSERT_OK_AND_ASSIGN(const auto files, ExpandGlob(Path("odd[1].tsv")));
  EXPECT_THAT(files, ElementsAre(Path("odd[1].tsv")));
}

TEST_F(GlobTest, KeepsTheOrderOfPatternsAndEachFileOnce) {
  const std::vector<std::string> patterns = {Path("b-9"), Path("b-*"), Path("a")};
  MU_ASSERT_OK_AND_ASSIGN(const auto files, ExpandGlobs(patterns));
  EXPECT_THAT(files, ElementsAre(Path("b-9"), Path("b-10"), Path("a")));
}

TEST_F(GlobTest, ANameThatIsNoPatternMayBeOfAnotherMachine) {
  MU_ASSERT_OK_AND_ASSIGN(const auto there, ExpandFiles("/another/machine/file"));
  EXPECT_THAT(there, ElementsAre("/another/machine/file"));
  MU_ASSERT_OK_AND_ASSIGN(const auto here, ExpandFiles(Path("b-*")));
  EXPECT_THAT(here, ElementsAre(Path("b-10"), Path("b-9")));
  EXPECT_THAT(ExpandFiles("/another/machine/*"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/another/machine/*")));
}

TEST_F(GlobTest, NamesThePatternThatMatchesNothing) {
  EXPECT_THAT(ExpandGlob(Path("z*")), StatusIs(absl::StatusCode::kNotFound, HasSubstr(Path("z*"))));
  EXPECT_THAT(ExpandGlob(Path("missing")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing")));
  EXPECT_THAT(ExpandGlob(Path("sub")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("directory")));
  EXPECT_THAT(ExpandGlobs(std::vector<std::string>{Path("a"), Path("z*")}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(Path("z*"))));
}

}  // namespace
}  // namespace mu
