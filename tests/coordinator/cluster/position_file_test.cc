// Large positions: in a file of their own, of which no byte may be wrong.
#include "coordinator/cluster/position_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

pb::CheckpointProto Manifest(int functions) {
  pb::CheckpointProto manifest;
  manifest.set_format_version(kCheckpointFormat);
  manifest.set_steps(12);
  pb::JobPositionProto& position = *manifest.mutable_position();
  position.set_next_function(1'000'000);
  position.add_datasets()->set_epoch(3);
  position.add_leases()->set_index(7);
  for (int f = 0; f < functions; ++f) {
    pb::CheckpointFunctionProto& function = *position.add_functions();
    function.set_function(1 + static_cast<uint64_t>(f));
    function.set_steps(4);
    function.add_bound_batches()->set_batches(4);
  }
  return manifest;
}

class PositionFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDirectory::Create("position");
    MU_ASSERT_OK(folder);
    folder_.emplace(*std::move(folder));
  }
  const std::string& folder() const { return folder_->path(); }
  std::string path() const { return JoinPath(folder(), kPositionFile); }

  std::optional<TempDirectory> folder_;
};

TEST_F(PositionFileTest, AManifestComesBackAsItWasWhereverItsFunctionsAre) {
  for (const int functions : {0, kMostReadableFunctions, kMostReadableFunctions + 1, 20'000}) {
    const pb::CheckpointProto manifest = Manifest(functions);
    MU_ASSERT_OK(WriteManifest(folder(), manifest));
    EXPECT_EQ(FileExists(path()), functions > kMostReadableFunctions) << functions;
    MU_ASSERT_OK_AND_ASSIGN(const auto read, ReadManifest(folder()));
    EXPECT_EQ(read.SerializeAsString(), manifest.SerializeAsString()) << functions;
  }
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t json, FileSize(JoinPath(folder(), "manifest.json")));
  EXPECT_LT(json, 1000u);
}

// A folder may hold the file of a try that failed.
TEST_F(PositionFileTest, ASmallPositionIgnoresTheFile) {
  MU_ASSERT_OK(WriteManifest(folder(), Manifest(5000)));
  MU_ASSERT_OK(WriteManifest(folder(), Manifest(2)));
  MU_ASSERT_OK(WriteFileAtomic(path(), "garbage"));
  MU_ASSERT_OK_AND_ASSIGN(const auto read, ReadManifest(folder()));
  EXPECT_EQ(read.position().functions_size(), 2);
}

TEST_F(PositionFileTest, ADamagedOneIsRefusedByName) {
  MU_ASSERT_OK(WriteManifest(folder(), Manifest(kMostReadableFunctions + 1)));
  MU_ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(path()));
  for (const size_t at : {size_t{0}, good.size() / 2, good.size() - 4, good.size() - 1}) {
    std::string bad = good;
    bad[at] ^= 1;
    MU_ASSERT_OK(WriteFileAtomic(path(), bad));
    EXPECT_THAT(ReadManifest(folder()), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path())));
  }
  for (const std::string& bad :
       {std::string(), good.substr(0, 3), good.substr(0, good.size() / 2)}) {
    MU_ASSERT_OK(WriteFileAtomic(path(), bad));
    EXPECT_THAT(ReadManifest(folder()), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path())));
  }
  MU_ASSERT_OK(RemoveTree(path()));
  EXPECT_THAT(ReadManifest(folder()), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("missing")));
  MU_ASSERT_OK(WriteFileAtomic(path(), good));
  MU_EXPECT_OK(ReadManifest(folder()).status());
}

}  // namespace
}  // namespace mu
