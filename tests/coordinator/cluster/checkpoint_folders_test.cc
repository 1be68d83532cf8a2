#include "coordinator/cluster/checkpoint_folders.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

TEST(CheckpointFolders, ThoseThatFailPushOutNoGoodOne) {
  CheckpointFolders folders;
  folders.Add(CheckpointNumber(1), "good");
  folders.Committed();
  for (uint64_t number = 2; number < 100; ++number) {
    folders.Add(CheckpointNumber(number), "failed");
    EXPECT_EQ(folders.Find(CheckpointNumber(number)), "failed") << "it may just be committed";
    folders.Remove(CheckpointNumber(number));
  }
  EXPECT_EQ(folders.Find(CheckpointNumber(1)), "good");
  EXPECT_EQ(folders.Find(CheckpointNumber(2)), std::nullopt);
}

TEST(CheckpointFolders, TheNewestAreKnown) {
  CheckpointFolders folders;
  constexpr uint64_t kMost = CheckpointFolders::kMost;
  for (uint64_t number = 1; number <= kMost + 1; ++number) {
    folders.Add(CheckpointNumber(number), absl::StrCat(number));
    EXPECT_NE(folders.Find(CheckpointNumber(1)), std::nullopt) << "before the commit";
    folders.Committed();
  }
  EXPECT_EQ(folders.Find(CheckpointNumber(1)), std::nullopt);
  EXPECT_EQ(folders.Find(CheckpointNumber(2)), "2");
  EXPECT_EQ(folders.Find(CheckpointNumber(kMost + 1)), absl::StrCat(kMost + 1));
}

}  // namespace
}  // namespace mu
