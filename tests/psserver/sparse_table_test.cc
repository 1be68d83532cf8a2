// Tables of which few rows exist: whatever passes over their rows finds them without reading what
// stands for the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "psserver/store/table_partition.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kHuge = int64_t{1} << 34;
// Pages for the few rows. Reading all of a bitmap of 2 GB takes a thousand, even if they are huge.
constexpr int64_t kMostFaults = 400;

// One partition, with rows [value | accumulator] of `dim` floats each.
absl::StatusOr<std::unique_ptr<TablePartition>> PartitionOf(int64_t rows, uint32_t dim = 1) {
  pb::TableProto table;
  table.set_id(1);
  table.set_name("sparse");
  table.set_rows(static_cast<uint64_t>(rows));
  table.set_dim(dim);
  table.set_partitions(1);
  table.mutable_optimizer()->mutable_adagrad()->set_learning_rate(0.1f);
  table.mutable_optimizer()->mutable_adagrad()->set_initial_accumulator(0.5f);
  return TablePartition::Create(std::make_shared<const TableDefinition>(table), 0);
}

// Pages that this thread has touched first.
int64_t FaultsOf(const std::function<void()>& work) {
  rusage before = {}, after = {};
  getrusage(RUSAGE_THREAD, &before);
  work();
  getrusage(RUSAGE_THREAD, &after);
  return after.ru_minflt - before.ru_minflt;
}

std::vector<int64_t> CutIds(TablePartition* partition, size_t most) {
  std::vector<int64_t> ids, some(most);
  uint64_t position = 0;
  while (const size_t n = partition->ReadCutIds(&position, most, some.data()))
    ids.insert(ids.end(), some.begin(), some.begin() + n);
  return ids;
}

std::vector<float> CutColumn(TablePartition* partition, size_t column, size_t most, bool last) {
  std::vector<float> values, some(most);
  uint64_t position = 0;
  while (const size_t n = partition->ReadCut(&position, column, 1, most, last, some.data()))
    values.insert(values.end(), some.begin(), some.begin() + n);
  return values;
}

class HugeTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(partition_, PartitionOf(kHuge));
    const float values[] = {1, 2, 3};
    partition_->AssignRows({0, kHuge / 2 + 77, kHuge - 1}, values);
  }

  std::unique_ptr<TablePartition> partition_;
};

TEST_F(HugeTableTest, ACutReadsOnlyWhereRowsAre) {
  CutCopies copies;
  MU_ASSERT_OK_AND_ASSIGN(auto cut, partition_->PrepareCut(&copies));
  std::vector<int64_t> ids;
  std::vector<float> values, slots;
  const int64_t faults = FaultsOf([&] {
    partition_->BeginCut(std::move(cut));
    const float later[] = {20, 30};  // one is there, the other is created after the cut
    partition_->AssignRows({kHuge / 2 + 77, kHuge / 4}, later);
    ids = CutIds(partition_.get(), 2);
    values = CutColumn(partition_.get(), 0, 2, /*last=*/false);
    slots = CutColumn(partition_.get(), 1, 2, /*last=*/true);
  });
  EXPECT_EQ(partition_->CutRows(), 3u);
  EXPECT_THAT(ids, ElementsAre(0, kHuge / 2 + 77, kHuge - 1));
  EXPECT_THAT(values, ElementsAre(1.0f, 2.0f, 3.0f));
  EXPECT_THAT(slots, ElementsAre(0.5f, 0.5f, 0.5f));
  EXPECT_LT(faults, kMostFaults);
  partition_->EndCut();
}

TEST_F(HugeTableTest, AScanReadsOnlyWhereRowsAre) {
  std::vector<int64_t> ids;
  std::vector<float> values;
  int calls = 1;
  const int64_t faults = FaultsOf([&] {
    uint64_t position = 0;
    while (calls < 100 && partition_->Scan(&position, 2, &ids, &values)) ++calls;
  });
  EXPECT_THAT(ids, ElementsAre(0, kHuge / 2 + 77, kHuge - 1));
  EXPECT_THAT(values, ElementsAre(1.0f, 2.0f, 3.0f));
  EXPECT_LE(calls, 3);
  EXPECT_LT(faults, kMostFaults);
}

TEST_F(HugeTableTest, IdsReadsOnlyWhereRowsAre) {
  std::vector<int64_t> ids;
  EXPECT_LT(FaultsOf([&] { ids = partition_->Ids(); }), kMostFaults);
  EXPECT_THAT(ids, ElementsAre(0, kHuge / 2 + 77, kHuge - 1));
}

// A bit stands for 32,768 rows, and 64 of these bits are looked at together.
TEST(SparseTableTest, FindsAllRowsAtAnyDensity) {
  constexpr int64_t kBlock = 32'768;
  constexpr int64_t kRows = 130 * kBlock + 7;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SplitMix random(seed);
    MU_ASSERT_OK_AND_ASSIGN(const auto partition, PartitionOf(kRows));
    std::set<int64_t> expected;
    // Of blocks only some, in each the ends or anything between.
    for (uint64_t n = random.Below(40); n > 0; --n) {
      const int64_t block = static_cast<int64_t>(random.Below(131));
      const int64_t begin = block * kBlock;
      const int64_t rows = std::min(kBlock, kRows - begin);
      for (uint64_t k = random.Below(4); k > 0; --k) {
        expected.insert(begin + static_cast<int64_t>(random.Below(static_cast<uint64_t>(rows))));
        if (random.Below(3) == 0) expected.insert(begin);
        if (random.Below(3) == 0) expected.insert(begin + rows - 1);
      }
    }
    const std::vector<int64_t> ids(expected.begin(), expected.end());
    std::vector<float> values;
    for (size_t i = 0; i < ids.size(); ++i) values.push_back(static_cast<float>(i));
    if (seed % 2 == 0) {
      partition->AssignRows(ids, values.data());
    } else {
      partition->SetColumns(ids, 0, 1, values.data());  // as a restore does
    }
    EXPECT_EQ(partition->Ids(), ids);
    std::vector<int64_t> scanned;
    std::vector<float> scanned_values;
    uint64_t position = 0;
    while (partition->Scan(&position, 1 + random.Below(5), &scanned, &scanned_values)) continue;
    EXPECT_EQ(scanned, ids);
    EXPECT_EQ(scanned_values, values);
    CutCopies copies;
    MU_ASSERT_OK_AND_ASSIGN(auto cut, partition->PrepareCut(&copies));
    partition->BeginCut(std::move(cut));
    EXPECT_EQ(CutIds(partition.get(), 1 + random.Below(5)), ids);
    EXPECT_EQ(CutColumn(partition.get(), 0, 1 + random.Below(5), /*last=*/true), values);
    partition->EndCut();
  }
}

// A page of 4 KB has 512 rows of 8 bytes; a page of marks has 32,768 rows.
TEST(SparseTableTest, CountsPagesOfRowsAndOfTheirMarks) {
  MU_ASSERT_OK_AND_ASSIGN(const auto partition, PartitionOf(kHuge));
  const float value[] = {1};
  const auto memory_with = [&](int64_t id) {
    partition->AssignRows({id}, value);
    return partition->usage().memory / 4096;
  };
  EXPECT_EQ(partition->usage().memory, 0u);
  EXPECT_EQ(memory_with(0), 2u);
  EXPECT_EQ(memory_with(511), 2u);
  EXPECT_EQ(memory_with(511), 2u) << "it is there";
  EXPECT_EQ(memory_with(512), 3u);
  EXPECT_EQ(memory_with(32'767), 4u);
  EXPECT_EQ(memory_with(32'768), 6u);
  EXPECT_EQ(memory_with(kHuge - 1), 8u);
  const TablePartition::Usage usage = partition->usage();
  EXPECT_EQ(usage.rows, 6u);
  EXPECT_EQ(usage.bytes, 6u * 8);
  EXPECT_EQ(usage.rows, partition->rows());
  EXPECT_EQ(usage.bytes, partition->bytes());
}

TEST(SparseTableTest, CountsAllPagesOfLongRows) {
  MU_ASSERT_OK_AND_ASSIGN(const auto partition, PartitionOf(100'000, 300));  // rows of 2,400 bytes
  std::set<int64_t> pages;
  const int64_t ids[] = {0, 1, 2, 50'000, 99'999, 49'999};
  for (const int64_t id : ids) {
    pages.insert(id * 2400 / 4096);
    pages.insert((id * 2400 + 2399) / 4096);
  }
  partition->SetColumns(ids, 0, 300, std::vector<float>(6 * 300).data());
  const std::set<int64_t> blocks = {0, 50'000 / 32'768, 99'999 / 32'768};
  EXPECT_EQ(partition->usage().memory, 4096 * (pages.size() + blocks.size()));
}

TEST(SparseTableTest, ATableThatIsFullTakesItsBytes) {
  MU_ASSERT_OK_AND_ASSIGN(const auto partition, PartitionOf(1000));
  std::vector<int64_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 0);
  partition->AssignRows(ids, std::vector<float>(1000).data());
  EXPECT_EQ(partition->usage().memory, 1000u * 8 + 16 * 8) << "and 16 words of marks";
}

// So that pushes need not wait for long, a scan of many blocks ends before all of them are seen.
TEST(SparseTableTest, AScanPassesManyBlocksInTurns) {
  constexpr int64_t kBlock = 32'768;
  constexpr int64_t kBlocks = 2100;
  MU_ASSERT_OK_AND_ASSIGN(const auto partition, PartitionOf(kBlocks * kBlock));
  std::vector<int64_t> ids;
  for (int64_t block = 0; block < kBlocks; ++block) ids.push_back(block * kBlock + block);
  const std::vector<float> values(ids.size(), 7);
  partition->AssignRows(ids, values.data());
  std::vector<int64_t> scanned;
  std::vector<float> scanned_values;
  uint64_t position = 0;
  EXPECT_TRUE(partition->Scan(&position, ids.size(), &scanned, &scanned_values));
  EXPECT_EQ(scanned.size(), 2048u);
  while (partition->Scan(&position, ids.size(), &scanned, &scanned_values)) continue;
  EXPECT_EQ(scanned, ids);
  EXPECT_EQ(scanned_values, values);
}

}  // namespace
}  // namespace mu
