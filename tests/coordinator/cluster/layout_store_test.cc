// What is known of data files from an earlier start: believed only while it is true.
#include "coordinator/cluster/layout_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

class LayoutStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("layouts"));
    directory_.emplace(std::move(directory));
    dataset_.set_name("train");
    dataset_.mutable_csv()->set_delimiter(",");
    dataset_.set_block_records(10);
    for (const char* name : {"a.csv", "b.csv"}) {
      MU_ASSERT_OK(WriteFileAtomic(Path(name), name));
      dataset_.add_files(Path(name));
    }
  }
  std::string Path(const std::string& name) const { return JoinPath(directory_->path(), name); }
  std::string Folder() const { return Path("job/layouts"); }

  // Asks for all layouts, and checks them; returns the files that were looked through.
  std::vector<size_t> Scanned(const std::string& folder) {
    std::vector<size_t> scanned;
    const auto layouts =
        LayoutStore(folder).Complete(dataset_, [&](const auto& files, const auto& found) {
          scanned = files;
          for (const size_t file : files) found(file, ReplyOf(file));
          return absl::OkStatus();
        });
    MU_EXPECT_OK(layouts.status());
    for (size_t i = 0; layouts.ok() && i < layouts->size(); ++i) {
      EXPECT_EQ((*layouts)[i].SerializeAsString(), LayoutOf(i).SerializeAsString()) << i;
    }
    return scanned;
  }
  // As a worker answers that sees the same files.
  pb::ScanFileReply ReplyOf(size_t file) {
    pb::ScanFileReply reply;
    *reply.mutable_layout() = LayoutOf(file);
    if (!stamps_) return reply;
    const auto info = GetFileInfo(dataset_.files(static_cast<int>(file)));
    MU_EXPECT_OK(info.status());
    reply.mutable_stamp()->set_inode(info->inode + (other_inodes_ ? 1 : 0));
    reply.mutable_stamp()->set_size(info->size);
    reply.mutable_stamp()->set_modified_ns(info->modified_ns);
    return reply;
  }
  static pb::FileLayoutProto LayoutOf(size_t file) {
    pb::FileLayoutProto layout;
    layout.set_records(100 + file);
    layout.set_bytes(5000);
    layout.add_offsets(17 * file);
    layout.add_lines(2);
    layout.add_beginnings(static_cast<uint32_t>(3'000'000'000 + file));
    return layout;
  }

  std::optional<TempDirectory> directory_;
  pb::DatasetProto dataset_;
  bool stamps_ = true, other_inodes_ = false;
};

TEST_F(LayoutStoreTest, FilesAreLookedThroughOnce) {
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1));
  EXPECT_THAT(Scanned(Folder()), IsEmpty());
  dataset_.set_id(7);  // another start may number them otherwise
  EXPECT_THAT(Scanned(Folder()), IsEmpty());
  MU_ASSERT_OK(WriteFileAtomic(Path("c.csv"), "c"));
  dataset_.add_files(Path("c.csv"));
  EXPECT_THAT(Scanned(Folder()), ElementsAre(2));
}

// A later version finds what an earlier one has kept.
TEST_F(LayoutStoreTest, TheNameOfWhatIsKeptTellsTheReadingAndTheFile) {
  Scanned(Folder());
  pb::DatasetProto reading = dataset_;
  reading.clear_name();
  reading.clear_files();
  std::vector<std::string> names;
  for (const std::string& file : dataset_.files()) {
    const uint64_t key = HashCombine(HashString(reading.SerializeAsString()), HashString(file));
    names.push_back(absl::StrCat(absl::Hex(key, absl::kZeroPad16)));
  }
  MU_ASSERT_OK_AND_ASSIGN(const auto kept, ListDirectory(Folder()));
  EXPECT_THAT(kept, UnorderedElementsAreArray(names));
}

TEST_F(LayoutStoreTest, WithoutAFolderNothingIsKept) {
  EXPECT_THAT(Scanned(""), ElementsAre(0, 1));
  EXPECT_THAT(Scanned(""), ElementsAre(0, 1));
}

TEST_F(LayoutStoreTest, AChangedFileIsLookedThroughAgain) {
  Scanned(Folder());
  MU_ASSERT_OK(WriteFileAtomic(Path("b.csv"), "b.csv"));  // same bytes, another file
  EXPECT_THAT(Scanned(Folder()), ElementsAre(1));
  MU_ASSERT_OK(AppendToFile(Path("a.csv"), "more"));
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0));
  EXPECT_THAT(Scanned(Folder()), IsEmpty());
}

TEST_F(LayoutStoreTest, AnotherTimeIsAnotherFile) {
  Scanned(Folder());
  const timespec times[] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, Path("a.csv").c_str(), times, 0), 0);
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0));
}

// A worker in a container may have another file at this path; and one that changes while it is
// looked through is looked through again.
TEST_F(LayoutStoreTest, OnlyWhatTheWorkerSawIsKept) {
  other_inodes_ = true;
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1));
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1));
  stamps_ = false;
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1));
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1));
}

TEST_F(LayoutStoreTest, FilesThatOnlyWorkersSeeAreNoError) {
  dataset_.add_files(Path("there.csv"));
  stamps_ = false;
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1, 2));
}

TEST_F(LayoutStoreTest, ADataSetThatReadsOtherwiseLooksForItself) {
  Scanned(Folder());
  dataset_.mutable_csv()->set_header(true);
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1));
  dataset_.set_block_records(20);
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1));
}

// Bytes of what is kept, changed; and shorter beginnings of it.
TEST_F(LayoutStoreTest, DamageIsNoticed) {
  dataset_.mutable_files()->RemoveLast();
  Scanned(Folder());
  MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(Folder()));
  ASSERT_EQ(names.size(), 1u);
  const std::string path = JoinPath(Folder(), names[0]);
  MU_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
  for (size_t i = 0; i < whole.size(); i += 3) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    MU_ASSERT_OK(WriteFileAtomic(path, damaged));
    EXPECT_THAT(Scanned(Folder()), ElementsAre(0)) << "byte " << i;
    MU_ASSERT_OK(WriteFileAtomic(path, whole.substr(0, i)));
    EXPECT_THAT(Scanned(Folder()), ElementsAre(0)) << i << " bytes";
  }
  EXPECT_THAT(Scanned(Folder()), IsEmpty());
}

// It does not say how blocks begin.
TEST_F(LayoutStoreTest, WhatAnEarlierVersionHasKeptIsLookedForAgain) {
  dataset_.mutable_files()->RemoveLast();
  Scanned(Folder());
  MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(Folder()));
  ASSERT_EQ(names.size(), 1u);
  const std::string path = JoinPath(Folder(), names[0]);
  MU_ASSERT_OK_AND_ASSIGN(std::string kept, ReadFile(path));
  const std::string version = "muster layout 3:";
  ASSERT_EQ(kept.compare(0, version.size(), version), 0);
  MU_ASSERT_OK(WriteFileAtomic(path, kept.replace(0, version.size(), "muster layout 2:")));
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0));
  EXPECT_THAT(Scanned(Folder()), IsEmpty());
}

TEST_F(LayoutStoreTest, WhatCannotBeKeptIsNoError) {
  MU_ASSERT_OK(WriteFileAtomic(Path("job"), "a file where the folder should be"));
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1));
}

TEST_F(LayoutStoreTest, NothingIsLeftOfWhatCannotBeKept) {
  Scanned(Folder());
  MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(Folder()));
  for (const std::string& name : names) {
    const std::string path = JoinPath(Folder(), name);
    MU_ASSERT_OK(RemoveTree(path));
    MU_ASSERT_OK(MakeDirectories(JoinPath(path, "in the way")));
  }
  EXPECT_THAT(Scanned(Folder()), ElementsAre(0, 1));
  MU_ASSERT_OK_AND_ASSIGN(const auto left, ListDirectory(Folder()));
  EXPECT_THAT(left, UnorderedElementsAreArray(names));
}

TEST_F(LayoutStoreTest, ErrorsOfTheScanAreHandedOn) {
  const auto layouts =
      LayoutStore(Folder()).Complete(dataset_, [&](const auto&, const auto& found) {
        found(0, ReplyOf(0));
        return absl::DataLossError("line 3");
      });
  EXPECT_THAT(layouts, HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Scanned(Folder()), ElementsAre(1)) << "what was found before it is kept";
}

}  // namespace
}  // namespace mu
