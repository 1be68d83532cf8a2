// What the coordinator sees of a checkpoint's files without reading them whole.
#include "coordinator/cluster/checkpoint_verify.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "common/base/cannot_read.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

class CheckSizesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(directory_);
    Add("ps-0.safetensors", "whole");
    Add("ps-1.safetensors", "");
  }
  std::string Path(const std::string& name) const { return JoinPath(directory_->path(), name); }
  void Name(const std::string& name, uint64_t bytes) {
    pb::CheckpointFileProto* const file = manifest_.add_files();
    file->set_name(name);
    file->set_bytes(bytes);
  }
  void Add(const std::string& name, const std::string& contents) {
    MU_ASSERT_OK(WriteFileAtomic(Path(name), contents));
    Name(name, contents.size());
  }
  absl::Status Check() const { return CheckSizes(directory_->path(), manifest_); }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("checkpoint_verify");
  pb::CheckpointProto manifest_;
};

TEST_F(CheckSizesTest, FilesThatAreThere) { MU_EXPECT_OK(Check()); }

TEST_F(CheckSizesTest, DamageIsNamed) {
  MU_ASSERT_OK(WriteFileAtomic(Path("ps-0.safetensors"), "half"));
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kDataLoss,
                                HasSubstr("ps-0.safetensors has 4 bytes, its manifest says 5")));
  MU_ASSERT_OK(RemoveFile(Path("ps-0.safetensors")));
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kNotFound,
                                HasSubstr("ps-0.safetensors is missing, which its manifest")));
  // A link that leads nowhere is no file either.
  ASSERT_EQ(::symlink("nowhere", Path("ps-0.safetensors").c_str()), 0);
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("is missing")));
}

// Whoever may look at a file need not be one who may read it.
TEST_F(CheckSizesTest, AFileThatThisProcessMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read all files";
  ASSERT_EQ(::chmod(Path("ps-0.safetensors").c_str(), 0), 0);
  EXPECT_TRUE(IsCannotRead(Check())) << Check();
  EXPECT_THAT(Check().message(), HasSubstr("cannot open " + Path("ps-0.safetensors")));
  EXPECT_FALSE(IsDamage(Check())) << "others may read it";
}

// The same for root: a folder has a size and can be opened, and nobody can read it as a file.
TEST_F(CheckSizesTest, WhatHasTheRightSizeAndCannotBeRead) {
  MU_ASSERT_OK(MakeDirectories(Path("ps-2.safetensors")));
  MU_ASSERT_OK_AND_ASSIGN(const FileInfo folder, GetFileInfo(Path("ps-2.safetensors")));
  Name("ps-2.safetensors", folder.size);
  EXPECT_TRUE(IsCannotRead(Check())) << Check();
  EXPECT_THAT(Check().message(), HasSubstr("cannot read " + Path("ps-2.safetensors")));
}

}  // namespace
}  // namespace mu
