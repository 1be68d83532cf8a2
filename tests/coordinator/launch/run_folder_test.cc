#include "coordinator/launch/run_folder.h"

#include <set>
#include <string>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(RunFolder, RunsOfOneNameAndSecondHaveFoldersOfTheirOwn) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("run_folder"));
  const std::string runs = directory.path() + "/runs";
  std::set<std::string> folders;
  for (int i = 0; i < 3; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string folder,
                            MakeRunFolder(runs, "job", absl::UnixEpoch()));
    EXPECT_THAT(folder, StartsWith(runs + "/job-19"));
    EXPECT_TRUE(DirectoryExists(folder));
    folders.insert(folder);
  }
  EXPECT_THAT(folders, SizeIs(3)) << "else they would fence each other";
}

TEST(RunFolder, AFolderThatCannotBeMadeIsAnError) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("run_folder"));
  const std::string file = directory.path() + "/file";
  MU_ASSERT_OK(WriteFileAtomic(file, "in the way"));
  EXPECT_FALSE(MakeRunFolder(file, "job", absl::UnixEpoch()).ok());
}

}  // namespace
}  // namespace mu
