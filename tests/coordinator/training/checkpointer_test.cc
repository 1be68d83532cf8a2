// What a checkpointer does around each checkpoint, on a whole cluster in memory.
#include "coordinator/training/checkpointer.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/conformance/memory_cluster.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::MemoryCluster;
using ::testing::Not;
using ::testing::SizeIs;
using testing::StatusIs;

// It may name older ones that have to stay: whoever marks them does so before they are deleted.
TEST(CheckpointerTest, OlderOnesAreThereUntilItIsKnownWhatTheNewestNames) {
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster,
                          MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.CreateVariable({.name = "values", .shape = Shape({8})}).status());
  const std::string parent = cluster->directory() + "/checkpoints";
  std::vector<std::string> taken;
  CheckpointerOptions options = {.directory = parent, .every = absl::InfiniteDuration(), .keep = 1};
  options.before_pruning = [&](const pb::CheckpointProto&) {
    if (taken.empty()) return;
    EXPECT_TRUE(FileExists(JoinPath(taken.back(), kManifestName))) << taken.back();
  };
  Checkpointer checkpointer(&c, options);
  c.StartFresh();
  for (int i = 0; i < 3; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string newest, checkpointer.TakeNow());
    EXPECT_THAT(*ListCheckpoints(parent), ElementsAre(newest)) << "the others are deleted then";
    taken.push_back(newest);
  }
}

// It would wait for itself.
TEST(CheckpointerTest, ACallbackTakesNoCheckpoint) {
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster,
                          MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.CreateVariable({.name = "values", .shape = Shape({8})}).status());
  Checkpointer* taking = nullptr;
  std::vector<absl::Status> answers;
  CheckpointerOptions options = {.directory = cluster->directory() + "/checkpoints",
                                 .every = absl::InfiniteDuration()};
  options.on_taken = [&](const std::string&) {
    answers.push_back(taking->TakeNow().status());
    answers.push_back(taking->TakeWhole().status());
  };
  Checkpointer checkpointer(&c, options);
  taking = &checkpointer;
  c.StartFresh();
  MU_ASSERT_OK(checkpointer.TakeNow());
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("callback"));
  EXPECT_THAT(answers, ElementsAre(refused, refused));
  EXPECT_EQ(checkpointer.taken(), 1u);
  MU_EXPECT_OK(checkpointer.TakeWhole()) << "nobody takes one any more";
}

// The disk is full, say: here a file takes the folder's place.
TEST(CheckpointerTest, ThatCheckpointsFailIsToldOnceAndThatTheySucceedAgain) {
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster,
                          MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.CreateVariable({.name = "values", .shape = Shape({8})}).status());
  const std::string parent = cluster->directory() + "/checkpoints";
  MU_ASSERT_OK(WriteFileAtomic(parent, "in the way"));
  Mutex mutex;
  std::vector<std::string> warnings;
  const auto told = [&] {
    MutexLock lock(&mutex);
    return warnings;
  };
  CheckpointerOptions options = {.directory = parent, .every = absl::Milliseconds(1)};
  options.on_warning = [&](const std::string& warning) {
    MutexLock lock(&mutex);
    warnings.push_back(warning);
  };
  Checkpointer checkpointer(&c, options);
  c.StartFresh();
  testing::WaitWhile([&] { return checkpointer.failed() < 3; });
  EXPECT_THAT(told(), ElementsAre(AllOf(
                          HasSubstr("a checkpoint failed, training goes on: "), HasSubstr(parent),
                          HasSubstr("none was taken since the coordinator started"))));
  EXPECT_THAT(checkpointer.TakeNow().status(), Not(IsOk()));
  EXPECT_THAT(told(), SizeIs(1)) << "its caller has its error";
  MU_ASSERT_OK(RemoveFile(parent));
  testing::WaitWhile([&] { return told().size() < 2; });
  EXPECT_THAT(told()[1], HasSubstr("a checkpoint has succeeded again, the first in "));
  const uint64_t taken = checkpointer.taken();
  testing::WaitWhile([&] { return checkpointer.taken() < taken + 2; });
  EXPECT_THAT(told(), SizeIs(2));
}

}  // namespace
}  // namespace mu
