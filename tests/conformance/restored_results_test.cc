// Results of calls that a coordinator had begun and the next one continues: each holds the steps
// that the earlier one had no result of, with their batches, and knows whether the data ended.
#include <memory>
#include <string>
#include <vector>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::TestCluster;

constexpr uint32_t kBatch = 4, kBatchesInBlock = 10;
constexpr uint32_t kRequested = 6000, kLeft = 2000;  // for the last of two calls 2000 batches

class RestoredResults : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start({.workers = 1, .ps = 2}));
    testing::WriteFile(cluster_->directory() + "/data.csv",
                       testing::Numbers(0, int64_t{kBatch} * (kRequested + kLeft)));
    Begin();
  }
  void Begin() {
    checkpointer_ = std::make_unique<Checkpointer>(
        &c(), testing::OnRequest(cluster_->directory() + "/checkpoints"));
    MU_ASSERT_OK_AND_ASSIGN(const Dataset data,
                            c().CreateDataset(Csv({cluster_->directory() + "/data.csv"})
                                                  .Id("id", 0, 0)
                                                  .Batch(kBatch)
                                                  .BlockRecords(kBatch * kBatchesInBlock)
                                                  .Epochs(1)));
    MU_ASSERT_OK_AND_ASSIGN(const Variable sum,
                            c().CreateVariable({.name = "sum", .dtype = kInt64}));
    MU_ASSERT_OK_AND_ASSIGN(read_, c().DefineFunction("read", [&](FunctionBuilder& f) {
      const Sym id = f.NextBatch(data)["id"];
      AssignAdd(sum, ReduceSum(id));
      f.Return("ids", id);
    }));
  }
  Coordinator& c() { return cluster_->coordinator(); }

  // After some more steps: a checkpoint, and another coordinator that continues from it.
  void Restart() {
    const uint64_t before = c().Stats().steps;
    testing::WaitWhile([&] { return c().Stats().steps < before + 200; });
    MU_ASSERT_OK(checkpointer_->TakeNow());
    checkpointer_.reset();
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
    Begin();
    MU_ASSERT_OK_AND_ASSIGN(restored_, c().Restore());
  }

  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<Checkpointer> checkpointer_;  // before the coordinator that it uses
  Function read_;
  RestoredJob restored_;
};

// The first record of each batch that the result names.
std::vector<int64_t> NamedRecords(const FunctionResult& result) {
  std::vector<int64_t> records;
  for (const BatchRange& range : result.batches()) {
    for (uint32_t b = range.first_batch; b < range.first_batch + range.batches; ++b) {
      const auto& block = range.lease->blocks(static_cast<int>(b / kBatchesInBlock));
      records.push_back(static_cast<int64_t>(block.first() + b % kBatchesInBlock * kBatch));
    }
  }
  return records;
}

// The first record of each step.
std::vector<int64_t> ReadRecords(const FunctionResult& result) {
  std::vector<int64_t> records;
  for (size_t step = 0; step < result.steps(); ++step) {
    const absl::StatusOr<Tensor> ids = result.Get(step, "ids");
    EXPECT_THAT(ids, testing::IsOk());
    if (!ids.ok()) break;
    records.push_back(ids->flat<int64_t>()[0]);
  }
  return records;
}

// The one worker has both calls at once, so both have their batches when the first checkpoint is
// taken: the first call all that it asked for, the last one what is left.
TEST_F(RestoredResults, AreOfTheStepsThatWereLeft) {
  for (int i = 0; i < 2; ++i) c().Schedule(read_, {.steps = kRequested});
  uint32_t next_step = 0;
  // Also of a call that two coordinators had begun.
  for (int restart = 0; restart < 2; ++restart) {
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_EQ(restored_.unfinished.size(), 2u);
    ASSERT_EQ(restored_.manifest.position().functions_size(), 2);
    EXPECT_GT(restored_.manifest.position().functions(0).next_step(), next_step);
    next_step = restored_.manifest.position().functions(0).next_step();
  }
  for (const bool last : {false, true}) {
    SCOPED_TRACE(last ? "the last call" : "the first call");
    const pb::CheckpointFunctionProto& function =
        restored_.manifest.position().functions(last ? 1 : 0);
    const RemoteValue& value = restored_.unfinished[last ? 1 : 0];
    ASSERT_EQ(value.id().value(), function.function());
    ASSERT_TRUE(function.bound());
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
    EXPECT_EQ(result.steps(), (last ? kLeft : kRequested) - function.next_step());
    EXPECT_EQ(result.end_of_data(), last);
    EXPECT_EQ(NamedRecords(result), ReadRecords(result));
  }
  MU_ASSERT_OK(c().Join());
  EXPECT_EQ(c().Stats().steps, kRequested + kLeft);
}

}  // namespace
}  // namespace mu
