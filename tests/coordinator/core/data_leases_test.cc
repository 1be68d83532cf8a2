#include "coordinator/core/data_leases.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "tests/coordinator/core/planned_leases.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::BeginLeases;
using ::testing::HasSubstr;
using testing::LayoutOf;
using testing::PlanOf;
using testing::StatusIs;
using testing::Take;

DataLayout Data(uint32_t batch, uint64_t shuffle, uint32_t block, std::vector<FileLayout> files,
                uint32_t epochs = 1) {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_name("d");
  dataset.set_batch_size(batch);
  dataset.set_shuffle_records(shuffle);
  dataset.set_block_records(block);
  dataset.set_epochs(epochs);
  dataset.set_seed(7);
  return LayoutOf(std::move(dataset), std::move(files));
}

// Four batches an epoch, in one lease.
DataLayout FourBatches(uint32_t epochs) { return Data(10, 0, 10, {40}, epochs); }

std::vector<uint64_t> EpochsOf(const std::optional<std::vector<BatchRange>>& ranges) {
  std::vector<uint64_t> epochs;
  for (const BatchRange& range : ranges.value())
    epochs.insert(epochs.end(), range.batches, range.lease->epoch());
  return epochs;
}

// A lease of 100,000 shuffled records has thousands of bytes of blocks, and one function a batch
// may be kept of it until the next checkpoint.
TEST(DataLeases, FunctionsOfALeaseShareItsBlocks) {
  DataLeases leases = BeginLeases(Data(10, 500, 50, {500}));
  const auto first = Take(leases, WorkerId(0), 1), second = Take(leases, WorkerId(0), 1);
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(first[0].lease.get(), second[0].lease.get());
  EXPECT_EQ(second[0].first_batch, 1u);
  EXPECT_EQ(second[0].lease->blocks_size(), 10);
}

TEST(DataLeases, ProgressIsWhereTheyStandOnceAllThatWaitsHasItsBatches) {
  for (const uint32_t epochs : {0, 1, 2}) {
    for (uint32_t waiting = 0; waiting < 12; ++waiting) {
      SCOPED_TRACE(absl::StrCat(waiting, " batches of ", epochs, " epochs"));
      const DataLayout data = FourBatches(epochs);
      DataLeases leases = BeginLeases(data);
      (void)Take(leases, WorkerId(0), 3);
      const DataProgress at = ProgressAfter(data, {leases.epoch(), leases.left()}, waiting);
      (void)Take(leases, WorkerId(0), waiting);
      EXPECT_EQ(at.epoch, leases.epoch());
      EXPECT_EQ(at.left, leases.left());
    }
  }
}

// Every batch of every epoch is handed out once, to workers that come, go and ask for any number.
TEST(DataLeases, HandsOutEveryBatchOnce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SplitMix random(seed);
    const uint32_t batch = 1 + static_cast<uint32_t>(random.Below(9));
    const DataLayout data =
        Data(batch, random.Below(2) * 60, 1 + static_cast<uint32_t>(random.Below(20)),
             {random.Below(300) + 1, random.Below(100)}, /*epochs=*/2);
    DataLeases leases = BeginLeases(data);
    std::map<std::pair<uint64_t, uint64_t>, std::set<uint32_t>> seen;
    const uint64_t total = EpochPlan::CountBatches(data, 0) + EpochPlan::CountBatches(data, 1);
    uint64_t handed = 0;
    while (!leases.Exhausted()) {
      const WorkerId worker(static_cast<uint32_t>(random.Below(4)));
      if (random.Below(10) == 0) leases.Forget(worker);
      const uint32_t steps = static_cast<uint32_t>(1 + random.Below(7));
      uint32_t got = 0;
      for (const auto& range : Take(leases, worker, steps)) {
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
    EXPECT_TRUE(Take(leases, WorkerId(0), 1).empty());
  }
}

TEST(DataLeases, OneWorkerGetsTheSameOrderForAnyPacking) {
  auto flat = [](uint32_t steps) {
    DataLeases leases = BeginLeases(Data(7, 100, 20, {1000}));
    std::vector<std::pair<uint64_t, uint32_t>> order;
    while (!leases.Exhausted()) {
      for (const auto& range : Take(leases, WorkerId(0), steps)) {
        for (uint32_t b = 0; b < range.batches; ++b)
          order.push_back({range.lease->index(), range.first_batch + b});
      }
    }
    return order;
  };
  EXPECT_EQ(flat(1), flat(12));
}

TEST(DataLeases, WhatNeedsAPlanThatIsNotThereWaits) {
  DataLeases leases = BeginLeases(FourBatches(/*epochs=*/2));
  EXPECT_EQ(EpochsOf(leases.Take(WorkerId(0), 3)), (std::vector<uint64_t>{0, 0, 0}));
  EXPECT_EQ(leases.AskForPlan(3), 1u);
  EXPECT_EQ(leases.AskForPlan(3), std::nullopt) << "once";
  EXPECT_EQ(leases.Take(WorkerId(0), 3), std::nullopt);
  EXPECT_EQ(leases.left(), 1u) << "nothing was taken";
  leases.Bring(PlanOf(FourBatches(2), 1));
  EXPECT_EQ(EpochsOf(leases.Take(WorkerId(0), 3)), (std::vector<uint64_t>{0, 1, 1}));
  EXPECT_EQ(leases.AskForPlan(9), std::nullopt) << "that is all";
  EXPECT_EQ(EpochsOf(leases.Take(WorkerId(0), 9)), (std::vector<uint64_t>{1, 1}));
  EXPECT_TRUE(leases.Exhausted());
  EXPECT_EQ(leases.Take(WorkerId(0), 9)->size(), 0u);
}

TEST(DataLeases, WhatDoesNotNeedThePlanOfTheNextEpochGoesOn) {
  DataLeases leases = BeginLeases(FourBatches(/*epochs=*/2));
  ASSERT_EQ(leases.AskForPlan(5), 1u);
  EXPECT_EQ(EpochsOf(leases.Take(WorkerId(0), 4)).size(), 4u);
  EXPECT_FALSE(leases.Exhausted());
}

TEST(DataLeases, AsksBeforeTheEpochIsOver) {
  const DataLayout data = Data(10, 0, 10, {800}, /*epochs=*/3);  // 80 batches
  DataLeases leases = BeginLeases(data);
  (void)Take(leases, WorkerId(0), 69);
  EXPECT_EQ(leases.AskForPlan(1), std::nullopt) << "one plan is enough for long";
  ASSERT_TRUE(leases.Take(WorkerId(0), 1).has_value());
  EXPECT_EQ(leases.AskForPlan(1), 1u);
  leases.Bring(PlanOf(data, 1));
  EXPECT_EQ(leases.AskForPlan(1), std::nullopt) << "two are enough";
  EXPECT_EQ(leases.AskForPlan(91), 2u) << "unless more is wanted";
}

TEST(DataLeases, AFunctionMayTakeManyEpochs) {
  DataLeases leases = BeginLeases(FourBatches(/*epochs=*/0));
  EXPECT_EQ(EpochsOf(Take(leases, WorkerId(0), 11)),
            (std::vector<uint64_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2}));
}

TEST(DataLeases, ALatePlanIsIgnored) {
  const DataLayout data = FourBatches(/*epochs=*/0);
  DataLeases leases(data, 3, nullptr);
  EXPECT_EQ(leases.plan(), nullptr);
  EXPECT_EQ(leases.Take(WorkerId(0), 1), std::nullopt);
  EXPECT_EQ(leases.Upcoming(WorkerId(0)), nullptr);
  ASSERT_EQ(leases.AskForPlan(1), 3u);
  leases.Bring(PlanOf(data, 1));
  EXPECT_EQ(leases.AskForPlan(1), std::nullopt) << "what was asked for is still to come";
  leases.Bring(PlanOf(data, 3));
  leases.Bring(PlanOf(data, 3));
  EXPECT_EQ(EpochsOf(leases.Take(WorkerId(0), 4)), (std::vector<uint64_t>{3, 3, 3, 3}));
}

TEST(DataLeases, DoNotResumeWithThePlanOfAnotherEpoch) {
  const DataLayout data = FourBatches(/*epochs=*/0);
  DataLeases leases = BeginLeases(data, 1);
  const pb::DatasetPositionProto position = leases.Position();
  DataLeases same = BeginLeases(data, 1), other = BeginLeases(data, 0);
  MU_EXPECT_OK(same.Resume(position));
  EXPECT_EQ(other.Resume(position).code(), absl::StatusCode::kInvalidArgument);
}

TEST(DataLeases, DoNotResumeInAFileThatWasWrittenAgain) {
  pb::FileLayoutProto layout;
  layout.set_records(40);
  layout.set_bytes(400);
  for (const uint64_t block : {0, 1, 2, 3}) {
    layout.add_offsets(100 * block);
    layout.add_lines(10 * block + 1);
    layout.add_beginnings(static_cast<uint32_t>(7 + block));
  }
  const DataLayout data = Data(10, 0, 10, {FileLayout(layout)});
  DataLeases leases = BeginLeases(data);
  ASSERT_EQ(Take(leases, WorkerId(0), 2).size(), 1u);
  const pb::DatasetPositionProto position = leases.Position();
  DataLeases copy = BeginLeases(Data(10, 0, 10, {FileLayout(layout)}));
  MU_EXPECT_OK(copy.Resume(position));
  EXPECT_EQ(copy.left(), 2u);

  layout.set_beginnings(3, 11);
  const DataLayout changed = Data(10, 0, 10, {FileLayout(layout)});
  DataLeases other = BeginLeases(changed);
  EXPECT_THAT(other.Resume(position),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("dataset 'd': file 1 of 1 has changed since the job began")));
  EXPECT_EQ(other.left(), 4u) << "nothing has changed";
  // An earlier program did not say what was in the files.
  pb::DatasetPositionProto earlier = position;
  earlier.clear_contents();
  MU_EXPECT_OK(other.Resume(earlier));
  EXPECT_EQ(other.left(), 2u);
}

// The places of leases are others than they were then, and nothing else would tell.
TEST(DataLeases, DoNotResumeWhereAnEarlierVersionCutSmallerLeases) {
  const DataLayout data = Data(50, 0, 10, {20'000}), small = Data(50, 20, 10, {2000});
  for (const DataLayout& each : {data, small}) {
    const bool changed = each.dataset.shuffle_records() > 0;
    DataLeases leases = BeginLeases(each), again = BeginLeases(each), earlier = BeginLeases(each);
    EXPECT_EQ(leases.plan()->lengthened(), changed);
    DataLeases begun = BeginLeases(each);
    pb::DatasetPositionProto position = leases.Position();
    position.set_fingerprint(each.Fingerprint());
    MU_EXPECT_OK(begun.Resume(position)) << "no lease was begun";
    (void)Take(leases, WorkerId(0), 3);
    position = leases.Position();
    MU_EXPECT_OK(again.Resume(position));
    EXPECT_EQ(again.left(), leases.left());
    position.set_fingerprint(each.Fingerprint());
    const absl::Status resumed = earlier.Resume(position);
    if (changed) {
      EXPECT_THAT(resumed, testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                             ::testing::HasSubstr("of an earlier version")));
    } else {
      MU_EXPECT_OK(resumed);
    }
  }
}

}  // namespace
}  // namespace mu
