#include "coordinator/core/data_plan.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "tests/coordinator/core/planned_leases.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::LayoutOf;
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
    const DataLayout data = LayoutOf(dataset, files);
    MU_ASSERT_OK_AND_ASSIGN(const EpochPlan plan, EpochPlan::Make(data, trial));
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
    EXPECT_EQ(EpochPlan::CountBatches(data, trial), plan.batches());
    std::vector<uint32_t> batches;
    for (const auto& planned : plan.leases()) batches.push_back(planned.batches);
    EXPECT_EQ(EpochPlan::BatchesOfLeases(data, trial), batches);
  }
}

uint64_t SelectedOf(const DataLayout& data, const pb::LeaseProto& lease) {
  uint64_t records = 0;
  for (const pb::BlockProto& block : lease.blocks())
    records += SelectedRecords(data.dataset.records(), block.first(), block.count());
  return records;
}

// As earlier versions cut an epoch whose blocks are in this order, however large a batch is: the
// selected records of each lease.
std::vector<uint64_t> CutByBoundAlone(const DataLayout& data, const EpochPlan& plan) {
  std::vector<uint64_t> leases;
  for (const auto& planned : plan.leases()) {
    for (const pb::BlockProto& block : planned.lease->blocks()) {
      const uint64_t kept = SelectedRecords(data.dataset.records(), block.first(), block.count());
      if (leases.empty() || leases.back() + kept > LeaseRecords(data.dataset)) {
        leases.push_back(kept);
      } else {
        leases.back() += kept;
      }
    }
  }
  return leases;
}

TEST(EpochPlan, LeasesHoldABatchWhateverTheSizes) {
  SplitMix random(3);
  int lengthened = 0, as_before = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    SCOPED_TRACE(absl::StrCat("trial ", trial));
    auto dataset =
        Dataset(1 + static_cast<uint32_t>(random.Below(200)), random.Below(2) * random.Below(500),
                1 + static_cast<uint32_t>(random.Below(100)));
    if (random.Below(2) == 0) {
      dataset.mutable_records()->set_modulo(3);
      dataset.mutable_records()->add_keep(static_cast<uint32_t>(random.Below(3)));
    }
    std::vector<FileLayout> files;
    for (uint64_t i = random.Below(20) + 1; i > 0; --i) files.emplace_back(random.Below(300));
    const DataLayout data = LayoutOf(dataset, files);
    const auto made = EpochPlan::Make(data, static_cast<uint64_t>(trial));
    if (!made.ok()) continue;  // no record is left
    const EpochPlan& plan = *made;
    const uint64_t batch = dataset.batch_size();
    std::vector<uint64_t> records;
    for (const auto& planned : plan.leases()) {
      records.push_back(SelectedOf(data, *planned.lease));
      ASSERT_EQ(records.back(), planned.records);
      if (&planned != &plan.leases().back()) {
        ASSERT_GE(planned.records, batch);
      }
    }
    EXPECT_LE(plan.batches(), plan.records() / batch + plan.leases().size());
    const std::vector<uint64_t> before = CutByBoundAlone(data, plan);
    const bool held =
        std::all_of(before.begin(), before.end() - 1, [&](uint64_t of) { return of >= batch; });
    if (held) {
      ASSERT_EQ(records, before) << "checkpoints of earlier versions know these leases";
    }
    ASSERT_EQ(plan.lengthened(), !held);
    ++(held ? as_before : lengthened);
  }
  EXPECT_GT(lengthened, 30);
  EXPECT_GT(as_before, 300);
}

// Leases that end before a batch is full make batches of what they hold.
TEST(EpochPlan, BatchesAreNoSmallerThanAskedFor) {
  const std::vector<FileLayout> small(10, FileLayout(300));
  EXPECT_EQ(EpochPlan::CountBatches(LayoutOf(Dataset(512, 256, 512), small), 0), 6u);
  EXPECT_EQ(EpochPlan::CountBatches(LayoutOf(Dataset(512, 0, 512), small), 0), 6u);
  auto half = Dataset(50'000, 0, 0);
  half.mutable_records()->set_modulo(2);
  half.mutable_records()->add_keep(0);
  half.set_block_records(DefaultBlockRecords(half));
  EXPECT_EQ(EpochPlan::CountBatches(LayoutOf(half, {200'000}), 0), 2u);
  // The blocks of programs.
  EXPECT_EQ(EpochPlan::BatchesOfLeases(LayoutOf(Dataset(65'536, 0, 4096), {4 * 65'536}), 0),
            (std::vector<uint32_t>{1, 1, 1, 1}));
  EXPECT_EQ(EpochPlan::BatchesOfLeases(LayoutOf(Dataset(8192, 1000, 4096), {4 * 8192}), 0),
            (std::vector<uint32_t>{1, 1, 1, 1}));
}

TEST(EpochPlan, ShufflesByEpochAndKeepsFileOrderWithoutIt) {
  const std::vector<FileLayout> files = {5000};
  const DataLayout shuffled = LayoutOf(Dataset(10, 500, 50), files);
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan first, EpochPlan::Make(shuffled, 0));
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan again, EpochPlan::Make(shuffled, 0));
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan second, EpochPlan::Make(shuffled, 1));
  EXPECT_EQ(first.leases()[0].lease->SerializeAsString(),
            again.leases()[0].lease->SerializeAsString());
  EXPECT_NE(first.leases()[0].lease->blocks(0).first(),
            second.leases()[0].lease->blocks(0).first());
  EXPECT_NE(first.leases()[0].lease->permutation(), 0u);
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan ordered,
                          EpochPlan::Make(LayoutOf(Dataset(10, 0, 50), files), 0));
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
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan plan,
                          EpochPlan::Make(LayoutOf(Dataset(5, 0, 10), files), 0));
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

// What a worker compares before it reads; nothing where a layout does not say it.
TEST(EpochPlan, SaysHowBlocksBeginIfThatIsKnown) {
  pb::FileLayoutProto layout;
  layout.set_records(25);
  layout.set_bytes(1000);
  for (uint64_t offset : {7, 400, 790}) layout.add_offsets(offset);
  for (uint64_t line : {2, 12, 23}) layout.add_lines(line);
  pb::FileLayoutProto said = layout;
  for (uint32_t beginning : {11, 22, 33}) said.add_beginnings(beginning);
  pb::FileLayoutProto wrong = layout;
  wrong.add_beginnings(11);
  const std::vector<FileLayout> files = {FileLayout(said), FileLayout(layout), FileLayout(wrong),
                                         10};
  const DataLayout data = LayoutOf(Dataset(5, 0, 10), files);
  MU_ASSERT_OK_AND_ASSIGN(const EpochPlan plan, EpochPlan::Make(data, 0));
  std::vector<std::string> beginnings;
  for (const auto& planned : plan.leases()) {
    for (const auto& block : planned.lease->blocks()) {
      beginnings.push_back(absl::StrCat(block.file(), "@", block.offset(), " of ",
                                        block.file_bytes(), ": ", block.beginning()));
    }
  }
  EXPECT_THAT(beginnings,
              ::testing::ElementsAre("0@7 of 1000: 11", "0@400 of 1000: 22", "0@790 of 1000: 33",
                                     "1@7 of 0: 0", "1@400 of 0: 0", "1@790 of 0: 0", "2@7 of 0: 0",
                                     "2@400 of 0: 0", "2@790 of 0: 0", "3@0 of 0: 0"));
  // What the records are is in no fingerprint: ContentsOf says it, as far as it is known.
  const std::vector<FileLayout> counts = {25, 25, 25, 10};
  EXPECT_EQ(data.Fingerprint(), LayoutOf(Dataset(5, 0, 10), counts).Fingerprint());
}

// Bad records are in the plan, so what becomes of them changes nothing of it.
TEST(DataLayout, FingerprintIsThatOfThePlan) {
  const std::vector<FileLayout> counts = {25, 10};
  pb::DatasetProto dataset = Dataset(5, 0, 10);
  const uint64_t fails = LayoutOf(dataset, counts).Fingerprint();
  dataset.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  EXPECT_EQ(LayoutOf(dataset, counts).Fingerprint(), fails);
  dataset.set_seed(8);
  EXPECT_NE(LayoutOf(dataset, counts).Fingerprint(), fails);
}

TEST(EpochPlan, RefusesDataWithoutRecords) {
  EXPECT_THAT(EpochPlan::Make(LayoutOf(Dataset(10, 0, 50), {0, 0}), 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no record is left")));
  EXPECT_EQ(EpochPlan::CountBatches(LayoutOf(Dataset(10, 0, 50), {0, 0}), 0), 0u);
}

TEST(DefaultBlockRecords, GivesWholeBatches) {
  auto dataset = Dataset(256, 0, 0);
  EXPECT_EQ(DefaultBlockRecords(dataset) % 256, 0u);
  dataset.mutable_records()->set_modulo(10);
  for (uint32_t keep = 0; keep < 9; ++keep) dataset.mutable_records()->add_keep(keep);
  EXPECT_EQ(SelectedRecords(dataset.records(), 0, DefaultBlockRecords(dataset)) % 256, 0u);
}

}  // namespace
}  // namespace mu
