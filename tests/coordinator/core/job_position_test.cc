// A position survives its way through a manifest, and one that makes no sense is refused.
#include "coordinator/core/job_position.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

std::shared_ptr<const pb::LeaseProto> Lease(uint64_t index) {
  auto lease = std::make_shared<pb::LeaseProto>();
  lease->set_dataset(3);
  lease->set_index(index);
  for (uint64_t block = 0; block < 1000; ++block) {
    pb::BlockProto& added = *lease->add_blocks();
    added.set_first(block * 100);
    added.set_count(100);
    added.set_offset(block * 12'345);
  }
  return lease;
}

FunctionQueue::Function Bound(std::vector<BatchRange> batches) {
  FunctionQueue::Function function;
  function.work.fingerprint = Fingerprint(99);
  function.work.steps = 4;
  function.work.dataset = 3;
  function.work.step_offset = 40;
  function.bound = true;
  function.steps = 4;
  function.next_step = 2;
  function.batches = std::move(batches);
  return function;
}

class JobPositionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    position_.next_id = FunctionId(103);
    position_.unfinished[FunctionId(100)] = Bound({{first_, 0, 3}, {second_, 0, 1}});
    position_.unfinished[FunctionId(101)] = Bound({{second_, 1, 4}});
    position_.unfinished[FunctionId(101)].work.steps = 6;  // the data ended
    FunctionQueue::Function& waiting = position_.unfinished[FunctionId(102)];
    waiting.work.steps = waiting.steps = 4;
    waiting.work.dataset = 3;
    waiting.after = FunctionId(101);
    waiting.work.args = std::make_shared<const std::vector<pb::TensorProto>>(2);
    AddQueuePosition(position_, &proto_);
  }

  const std::shared_ptr<const pb::LeaseProto> first_ = Lease(7), second_ = Lease(8);
  FunctionQueue::Position position_;
  pb::JobPositionProto proto_;
};

TEST_F(JobPositionTest, ComesBackAsItWas) {
  MU_ASSERT_OK_AND_ASSIGN(const auto found, QueuePositionOf(proto_, 5));
  EXPECT_EQ(found.next_id, position_.next_id);
  ASSERT_EQ(found.unfinished.size(), position_.unfinished.size());
  for (const auto& [id, wanted] : position_.unfinished) {
    const FunctionQueue::Function& function = found.unfinished.at(id);
    EXPECT_EQ(function.work.fingerprint, wanted.work.fingerprint);
    EXPECT_EQ(function.work.steps, wanted.work.steps);
    EXPECT_EQ(function.steps, wanted.steps);
    EXPECT_EQ(function.work.dataset, wanted.work.dataset);
    EXPECT_EQ(function.work.step_offset, wanted.work.step_offset);
    EXPECT_EQ(function.work.needs_version, 5u);
    EXPECT_TRUE(function.work.trains) << "its steps count, and bound the staleness of others";
    EXPECT_TRUE(function.work.updates) << "it runs again after a restore";
    EXPECT_EQ(function.work.args == nullptr, wanted.work.args == nullptr);
    EXPECT_EQ(function.bound, wanted.bound);
    EXPECT_EQ(function.after, wanted.after);
    EXPECT_EQ(function.next_step, wanted.next_step);
    ASSERT_EQ(function.batches.size(), wanted.batches.size());
    for (size_t i = 0; i < wanted.batches.size(); ++i) {
      EXPECT_EQ(function.batches[i].first_batch, wanted.batches[i].first_batch);
      EXPECT_EQ(function.batches[i].batches, wanted.batches[i].batches);
      EXPECT_EQ(function.batches[i].lease->SerializeAsString(),
                wanted.batches[i].lease->SerializeAsString());
    }
  }
}

// Functions keep to share their lease: neither a manifest nor a coordinator that resumes from it
// grows by a lease's blocks for each of them.
TEST_F(JobPositionTest, EachLeaseIsThereOnce) {
  EXPECT_EQ(proto_.leases_size(), 2);
  for (uint64_t id = 1; id < 50; ++id)
    position_.unfinished[FunctionId(id)] = Bound({{first_, static_cast<uint32_t>(id), 1}});
  pb::JobPositionProto longer;
  AddQueuePosition(position_, &longer);
  EXPECT_EQ(longer.leases_size(), 2);
  EXPECT_LT(longer.ByteSizeLong(), proto_.ByteSizeLong() + 49 * 100);
  MU_ASSERT_OK_AND_ASSIGN(const auto found, QueuePositionOf(longer, 1));
  EXPECT_EQ(found.unfinished.at(FunctionId(100)).batches[1].lease,
            found.unfinished.at(FunctionId(101)).batches[0].lease);
}

// As programs wrote it that gave every range its lease.
TEST_F(JobPositionTest, AnEarlierManifestIsRead) {
  for (pb::CheckpointFunctionProto& function : *proto_.mutable_functions()) {
    for (const pb::BoundBatchesProto& bound : function.bound_batches()) {
      pb::BatchRangeProto& range = *function.add_batches();
      *range.mutable_lease() = proto_.leases(static_cast<int>(bound.lease()));
      range.set_first_batch(bound.first_batch());
      range.set_batches(bound.batches());
    }
    function.clear_bound_batches();
  }
  proto_.clear_leases();
  MU_ASSERT_OK_AND_ASSIGN(const auto found, QueuePositionOf(proto_, 1));
  const auto& batches = found.unfinished.at(FunctionId(100)).batches;
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].batches, 3u);
  EXPECT_EQ(batches[1].lease->index(), 8u);
}

// As programs wrote it that kept the number of batches only.
TEST_F(JobPositionTest, AnEarlierManifestDoesNotSayThatTheDataEnded) {
  for (pb::CheckpointFunctionProto& function : *proto_.mutable_functions())
    function.clear_requested_steps();
  MU_ASSERT_OK_AND_ASSIGN(const auto found, QueuePositionOf(proto_, 1));
  for (const auto& [id, function] : found.unfinished) {
    EXPECT_EQ(function.steps, 4u) << id.value();
    EXPECT_EQ(function.work.steps, 4u) << id.value();
  }
}

TEST_F(JobPositionTest, ALeaseThatIsNotThereIsRefused) {
  proto_.mutable_functions(1)->mutable_bound_batches(0)->set_lease(2);
  EXPECT_THAT(QueuePositionOf(proto_, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lease 2 of 2")));
}

TEST_F(JobPositionTest, AFunctionOutOfOrderIsRefused) {
  for (const uint64_t id : {0, 103, 104}) {
    pb::JobPositionProto broken = proto_;
    broken.mutable_functions(0)->set_function(id);
    EXPECT_THAT(QueuePositionOf(broken, 1), HasCode(absl::StatusCode::kInvalidArgument)) << id;
  }
  pb::JobPositionProto after_itself = proto_;
  after_itself.mutable_functions(2)->set_after(103);
  EXPECT_THAT(QueuePositionOf(after_itself, 1), HasCode(absl::StatusCode::kInvalidArgument));
  proto_.mutable_functions(0)->set_next_step(5);
  EXPECT_THAT(QueuePositionOf(proto_, 1), HasCode(absl::StatusCode::kInvalidArgument));
}

TEST(ResumePoint, CountsStepsThatWereTaken) {
  pb::JobPositionProto proto;
  proto.set_next_function(9);
  proto.set_steps(20);
  proto.set_scheduled_steps(24);
  pb::CheckpointFunctionProto& bound = *proto.add_functions();
  bound.set_function(7);
  bound.set_steps(4);
  bound.set_next_step(1);
  bound.set_step_offset(26);
  bound.set_bound(true);
  pb::CheckpointFunctionProto& waits = *proto.add_functions();
  waits.set_function(8);
  waits.set_steps(100);
  MU_ASSERT_OK_AND_ASSIGN(const ResumePoint point, ResumePointOf(proto, 1));
  EXPECT_TRUE(point.resumes);
  EXPECT_EQ(point.job.steps, 20u);
  EXPECT_EQ(point.job.taken_steps, 30u) << "with all of what is bound, nothing of what waits";
  EXPECT_EQ(point.job.functions.next_id, FunctionId(9));
}

TEST(ResumePoint, KnowsWhatWasTakenOfEachDataset) {
  JobPosition job;
  job.steps = 20;
  pb::JobPositionProto earlier;
  AddJobPosition(job, &earlier);
  MU_ASSERT_OK_AND_ASSIGN(const ResumePoint not_known, ResumePointOf(earlier, 1));
  EXPECT_FALSE(not_known.job.own_steps.has_value());
  // Also if there is none: the steps were of other data then.
  job.own_steps.emplace();
  pb::JobPositionProto none;
  AddJobPosition(job, &none);
  MU_ASSERT_OK_AND_ASSIGN(const ResumePoint empty, ResumePointOf(none, 1));
  EXPECT_TRUE(empty.job.own_steps.has_value());
  job.own_steps = OwnSteps{.by_dataset = {{"clicks", 12}, {"views", 0}}, .others = 3};
  pb::JobPositionProto said;
  AddJobPosition(job, &said);
  MU_ASSERT_OK_AND_ASSIGN(const ResumePoint point, ResumePointOf(said, 1));
  EXPECT_EQ(point.job.own_steps->by_dataset, job.own_steps->by_dataset);
  EXPECT_EQ(point.job.own_steps->others, 3u);
}

TEST(ResumePoint, OfValuesAloneRepeatsNothing) {
  pb::CheckpointProto manifest;
  manifest.set_steps(50);
  EXPECT_EQ(ValuesOf(manifest).job.functions.next_id, FunctionId(1));
  EXPECT_EQ(ValuesOf(manifest).job.taken_steps, 50u) << "of an earlier program";
  manifest.mutable_position()->set_next_function(12);
  manifest.mutable_position()->set_scheduled_steps(60);
  manifest.mutable_position()->add_functions()->set_function(3);
  const ResumePoint point = ValuesOf(manifest);
  EXPECT_FALSE(point.resumes);
  EXPECT_EQ(point.job.functions.next_id, FunctionId(12));
  EXPECT_EQ(point.job.taken_steps, 60u);
  EXPECT_TRUE(point.job.functions.unfinished.empty());
}

TEST(ResumePoint, OfAnotherModelsValuesCountsOnWithTheirSlots) {
  pb::CheckpointProto manifest;
  manifest.mutable_position()->set_next_function(12);
  manifest.mutable_position()->set_scheduled_steps(60);
  manifest.mutable_position()->set_round(31);
  for (const bool slots : {false, true}) {
    const ResumePoint point = BeginningOf(manifest, slots);
    EXPECT_TRUE(point.begins);
    EXPECT_FALSE(point.resumes);
    EXPECT_EQ(point.job.functions.next_id, FunctionId(1)) << "its pushes are not remembered";
    EXPECT_EQ(point.job.taken_steps, slots ? 60u : 0u);
    EXPECT_EQ(point.job.functions.round, slots ? 31u : 1u);
  }
}

}  // namespace
}  // namespace mu
