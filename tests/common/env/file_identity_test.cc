#include "common/env/file_identity.h"

#include <unistd.h>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

class FileIdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TempDirectory::Create("file_identity_test");
    MU_ASSERT_OK(directory);
    directory_.emplace(*std::move(directory));
    MU_ASSERT_OK(MakeDirectories(Path("folder")));
    MU_ASSERT_OK(WriteFileAtomic(Path("folder/file"), ""));
    ASSERT_EQ(::symlink(Path("folder").c_str(), Path("link").c_str()), 0);
    ASSERT_EQ(::symlink("folder/file", Path("file_link").c_str()), 0);
    ASSERT_EQ(::link(Path("folder/file").c_str(), Path("hard").c_str()), 0);
  }
  std::string Path(const std::string& name) const { return JoinPath(directory_->path(), name); }
  bool IsSame(const std::string& a, const std::string& b) const {
    return FileIdentity(Path(a)) == FileIdentity(Path(b));
  }

 private:
  std::optional<TempDirectory> directory_;
};

TEST_F(FileIdentityTest, OneFileByManyPaths) {
  for (const char* path :
       {"folder/file", "folder/../folder/./file", "link/file", "file_link", "hard", "folder//file"})
    EXPECT_TRUE(IsSame("folder/file", path)) << path;
  EXPECT_TRUE(IsSame("folder", "link"));
  EXPECT_FALSE(IsSame("folder", "folder/file"));
  MU_ASSERT_OK(WriteFileAtomic(Path("other"), ""));
  EXPECT_FALSE(IsSame("folder/file", "other"));
}

TEST_F(FileIdentityTest, WhatDoesNotExistIsComparedByName) {
  EXPECT_TRUE(IsSame("folder/new", "link/new"));
  EXPECT_TRUE(IsSame("folder/no/new", "link/no/new"));
  EXPECT_FALSE(IsSame("folder/new", "folder/newer"));
  EXPECT_FALSE(IsSame("folder/new", "folder/file"));
  EXPECT_FALSE(IsSame("folder/no/new", "folder/new"));
}

TEST_F(FileIdentityTest, LinksOfTheFolderAreResolved) {
  EXPECT_EQ(PathInRealFolder(Path("link/file")), PathInRealFolder(Path("folder/file")));
  EXPECT_EQ(BaseName(PathInRealFolder(Path("file_link"))), "file_link");
  EXPECT_EQ(PathInRealFolder("/no/such/file"), "/no/such/file");
}

}  // namespace
}  // namespace mu
