// Assignments in the queue: their identity, what the low-water mark waits for, and what a
// checkpoint says of them.
#include <memory>

#include "coordinator/core/function_queue.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

constexpr CheckpointNumber kOne{1}, kTwo{2};

class AssignmentTest : public ::testing::Test {
 protected:
  AssignmentTest() { queue_.WorkerReady(WorkerId(0), 1); }

  // Schedules a function and lets it end.
  FunctionId Run() {
    const FunctionId id = queue_.Schedule({.steps = 1, .updates = true});
    std::vector<FunctionId> completed;
    for (const StartRun& start : queue_.Dispatch(&completed)) {
      queue_.StepDone(start.function, start.run, 0);
      queue_.RunEnded(start.function, start.run);
    }
    return id;
  }
  void Checkpoint(CheckpointNumber number) {
    queue_.CheckpointCommitted(number, queue_.CheckpointPosition());
  }
  void Assigned(FunctionId id) { queue_.Assigned(id, std::make_shared<Assignment>()); }

  FunctionQueue queue_{1, [](uint64_t, WorkerId, uint32_t) { return std::vector<BatchRange>(); }};
};

TEST_F(AssignmentTest, TheMarkWaitsForIt) {
  Run();
  const FunctionId place = queue_.BeginAssignment();
  Run();
  Checkpoint(kOne);
  Checkpoint(kTwo);
  EXPECT_EQ(queue_.low_water(), place)
      << "a server must tell its copies apart until all have answered";
  queue_.EndAssignment(place);
  EXPECT_EQ(queue_.low_water(), queue_.next_id());
}

TEST_F(AssignmentTest, ACheckpointTakenMeanwhileLacksIt) {
  Run();
  const FunctionId place = queue_.BeginAssignment();
  Checkpoint(kOne);  // some servers had it, others not
  Assigned(place);
  const FunctionId after = Run();
  Checkpoint(kTwo);
  queue_.RollBack(kOne);
  EXPECT_EQ(queue_.NextAssignment(), place);
  queue_.AssignmentDone(place);
  EXPECT_FALSE(queue_.HasAssignments());
  EXPECT_EQ(queue_.unfinished(), 1u);
  EXPECT_NE(queue_.Find(after), nullptr);
}

TEST_F(AssignmentTest, ACheckpointTakenAfterwardsHoldsIt) {
  const FunctionId place = queue_.BeginAssignment();
  Assigned(place);
  Checkpoint(kOne);
  queue_.RollBack(kOne);
  EXPECT_FALSE(queue_.HasAssignments());
}

TEST_F(AssignmentTest, ALoadedStateLacksOneThatIsBeingMade) {
  Run();
  const FunctionId place = queue_.BeginAssignment();
  queue_.StartFrom(kOne);
  Assigned(place);
  queue_.RollBack(kOne);
  EXPECT_EQ(queue_.NextAssignment(), place);
}

TEST_F(AssignmentTest, CancellingEverythingTakesItsPlaceAway) {
  const FunctionId place = queue_.BeginAssignment();
  queue_.CancelAll();
  EXPECT_FALSE(queue_.AssignmentOpen(place)) << "the fence refuses it: it needs another place";
  EXPECT_TRUE(queue_.AssignmentOpen(queue_.BeginAssignment()));
}

TEST_F(AssignmentTest, BeforeAnythingIsScheduledTheMarkStays) {
  queue_.EndAssignment(queue_.BeginAssignment());
  EXPECT_EQ(queue_.low_water(), FunctionId(1))
      << "a job that is continued may still need what servers know of it";
  FunctionQueue::Position position;
  position.next_id = FunctionId(9);
  position.unfinished[FunctionId(1)].steps = 1;
  queue_.Resume(kOne, position);
  EXPECT_EQ(queue_.low_water(), FunctionId(1));
  EXPECT_EQ(queue_.next_id(), FunctionId(9));
}

}  // namespace
}  // namespace mu
