// The memory that functions take which are kept for repeats.
#include "coordinator/core/kept_bytes.h"

#include <memory>

#include "coordinator/core/function_queue.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

constexpr CheckpointNumber kOne{1}, kTwo{2};

TEST(KeptBytes, CountsASharedValueOnce) {
  KeptBytes kept;
  const int value = 0;
  kept.AddShared(nullptr, [] { return 1; });
  for (int i = 0; i < 3; ++i) {
    kept.Add(10);
    kept.AddShared(&value, [] { return 1000; });
  }
  EXPECT_EQ(kept.bytes(), 1030u);
  for (int i = 0; i < 2; ++i) {
    kept.Remove(10);
    kept.RemoveShared(&value);
  }
  EXPECT_EQ(kept.bytes(), 1010u);
  kept.Remove(10);
  kept.RemoveShared(&value);
  kept.RemoveShared(nullptr);
  EXPECT_EQ(kept.bytes(), 0u);
}

// A queue of functions that read one batch each of a lease of `blocks` blocks.
class KeptFunctions : public ::testing::Test {
 protected:
  KeptFunctions() { queue_.WorkerReady(WorkerId(0), 1); }

  void Finish(int functions, const std::string& name = "") {
    for (int i = 0; i < functions; ++i)
      queue_.Schedule({.name = name, .steps = 1, .dataset = 1, .updates = true});
    std::vector<FunctionId> completed;
    for (auto starts = queue_.Dispatch(&completed); !starts.empty();
         starts = queue_.Dispatch(&completed)) {
      for (const StartRun& start : starts) {
        queue_.StepDone(start.function, start.run, 0, 1);
        ASSERT_EQ(queue_.RunEnded(start.function, start.run), FunctionQueue::Ended::kCompleted);
      }
    }
  }
  void Assign(size_t bytes, size_t rows = 0) {
    auto assignment = std::make_shared<Assignment>();
    assignment->rows.resize(rows);
    assignment->value.set_data(std::string(bytes, 'x'));
    queue_.Assigned(queue_.BeginAssignment(), std::move(assignment));
  }
  void Commit(CheckpointNumber checkpoint) {
    queue_.CheckpointCommitted(checkpoint, queue_.CheckpointPosition());
  }

  std::shared_ptr<const pb::LeaseProto> lease_ = [] {
    auto lease = std::make_shared<pb::LeaseProto>();
    for (int i = 0; i < 1000; ++i) lease->add_blocks()->set_first(1'000'000 + i);
    return lease;
  }();
  FunctionQueue queue_{2, [this](uint64_t, WorkerId, uint32_t steps) {
                         return std::vector<BatchRange>{{lease_, 0, steps}};
                       }};
};

TEST_F(KeptFunctions, TakeTheirOwnMemoryAndThatOfALeaseOnce) {
  EXPECT_EQ(queue_.kept_bytes(), 0u);
  Finish(1);
  const uint64_t one = queue_.kept_bytes();
  EXPECT_GT(one, lease_->SpaceUsedLong() + sizeof(FunctionQueue::Function));
  Finish(1);
  const uint64_t each = queue_.kept_bytes() - one;
  EXPECT_LT(each, 1000u);
  EXPECT_GE(each, sizeof(FunctionQueue::Function) + sizeof(BatchRange));
  Finish(98);
  EXPECT_EQ(queue_.kept_bytes(), one + 99 * each);
}

TEST_F(KeptFunctions, CountWithTheirNames) {
  Finish(1);
  const uint64_t one = queue_.kept_bytes();
  Finish(1, "short");
  const uint64_t each = queue_.kept_bytes() - one;
  Finish(1, std::string(1000, 'n'));
  EXPECT_GE(queue_.kept_bytes(), one + 2 * each + 1000);
  Commit(kOne);
  Commit(kTwo);
  EXPECT_EQ(queue_.kept_bytes(), 0u) << "what was added is taken off";
}

TEST_F(KeptFunctions, AnAssignmentCountsWithItsValue) {
  Assign(1 << 20);
  EXPECT_GE(queue_.kept_bytes(), 1u << 20);
  EXPECT_LE(queue_.kept_bytes(), (1u << 20) + 2000);
  Assign(8, /*rows=*/1 << 20);
  EXPECT_GE(queue_.kept_bytes(), (1u << 20) + (8u << 20)) << "and with the rows that it is for";
}

TEST_F(KeptFunctions, AreForgottenWhenTwoCheckpointsHoldThem) {
  Finish(10);
  Assign(1000);
  const uint64_t before = queue_.kept_bytes();
  EXPECT_EQ(queue_.uncovered_bytes(), before);
  Commit(kOne);
  EXPECT_EQ(queue_.kept_bytes(), before) << "the initial values lack them";
  EXPECT_EQ(queue_.uncovered_bytes(), 0u);
  Finish(1);
  const uint64_t one = queue_.uncovered_bytes();
  EXPECT_GT(one, 0u);
  Commit(kTwo);
  EXPECT_LT(queue_.kept_bytes(), before);
  EXPECT_GE(queue_.kept_bytes(), one);
  EXPECT_EQ(queue_.uncovered_bytes(), 0u);
  Commit(CheckpointNumber(3));
  EXPECT_EQ(queue_.kept_bytes(), 0u);
}

TEST_F(KeptFunctions, CountAgainWhenTheirRepeatsHaveFinished) {
  Finish(10);
  Assign(1000);
  const uint64_t before = queue_.kept_bytes();
  queue_.RollBack(kInitialValues);
  EXPECT_EQ(queue_.kept_bytes(), 0u) << "they are in the queue";
  EXPECT_EQ(queue_.uncovered_bytes(), 0u);
  Finish(0);
  queue_.AssignmentDone(*queue_.NextAssignment());
  EXPECT_EQ(queue_.kept_bytes(), before);
  queue_.ForgetKept();
  EXPECT_EQ(queue_.kept_bytes(), 0u);
}

}  // namespace
}  // namespace mu
