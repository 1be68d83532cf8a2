#include "common/tensor/batch_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Records of two numbers, a label, and a list with weights: of 2, 0, 1 and 3 values.
Batch FourRecords() {
  Batch batch;
  batch.records = 4;
  batch.names = {"x", "label", "tags.values", "tags.splits", "tags.weights"};
  batch.columns = {Tensor::Of<float>({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31}),
                   Tensor::Of<uint8_t>({4}, {1, 0, 0, 1}),
                   Tensor::Of<int64_t>({6}, {100, 101, 120, 130, 131, 132}),
                   Tensor::Of<int32_t>({5}, {0, 2, 2, 3, 6}),
                   Tensor::Of<float>({6}, {1, 2, 3, 4, 5, 6})};
  return batch;
}

TEST(BatchSlice, HasTheRecordsOfEachColumn) {
  const Batch batch = FourRecords();
  Batch slice;
  MU_ASSERT_OK(SliceBatch(batch, 1, 3, &slice));
  EXPECT_EQ(slice.records, 3u);
  EXPECT_EQ(slice.names, batch.names);
  EXPECT_EQ(slice.columns[0].shape(), Shape({3, 2}));
  EXPECT_THAT(slice.columns[0].flat<float>(), ElementsAre(10, 11, 20, 21, 30, 31));
  EXPECT_THAT(slice.columns[1].flat<uint8_t>(), ElementsAre(0, 0, 1));
  EXPECT_THAT(slice.columns[2].flat<int64_t>(), ElementsAre(120, 130, 131, 132));
  EXPECT_THAT(slice.columns[3].flat<int32_t>(), ElementsAre(0, 0, 1, 4));
  EXPECT_THAT(slice.columns[4].flat<float>(), ElementsAre(3, 4, 5, 6));
  MU_ASSERT_OK(SliceBatch(batch, 0, 1, &slice));
  EXPECT_THAT(slice.columns[2].flat<int64_t>(), ElementsAre(100, 101));
  EXPECT_THAT(slice.columns[3].flat<int32_t>(), ElementsAre(0, 2));
  MU_ASSERT_OK(SliceBatch(batch, 1, 1, &slice));
  EXPECT_EQ(slice.columns[2].shape(), Shape({0}));
}

// An array may have such a name, too; what splits are has an entry more than there are records.
TEST(BatchSlice, OnlySplitsMakeAList) {
  Batch batch;
  batch.records = 2;
  batch.names = {"a.values", "a.splits"};
  batch.columns = {Tensor::Of<float>({2}, {5, 6}), Tensor::Of<int32_t>({2}, {7, 8})};
  Batch slice;
  MU_ASSERT_OK(SliceBatch(batch, 1, 1, &slice));
  EXPECT_THAT(slice.columns[0].flat<float>(), ElementsAre(6));
  EXPECT_THAT(slice.columns[1].flat<int32_t>(), ElementsAre(8));
}

TEST(BatchSlice, NamesAColumnThatIsNotOfTheRecords) {
  Batch slice;
  const auto refused = [&](Batch batch, const char* what) {
    EXPECT_THAT(SliceBatch(batch, 1, 2, &slice),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  Batch batch = FourRecords();
  batch.columns[1] = Tensor::Of<uint8_t>({3}, {1, 0, 0});
  refused(batch, "column \"label\" of the batch has 3 entries");
  batch.columns[1] = Tensor::Scalar<uint8_t>(1);
  refused(batch, "column \"label\" of the batch has no axis of records");
  batch = FourRecords();
  batch.columns[4] = Tensor::Of<float>({5}, {1, 2, 3, 4, 5});
  refused(batch, "column \"tags.weights\" of the batch has 5 entries");
  batch = FourRecords();
  batch.columns[3].data<int32_t>()[1] = -1;
  refused(batch, "column \"tags.values\"");
  batch.columns[3].data<int32_t>()[1] = 5;
  refused(batch, "column \"tags.values\"");
  batch = FourRecords();
  batch.columns[3].data<int32_t>()[3] = 7;
  refused(batch, "column \"tags.values\"");
}

}  // namespace
}  // namespace mu
