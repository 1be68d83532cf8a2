#include "common/env/file_kind.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

TEST(FileKindTest, PipesAndDevicesAreSpecial) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("file_kind_test"));
  const std::string pipe = JoinPath(directory.path(), "pipe");
  const std::string link = JoinPath(directory.path(), "link");
  const std::string file = JoinPath(directory.path(), "file");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::symlink("pipe", link.c_str()), 0);
  MU_ASSERT_OK(WriteFileAtomic(file, ""));
  EXPECT_TRUE(IsSpecialFile(pipe));
  EXPECT_TRUE(IsSpecialFile(link));
  EXPECT_TRUE(IsSpecialFile("/dev/null"));
  EXPECT_FALSE(IsSpecialFile(file));
  EXPECT_FALSE(IsSpecialFile(directory.path()));
  EXPECT_FALSE(IsSpecialFile(JoinPath(directory.path(), "nothing")));
}

TEST(FileKindTest, LinksSayWhereTheyLead) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("file_kind_test"));
  const std::string link = JoinPath(directory.path(), "link");
  ASSERT_EQ(::symlink("../gone.csv", link.c_str()), 0);
  EXPECT_EQ(LinkTarget(link), "../gone.csv");
  EXPECT_EQ(LinkTarget(directory.path()), "");
  EXPECT_EQ(LinkTarget(JoinPath(directory.path(), "nothing")), "");
}

}  // namespace
}  // namespace mu
