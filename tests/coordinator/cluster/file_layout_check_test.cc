#include "coordinator/cluster/file_layout_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

class FileLayoutCheckTest : public ::testing::Test {
 protected:
  FileLayoutCheckTest() {
    dataset_.set_block_records(2);
    layout_.set_records(5);
    layout_.set_bytes(50);
    for (const uint64_t offset : {0, 20, 40}) {
      layout_.add_offsets(offset);
      layout_.add_lines(1 + offset / 10);
    }
  }

  absl::Status Check() const { return CheckFileLayout(dataset_, layout_); }

  muster::DatasetProto dataset_;
  muster::FileLayoutProto layout_;
};

TEST_F(FileLayoutCheckTest, TakesWhatWorkersReport) {
  MU_EXPECT_OK(Check());
  layout_.set_records(6);
  MU_EXPECT_OK(Check());
}

TEST_F(FileLayoutCheckTest, TakesAFileWithoutRecords) {
  layout_.Clear();
  MU_EXPECT_OK(Check());
}

TEST_F(FileLayoutCheckTest, RefusesMoreRecordsThanBlocks) {
  layout_.set_records(7);
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInternal, HasSubstr("not of 4")));
  // Blocks of it would never end, and take all memory.
  layout_.set_records(std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInternal, HasSubstr("18446744073709551615")));
}

TEST_F(FileLayoutCheckTest, RefusesBlocksWithoutALine) {
  layout_.mutable_lines()->RemoveLast();
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInternal, HasSubstr("blocks")));
}

TEST_F(FileLayoutCheckTest, RefusesBlocksWithoutABeginning) {
  for (const uint32_t beginning : {1, 2, 3}) {
    layout_.add_beginnings(beginning);
    if (beginning == 3) break;
    EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInternal, HasSubstr("beginnings")));
  }
  MU_EXPECT_OK(Check());
}

TEST_F(FileLayoutCheckTest, RefusesPlacesThatDoNotRise) {
  layout_.set_offsets(1, 40);
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInternal, HasSubstr("block 1")));
  layout_.set_offsets(1, 20);
  layout_.set_bytes(40);
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInternal, HasSubstr("block 2")));
}

}  // namespace
}  // namespace mu
