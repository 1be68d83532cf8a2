#include "coordinator/core/dataset_leases.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/core/planned_leases.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

constexpr uint32_t kBatch = 8, kBatches = 10;  // of one pass

pb::DatasetProto Shuffled(uint32_t epochs = 0) {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_batch_size(kBatch);
  dataset.set_block_records(2 * kBatch);
  dataset.set_shuffle_records(4 * kBatch);
  dataset.set_seed(3);
  dataset.set_epochs(epochs);
  dataset.set_visitation(pb::VISITATION_NONE);
  return dataset;
}

// Batches as (epoch, first record of the lease's first block, permutation, batch): which data, in
// which order.
std::vector<std::string> Read(DatasetLeases& leases, uint32_t worker, uint32_t steps) {
  std::vector<std::string> batches;
  for (const auto& range : testing::Take(leases, WorkerId(worker), steps)) {
    for (uint32_t b = 0; b < range.batches; ++b) {
      batches.push_back(absl::StrCat(range.lease->epoch(), " ", range.lease->blocks(0).first(), " ",
                                     range.lease->permutation(), " ", range.first_batch + b));
    }
  }
  return batches;
}

DatasetLeases Make(uint32_t epochs = 0) {
  return DatasetLeases(testing::LayoutOf(Shuffled(epochs), {kBatch * kBatches}), nullptr);
}

TEST(DatasetLeasesTest, EachReadsAllInAnOrderOfItsOwn) {
  DatasetLeases leases = Make();
  const auto first = Read(leases, 0, kBatches), second = Read(leases, 1, kBatches);
  EXPECT_EQ(first.size(), kBatches);
  EXPECT_EQ(second.size(), kBatches);
  EXPECT_NE(first, second);
  const auto again = Read(leases, 0, kBatches);
  EXPECT_EQ(again.size(), kBatches) << "without end";
  EXPECT_NE(again, first);
  DatasetLeases same = Make();
  EXPECT_EQ(Read(same, 1, kBatches), second) << "whatever the others do";
  EXPECT_EQ(Read(same, 0, kBatches), first);
}

TEST(DatasetLeasesTest, EachHasItsOwnEnd) {
  DatasetLeases leases = Make(/*epochs=*/2);
  EXPECT_EQ(Read(leases, 0, 3 * kBatches).size(), 2 * kBatches);
  EXPECT_EQ(Read(leases, 0, 1).size(), 0u);
  EXPECT_EQ(Read(leases, 1, 3 * kBatches).size(), 2 * kBatches);
}

TEST(DatasetLeasesTest, CountsWhatAllHaveTaken) {
  DatasetLeases leases = Make(/*epochs=*/1);
  EXPECT_EQ(leases.steps_taken(), 0u);
  leases.SetStepsTaken(100);
  (void)Read(leases, 0, 3);
  (void)Read(leases, 1, 2 * kBatches);
  EXPECT_EQ(leases.steps_taken(), 103u + kBatches) << "what there was, not what was asked for";
  leases.Forget(WorkerId(0));
  EXPECT_EQ(leases.steps_taken(), 103u + kBatches);
  leases.StartEpoch(0, nullptr);
  EXPECT_EQ(leases.steps_taken(), 0u);
}

TEST(DatasetLeasesTest, AWorkerThatComesBackGoesOn) {
  DatasetLeases undisturbed = Make(), leases = Make();
  EXPECT_EQ(Read(leases, 0, 13), Read(undisturbed, 0, 13));
  (void)Read(leases, 1, 5);
  leases.Forget(WorkerId(0));
  EXPECT_EQ(leases.readers(), 1u) << "nothing but its place is kept of one that is gone";
  leases.Forget(WorkerId(7));  // of which nobody has heard
  EXPECT_EQ(Read(leases, 0, 2 * kBatches), Read(undisturbed, 0, 2 * kBatches));
}

TEST(DatasetLeasesTest, AllBeginAnew) {
  DatasetLeases fresh = Make(), leases = Make();
  (void)Read(leases, 0, 3);
  (void)Read(leases, 1, 3);
  leases.Forget(WorkerId(1));
  leases.StartEpoch(0, nullptr);
  EXPECT_EQ(Read(leases, 0, 3), Read(fresh, 0, 3));
  EXPECT_EQ(Read(leases, 1, 3), Read(fresh, 1, 3));
}

TEST(DatasetLeasesTest, PlacesOfThoseThatAreGoneForGoodAreForgotten) {
  DatasetLeases leases = Make();
  const auto whole = Read(leases, 0, kBatches);
  constexpr uint32_t kGone = DatasetLeases::kMostGone;
  for (uint32_t worker = 1; worker <= kGone; ++worker) {
    Read(leases, worker, 1);
    leases.Forget(WorkerId(worker));
  }
  EXPECT_EQ(leases.gone(), kGone);
  // One that leaves again is a late one.
  const auto second = Read(leases, 1, 1);
  leases.Forget(WorkerId(1));
  leases.Forget(WorkerId(0));
  EXPECT_EQ(leases.gone(), kGone);
  EXPECT_NE(Read(leases, 1, 1), second) << "it goes on";
  EXPECT_EQ(Read(leases, 0, kBatches).size(), kBatches);
}

TEST(DatasetLeasesTest, OneThatReadsByItselfWaitsForNoPlan) {
  DatasetLeases leases = Make();
  EXPECT_EQ(leases.AskForPlan(1000), std::nullopt);
  EXPECT_EQ(leases.Take(WorkerId(0), 1000)->size(), 300u) << "three leases an epoch";
}

TEST(DatasetLeasesTest, SharedOnesDoNotResumeElsewhere) {
  pb::DatasetProto dataset = Shuffled(2);
  dataset.set_visitation(pb::VISITATION_EXACTLY_ONCE);
  const DataLayout data = testing::LayoutOf(dataset, {kBatch * kBatches});
  DatasetLeases leases(data, testing::PlanOf(data, 0));
  ASSERT_NE(leases.shared(), nullptr);
  EXPECT_EQ(Read(leases, 0, 3).size(), 3u);
  leases.SetStepsTaken(5);
  EXPECT_EQ(leases.steps_taken(), 0u) << "their position says it";
  const pb::DatasetPositionProto position = leases.shared()->Position();
  leases.StartEpoch(1, testing::PlanOf(data, 1));
  EXPECT_EQ(leases.shared()->epoch(), 1u);
  EXPECT_EQ(leases.shared()->left(), kBatches);
  pb::DatasetPositionProto other = position;
  other.set_fingerprint(position.fingerprint() + 1);
  EXPECT_FALSE(leases.Fits(other, testing::PlanOf(data, 0)).ok());
  MU_EXPECT_OK(leases.Fits(position, testing::PlanOf(data, 0)));
  EXPECT_EQ(leases.shared()->epoch(), 1u) << "nothing has changed";
  leases.Resume(position, testing::PlanOf(data, 0));
  EXPECT_EQ(leases.shared()->left(), kBatches - 3);
}

}  // namespace
}  // namespace mu
