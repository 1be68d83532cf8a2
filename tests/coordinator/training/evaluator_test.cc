// A pass over a dataset on a whole cluster in memory.
#include "coordinator/training/evaluator.h"

#include <atomic>
#include <memory>
#include <thread>

#include "common/env/file.h"
#include "coordinator/frontend/ops.h"
#include "tests/conformance/memory_cluster.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::MemoryCluster;
using testing::StatusIs;

// Training's functions have to end first, which they do not while a server does not answer. Whoever
// does not hear of the stop waits until that server counts as lost, which ends the job.
TEST(ForEachBatchTest, AStopIsHeardWhileTrainingIsBeingCancelled) {
  const auto faults = std::make_shared<FaultPlan>(1);
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster, MemoryCluster::Start(1, 1, faults));
  Coordinator& c = cluster->coordinator();
  const std::string file = cluster->directory() + "/numbers.csv";
  MU_ASSERT_OK(WriteFileAtomic(file, "1\n2\n3\n"));
  MU_ASSERT_OK_AND_ASSIGN(const Dataset data,
                          c.CreateDataset(Csv({file}).Id("id", 0, 0).Batch(1).Epochs(1)));
  MU_ASSERT_OK_AND_ASSIGN(const Variable counter,
                          c.CreateVariable({.name = "counter", .dtype = kInt64}));
  MU_ASSERT_OK_AND_ASSIGN(const Function count, c.DefineFunction("count", [&](FunctionBuilder&) {
    AssignAdd(counter, 1);
  }));
  MU_ASSERT_OK_AND_ASSIGN(const Function forward, c.DefineFunction("f", [&](FunctionBuilder& f) {
    f.Return("prediction", Cast(f.NextBatch(data)["id"], kFloat32));
  }));
  c.Schedule(count);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK(c.BatchesInEpoch(data).status());  // looks at the file while all is well
  faults->Add({.method = "/muster.PsServer/Fence", .fault = Fault::kLoseRequest});
  std::thread cancels([&] { c.Cancel(); });
  testing::WaitWhile([&] { return faults->hits() == 0; });
  const std::atomic<int> stop = 1;
  EXPECT_THAT(ForEachBatch(c, forward, data, {.returns = {"prediction"}, .stop = &stop},
                           [](const EvaluatedBatch&) { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kCancelled, "stopped"));
  faults->Clear();
  cancels.join();
}

}  // namespace
}  // namespace mu
