#include "common/sharding/partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/base/status.h"

namespace mu {
namespace {

pb::VariableProto Variable(std::vector<int64_t> dims) {
  pb::VariableProto variable;
  variable.set_name("v");
  variable.set_dtype(muster::FLOAT32);
  for (int64_t dim : dims) variable.mutable_shape()->add_dims(dim);
  return variable;
}

std::vector<int64_t> Sizes(const pb::VariableProto& variable) {
  const std::vector<int64_t> starts = PartitionStarts(variable);
  EXPECT_EQ(starts[0], 0);
  std::vector<int64_t> sizes;
  for (size_t p = 0; p < starts.size(); ++p) {
    sizes.push_back((p + 1 < starts.size() ? starts[p + 1] : LayoutOf(variable).rows) - starts[p]);
  }
  return sizes;
}

TEST(PartitionTest, SmallVariablesAreOnePiece) {
  EXPECT_EQ(PartitionStarts(Variable({})), std::vector<int64_t>{0});
  EXPECT_EQ(PartitionStarts(Variable({0, 5})), std::vector<int64_t>{0});
  EXPECT_EQ(PartitionStarts(Variable({512, 127})), std::vector<int64_t>{0});  // 254 KiB
  EXPECT_EQ(PartitionStarts(Variable({512, 255})), std::vector<int64_t>{0});  // below 2 x 256 KiB
}

TEST(PartitionTest, LargeVariablesHavePiecesOfAtLeast256KiBAndAtMost64) {
  EXPECT_EQ(PartitionStarts(Variable({512, 256})), (std::vector<int64_t>{0, 256}));
  const auto sizes = Sizes(Variable({100000, 1000}));
  EXPECT_EQ(sizes.size(), 64u);
}

TEST(PartitionTest, FixedShardsNeverExceedTheRows) {
  auto variable = Variable({10, 3});
  variable.mutable_partitioner()->set_fixed_shards(4);
  EXPECT_EQ(Sizes(variable), (std::vector<int64_t>{3, 3, 2, 2}));
  variable.mutable_partitioner()->set_fixed_shards(1000);
  EXPECT_EQ(Sizes(variable), std::vector<int64_t>(10, 1));
  variable.mutable_partitioner()->set_fixed_shards(0);
  EXPECT_EQ(Sizes(variable), std::vector<int64_t>{10});
}

TEST(PartitionTest, MinAndMaxSizeHoldForEveryPiece) {
  const uint64_t seed = 17;
  SplitMix random(seed);
  for (int i = 0; i < 2000; ++i) {
    auto variable = Variable(
        {static_cast<int64_t>(1 + random.Below(300)), static_cast<int64_t>(1 + random.Below(40))});
    const RowLayout layout = LayoutOf(variable);
    const int64_t bytes = static_cast<int64_t>(1 + random.Below(5000));
    SCOPED_TRACE(testing::Message() << "seed " << seed << " case " << i << " rows " << layout.rows
                                    << " row bytes " << layout.bytes_per_row << " bytes " << bytes);
    variable.mutable_partitioner()->set_min_size(bytes);
    auto sizes = Sizes(variable);
    if (sizes.size() > 1) {
      EXPECT_GE(*std::min_element(sizes.begin(), sizes.end()) * layout.bytes_per_row, bytes);
    }
    variable.mutable_partitioner()->set_max_size(bytes);
    sizes = Sizes(variable);
    EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()) * layout.bytes_per_row,
              std::max(bytes, layout.bytes_per_row));
  }
}

TEST(PartitionTest, HugePartitionerSizesAreHarmless) {
  auto variable = Variable({10, 3});
  variable.mutable_partitioner()->set_max_size(~uint64_t{0});
  EXPECT_EQ(Sizes(variable), std::vector<int64_t>{10});
  variable.mutable_partitioner()->set_min_size(~uint64_t{0});
  EXPECT_EQ(Sizes(variable), std::vector<int64_t>{10});
  variable.mutable_partitioner()->set_max_size(0);
  EXPECT_EQ(Sizes(variable), std::vector<int64_t>(10, 1));
}

TEST(PartitionTest, TablePartitions) {
  EXPECT_EQ(DefaultTablePartitions(1), 64u);
  EXPECT_EQ(DefaultTablePartitions(4), 64u);
  EXPECT_EQ(DefaultTablePartitions(5), 128u);
  EXPECT_EQ(DefaultTablePartitions(100), 2048u);
  for (uint64_t rows : {1ull, 63ull, 64ull, 65ull, 1000ull}) {
    uint64_t total = 0;
    for (uint32_t p = 0; p < 64; ++p) {
      uint64_t counted = 0;
      for (uint64_t id = 0; id < rows; ++id) counted += id % 64 == p;
      EXPECT_EQ(TablePartitionRows(rows, 64, p), counted);
      total += counted;
    }
    EXPECT_EQ(total, rows);
  }
}

}  // namespace
}  // namespace mu
