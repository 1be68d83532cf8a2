// What is kept for repeats is bounded in bytes, in a whole cluster in memory.
#include <atomic>
#include <thread>

#include "common/env/file.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/memory_cluster.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::MemoryCluster;

class KeptBytesOfAJob : public ::testing::Test {
 protected:
  static constexpr int64_t kElements = 10'000;
  static constexpr uint64_t kBytes = kElements * sizeof(float);

  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(cluster_, MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
    MU_ASSERT_OK_AND_ASSIGN(values_,
                            c().CreateVariable({.name = "values", .shape = Shape({kElements})}));
    MU_ASSERT_OK_AND_ASSIGN(counter_, c().CreateVariable({.name = "counter", .dtype = kInt64}));
    MU_ASSERT_OK_AND_ASSIGN(
        count_, c().DefineFunction("count", [&](FunctionBuilder&) { AssignAdd(counter_, 1); }));
  }
  Coordinator& c() { return cluster_->coordinator(); }
  std::string folder() { return cluster_->directory() + "/checkpoints"; }
  CheckpointerOptions AfterBytes(uint64_t bytes) {
    return {
        .directory = folder(), .every = absl::InfiniteDuration(), .most_uncovered_bytes = bytes};
  }
  absl::Status Assign(float value) {
    return c().Assign(values_,
                      Tensor::Of<float>(Shape({kElements}), std::vector<float>(kElements, value)));
  }
  float Value() {
    const auto read = c().Read(values_);
    EXPECT_THAT(read, testing::IsOk());
    return read.ok() ? read->flat<float>().back() : -1;
  }

  std::unique_ptr<MemoryCluster> cluster_;
  Variable values_, counter_;
  Function count_;
};

TEST_F(KeptBytesOfAJob, AssignmentsAskForACheckpoint) {
  Checkpointer checkpointer(&c(), AfterBytes(10 * kBytes + kBytes / 2));
  c().Schedule(count_);
  MU_ASSERT_OK(c().Join());
  for (int i = 0; i <= 10; ++i) MU_ASSERT_OK(Assign(static_cast<float>(i)));
  testing::WaitWhile([&] { return checkpointer.taken() == 0; });
  EXPECT_EQ(c().runtime().uncovered_bytes(), 0u);
  EXPECT_EQ(checkpointer.taken(), 1u);
}

TEST_F(KeptBytesOfAJob, NoNumberOfFunctionsAsksForOneByDefault) {
  std::atomic<int> looks{0};
  CheckpointerOptions options = AfterBytes(kBytes);
  EXPECT_EQ(options.most_uncovered, 0u);
  options.steps = [&looks] {
    ++looks;
    return uint64_t{0};
  };
  Checkpointer checkpointer(&c(), options);
  for (int i = 0; i < 20; ++i) c().Schedule(count_);
  MU_ASSERT_OK(c().Join());
  EXPECT_EQ(c().runtime().uncovered_functions(), 20u);
  EXPECT_LT(c().runtime().uncovered_bytes(), kBytes);
  // It looks ten times a second, and takes none in the first second.
  const int before = looks;
  testing::WaitWhile([&] { return looks < before + 20; });
  EXPECT_EQ(checkpointer.taken(), 0u);
  MU_ASSERT_OK(Assign(1));
  testing::WaitWhile([&] { return checkpointer.taken() == 0; });
  EXPECT_EQ(c().runtime().uncovered_bytes(), 0u);
}

TEST_F(KeptBytesOfAJob, FourTimesAsManyMakeFunctionsAndAssignmentsWait) {
  MU_ASSERT_OK(WriteFileAtomic(folder(), "a file where the folder ought to be"));
  Checkpointer checkpointer(&c(), AfterBytes(10 * kBytes));
  c().Schedule(count_);
  MU_ASSERT_OK(c().Join());
  int assigned = 0;
  for (; !c().runtime().updates_paused(); ++assigned)
    MU_ASSERT_OK(Assign(static_cast<float>(assigned)));
  EXPECT_GE(assigned, 35);
  EXPECT_LE(assigned, 40);
  const uint64_t runs = c().Stats().runs;
  c().Schedule(count_);
  std::atomic<bool> done{false};
  std::thread waiting([&] {
    MU_EXPECT_OK(Assign(1000));
    done = true;
  });
  const uint64_t failed = checkpointer.failed();
  testing::WaitWhile([&] { return checkpointer.failed() < failed + 2; });
  EXPECT_EQ(c().Stats().runs, runs);
  EXPECT_FALSE(done);
  EXPECT_EQ(Value(), static_cast<float>(assigned - 1));

  MU_ASSERT_OK(RemoveFile(folder()));
  MU_ASSERT_OK(c().Join());
  waiting.join();
  EXPECT_EQ(Value(), 1000);
  EXPECT_EQ(c().Stats().runs, runs + 1);
  // The two newest points have to hold it; the second one is counted after functions are resumed.
  testing::WaitWhile([&] { return checkpointer.taken() < 2; });
}

}  // namespace
}  // namespace mu
