#include "coordinator/core/data_contents.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/core/planned_leases.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::LayoutOf;
using testing::StatusIs;

constexpr uint32_t kBlock = 10;

pb::DatasetProto Dataset() {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_name("d");
  dataset.set_batch_size(5);
  dataset.set_block_records(kBlock);
  dataset.set_seed(7);
  return dataset;
}

// Two blocks; files of different `salt` begin differently.
pb::FileLayoutProto File(uint32_t salt) {
  pb::FileLayoutProto layout;
  layout.set_records(2 * kBlock);
  layout.set_bytes(1000);
  for (const uint64_t offset : {7, 400}) layout.add_offsets(offset);
  for (const uint64_t line : {2, 12}) layout.add_lines(line);
  for (const uint32_t beginning : {11, 22}) layout.add_beginnings(beginning + salt);
  return layout;
}

DataLayout Data(const std::vector<pb::FileLayoutProto>& files,
                const pb::DatasetProto& dataset = Dataset()) {
  return LayoutOf(dataset, std::vector<FileLayout>(files.begin(), files.end()));
}

std::vector<pb::FileLayoutProto> Files(uint32_t count) {
  std::vector<pb::FileLayoutProto> files;
  for (uint32_t i = 0; i < count; ++i) files.push_back(File(100 * i));
  return files;
}

pb::DatasetPositionProto PositionIn(const DataLayout& data) {
  return testing::BeginLeases(data).Position();
}

pb::DatasetProto Named(size_t files) {
  pb::DatasetProto named = Dataset();
  for (size_t i = 0; i < files; ++i) named.add_files(absl::StrCat("part-", i, ".csv"));
  return named;
}

TEST(DataContents, AreTheSameOfACopyElsewhere) {
  const DataLayout data = Data(Files(3));
  EXPECT_EQ(ContentsOf(data).size(), 3u);
  EXPECT_EQ(ContentsOf(data), ContentsOf(Data(Files(3))));
  MU_EXPECT_OK(CheckSameData(Data(Files(3)), PositionIn(data), Named(3)));
}

TEST(DataContents, TellWhichFileHasChanged) {
  const pb::DatasetPositionProto position = PositionIn(Data(Files(3)));
  pb::FileLayoutProto bytes = File(100), place = File(100), beginning = File(100);
  bytes.set_bytes(1001);
  place.set_offsets(1, 401);
  beginning.set_beginnings(1, 0);
  for (const auto& [what, file] :
       {std::pair("another length", bytes), std::pair("a block elsewhere", place),
        std::pair("a block that begins differently", beginning)}) {
    SCOPED_TRACE(what);
    std::vector<pb::FileLayoutProto> files = Files(3);
    files[1] = file;
    EXPECT_THAT(CheckSameData(Data(files), position, Named(3)),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("dataset 'd': part-1.csv has changed since the job began")));
    EXPECT_THAT(CheckSameData(Data(files), position, Dataset()),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("file 2 of 3 has")));
  }
}

TEST(DataContents, DependOnTheOrderOfTheFiles) {
  std::vector<pb::FileLayoutProto> files = Files(3);
  std::swap(files[1], files[2]);
  EXPECT_THAT(CheckSameData(Data(files), PositionIn(Data(Files(3))), Named(3)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("part-1.csv")));
}

// A manifest does not grow with the files.
TEST(DataContents, ManyFilesShareHashes) {
  constexpr uint32_t kMany = 2 * kMostContents + 1;  // three a hash
  const pb::DatasetPositionProto position = PositionIn(Data(Files(kMany)));
  EXPECT_LE(position.contents_size(), static_cast<int>(kMostContents));
  EXPECT_EQ(ContentsOf(Data(Files(kMostContents))).size(), kMostContents) << "one each";
  for (const auto& [changed, range] :
       {std::pair(0, "part-0.csv to part-2.csv"), std::pair(4, "part-3.csv to part-5.csv"),
        std::pair(128, "part-126.csv to part-128.csv")}) {
    SCOPED_TRACE(changed);
    std::vector<pb::FileLayoutProto> files = Files(kMany);
    files[static_cast<size_t>(changed)].set_bytes(1001);
    EXPECT_THAT(CheckSameData(Data(files), position, Named(kMany)),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(absl::StrCat("one of the files from ", range, " has changed"))));
  }
}

// What a program has changed is no change of its files.
TEST(DataContents, OtherNumbersOfRecordsAreNoChangedFiles) {
  const pb::DatasetPositionProto position = PositionIn(Data(Files(2)));
  pb::DatasetProto dataset = Dataset();
  dataset.set_seed(8);
  const auto other = StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr("is not the one that the checkpoint stopped in"));
  EXPECT_THAT(CheckSameData(Data(Files(2), dataset), position, Named(2)), other);
  std::vector<pb::FileLayoutProto> files = Files(2);
  files[1].set_records(2 * kBlock - 1);
  EXPECT_THAT(CheckSameData(Data(files), position, Named(2)), other);
}

TEST(DataContents, AreNotComparedWithWhatAnEarlierProgramWrote) {
  pb::DatasetPositionProto position = PositionIn(Data(Files(2)));
  std::vector<pb::FileLayoutProto> files = Files(2);
  files[1].set_bytes(1001);
  EXPECT_FALSE(CheckSameData(Data(files), position, Named(2)).ok());
  position.clear_contents();
  MU_EXPECT_OK(CheckSameData(Data(files), position, Named(2)));
}

// Of a manifest that is damaged or was made by hand.
TEST(DataContents, OtherNumbersOfHashesAreOtherData) {
  pb::DatasetPositionProto position = PositionIn(Data(Files(3)));
  position.mutable_contents()->RemoveLast();
  EXPECT_THAT(CheckSameData(Data(Files(3)), position, Named(3)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("part-2.csv")));
}

}  // namespace
}  // namespace mu
