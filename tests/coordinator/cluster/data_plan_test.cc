#include "coordinator/core/data_plan.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "coordinator/core/data_leases.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

pb::DatasetProto Dataset(uint32_t batch, uint64_t shuffle, uint32_t block) {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_name("d");
  dataset.set_batch_size(batch);
  dataset.set_shuffle_records(shuffle);
  dataset.set_block_records(block);
  dataset.set_epochs(1);
  dataset.set_seed(7);
  return dataset;
}

TEST(SelectedRecords, AgreesWithCounting) {
  SplitMix random(1);
  for (int trial = 0; trial < 300; ++trial) {
    pb::RecordSelectionProto selection;
    selection.set_modulo(static_cast<uint32_t>(random.Below(12)));
    for (uint32_t i = 0; i < selection.modulo(); ++i) {
      if (random.Below(2) == 0) selection.add_keep(i);
    }
    const uint64_t first = random.Below(100), count = random.Below(100);
    uint64_t expected = 0;
    for (uint64_t i = first; i < first + count; ++i) {
      if (selection.modulo() == 0) {
        ++expected;
        continue;
      }
      for (uint32_t keep : selection.keep()) expected += i % selection.modulo() == keep;
    }
    ASSERT_EQ(SelectedRecords(selection, first, count), expected) << "trial " << trial;
  }
}

TEST(EpochPlan, HoldsEveryRecordOnceWhateverTheSizes) {
  SplitMix random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const auto dataset =
        Dataset(1 + random.Below(50), random.Below(2) * random.Below(500), 1 + random.Below(40));
    std::vector<FileLayout> files;
    uint64_t total = 0;
    for (uint64_t i = random.Below(5) + 1; i > 0; --i)
      total += files.emplace_back(random.Below(300)).records;
    if (total == 0) continue;
    MU_ASSERT_OK_AND_ASSIGN(const EpochPlan plan, EpochPlan::Make(dataset, files, trial));
    std::set<std::pair<uint32_t, uint64_t>> seen;
    for (const auto& planned : plan.leases()) {
      uint64_t records = 0;
      for (const auto& block : planned.lease->blocks()) {
        for (uint64_t i = 0; i < block.count(); ++i) {
          ASSERT_TRUE(seen.insert({block.file(), block.first() + i}).second) << "trial " << trial;
        }
        records += block.count();
      }
      EXPECT_EQ(records, planned.records);
      EXPECT_EQ((records + dataset.batch_size() - 1) / dataset.batch_size(), planned.batches);
    }
    ASSERT_EQ(seen.size(), total) << "trial " << trial;
    EXPECT_EQ(EpochPlan::CountBatches(dataset, files, trial), plan.batches());
  }
}

TEST(EpochPlan, ShufflesByEpochAndKeepsFileOrderWithoutIt) {
  const std::vector<FileLayout> files = {5000};
  const auto shuffled = Dataset(10, 500, 50);
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan first, EpochPlan::Make(shuffled, files, 0));
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan again, EpochPlan::Make(shuffled, files, 0));
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan second, EpochPlan::Make(shuffled, files, 1));
  EXPECT_EQ(first.leases()[0].lease->SerializeAsString(),
            again.leases()[0].lease->SerializeAsString());
  EXPECT_NE(first.leases()[0].lease->blocks(0).first(),
            second.leases()[0].lease->blocks(0).first());
  EXPECT_NE(first.leases()[0].lease->permutation(), 0u);
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan ordered, EpochPlan::Make(Dataset(10, 0, 50), files, 0));
  uint64_t next = 0;
  for (const auto& planned : ordered.leases()) {
    EXPECT_EQ(planned.lease->permutation(), 0u);
    for (const auto& block : planned.lease->blocks()) {
      EXPECT_EQ(block.first(), next);
      next += block.count();
    }
  }
}

TEST(EpochPlan, SaysWhereBlocksAreIfThatIsKnown) {
  pb::FileLayoutProto layout;
  layout.set_records(25);
  layout.set_bytes(1000);
  for (uint64_t offset : {7, 400, 790}) layout.add_offsets(offset);
  for (uint64_t line : {2, 12, 23}) layout.add_lines(line);
  const std::vector<FileLayout> files = {FileLayout(layout), 10};
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan plan, EpochPlan::Make(Dataset(5, 0, 10), files, 0));
  std::vector<std::string> places;
  for (const auto& planned : plan.leases()) {
    for (const auto& block : planned.lease->blocks()) {
      places.push_back(absl::StrCat(block.file(), ":", block.offset(), "+", block.bytes(), " line ",
                                    block.line()));
    }
  }
  EXPECT_THAT(places, ::testing::ElementsAre("0:7+393 line 2", "0:400+390 line 12",
                                             "0:790+210 line 23", "1:0+0 line 0"));
}

TEST(EpochPlan, RefusesDataWithoutRecords) {
  EXPECT_THAT(EpochPlan::Make(Dataset(10, 0, 50), {0, 0}, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no record is left")));
  EXPECT_EQ(EpochPlan::CountBatches(Dataset(10, 0, 50), {0, 0}, 0), 0u);
}

TEST(DefaultBlockRecords, GivesWholeBatches) {
  auto dataset = Dataset(256, 0, 0);
  EXPECT_EQ(DefaultBlockRecords(dataset) % 256, 0u);
  dataset.mutable_records()->set_modulo(10);
  for (uint32_t keep = 0; keep < 9; ++keep) dataset.mutable_records()->add_keep(keep);
  EXPECT_EQ(SelectedRecords(dataset.records(), 0, DefaultBlockRecords(dataset)) % 256, 0u);
}

// A lease of 100,000 shuffled records has thousands of bytes of blocks, and one function a batch
// may be kept of it until the next checkpoint.
TEST(DataLeases, FunctionsOfALeaseShareItsBlocks) {
  DataLeases leases(Dataset(10, 500, 50), {500});
  const auto first = leases.Take(WorkerId(0), 1), second = leases.Take(WorkerId(0), 1);
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(first[0].lease.get(), second[0].lease.get());
  EXPECT_EQ(second[0].first_batch, 1u);
  const pb::BatchRangeProto sent = ToProto(second[0]);
  EXPECT_EQ(ToProto(FromProto(sent)).SerializeAsString(), sent.SerializeAsString());
  EXPECT_EQ(sent.lease().blocks_size(), 10);
}

// Every batch of every epoch is handed out once, to workers that come, go and ask for any number.
TEST(DataLeases, HandsOutEveryBatchOnce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SplitMix random(seed);
    auto dataset = Dataset(1 + random.Below(9), random.Below(2) * 60, 1 + random.Below(20));
    dataset.set_epochs(2);
    DataLeases leases(dataset, {random.Below(300) + 1, random.Below(100)});
    std::map<std::pair<uint64_t, uint64_t>, std::set<uint32_t>> seen;
    uint64_t total = leases.BatchesInEpoch(0) + leases.BatchesInEpoch(1), handed = 0;
    while (!leases.Exhausted()) {
      const WorkerId worker(static_cast<uint32_t>(random.Below(4)));
      if (random.Below(10) == 0) leases.Forget(worker);
      const uint32_t steps = static_cast<uint32_t>(1 + random.Below(7));
      uint32_t got = 0;
      for (const auto& range : leases.Take(worker, steps)) {
        for (uint32_t b = 0; b < range.batches; ++b) {
          auto& batches = seen[std::make_pair(range.lease->epoch(), range.lease->index())];
          ASSERT_TRUE(batches.insert(range.first_batch + b).second) << "seed " << seed;
        }
        got += range.batches;
      }
      handed += got;
      ASSERT_LE(got, steps);
      ASSERT_TRUE(got == steps || leases.Exhausted()) << "seed " << seed;
    }
    ASSERT_EQ(handed, total) << "seed " << seed;
    EXPECT_TRUE(leases.Take(WorkerId(0), 1).empty());
  }
}

TEST(DataLeases, OneWorkerGetsTheSameOrderForAnyPacking) {
  auto flat = [](uint32_t steps) {
    DataLeases leases(Dataset(7, 100, 20), {1000});
    std::vector<std::pair<uint64_t, uint32_t>> order;
    while (!leases.Exhausted()) {
      for (const auto& range : leases.Take(WorkerId(0), steps)) {
        for (uint32_t b = 0; b < range.batches; ++b)
          order.push_back({range.lease->index(), range.first_batch + b});
      }
    }
    return order;
  };
  EXPECT_EQ(flat(1), flat(12));
}

}  // namespace
}  // namespace mu
