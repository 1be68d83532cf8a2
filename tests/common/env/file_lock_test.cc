#include "common/env/file_lock.h"

#include <gtest/gtest.h>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

TEST(FileLock, IsHeldByOneUntilItEnds) {
  MU_ASSERT_OK_AND_ASSIGN(const std::string dir, MakeTempDirectory("file_lock_test"));
  const std::string path = JoinPath(dir, "lock");
  FileLock second;
  {
    FileLock first;
    EXPECT_FALSE(first.held());
    MU_ASSERT_OK(first.Take(path, "first\n"));
    EXPECT_TRUE(first.held());
    MU_ASSERT_OK(second.Take(path, "2"));
    EXPECT_FALSE(second.held());
    EXPECT_EQ(second.owner(), "first\n");
  }
  MU_ASSERT_OK(second.Take(path, "2"));
  EXPECT_TRUE(second.held());
  EXPECT_EQ(ReadFile(path).value_or(""), "2");
  MU_EXPECT_OK(RemoveTree(dir));
}

TEST(FileLock, IsTakenOverFromWhoHoldsIt) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("file_lock_test"));
  const std::string path = JoinPath(dir.path(), "lock");
  FileLock third;
  {
    FileLock second;
    {
      FileLock first;
      MU_ASSERT_OK(first.Take(path, "first\n"));
      EXPECT_FALSE(first.lost());
      MU_ASSERT_OK(second.TakeOver(path, "second\n"));
      EXPECT_TRUE(second.held());
      EXPECT_FALSE(second.lost());
      EXPECT_TRUE(first.lost());
      EXPECT_EQ(ReadFile(path).value_or(""), "second\n");
      MU_ASSERT_OK_AND_ASSIGN(const auto files, ListDirectory(dir.path()));
      EXPECT_THAT(files, ::testing::ElementsAre("lock"));
    }
    // The first one's end releases nothing of the second's.
    MU_ASSERT_OK(third.Take(path, "third\n"));
    EXPECT_FALSE(third.held());
    EXPECT_EQ(third.owner(), "second\n");
  }
  MU_ASSERT_OK(third.Take(path, "third\n"));
  EXPECT_TRUE(third.held());
}

TEST(FileLock, NamesAFolderThatIsNotThere) {
  FileLock lock;
  EXPECT_THAT(
      lock.Take("/nowhere/lock", ""),
      testing::StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("/nowhere/lock")));
  EXPECT_FALSE(lock.held());
}

}  // namespace
}  // namespace mu
