// A worker that leaves, and the ends of its runs.
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "common/base/mutex.h"
#include "tests/testing/wait.h"
#include "tests/worker/test_functions.h"

namespace mu {
namespace {

using testing::Eventually;

// A run's call as its handler holds it: its end takes as long as the test wants.
class SlowCall final : public ServerCall {
 public:
  bool IsCancelled() const override { return false; }
  void OnCancel(std::function<void()>) override {}
  void Send(Buffer) override { ++results; }
  void Finish(absl::Status, Buffer) override {
    ends.Notify();
    may_end.Wait();
  }

  std::atomic<int> results{0};
  Notification ends, may_end;
};

// The process ends when it has drained: what it has not said by then is lost, and runs again.
TEST(WorkerDrain, WaitsForTheEndsOfRunsToBeSent) {
  testing::WorkerCluster cluster;
  AddCounters(&cluster);
  MU_ASSERT_OK(cluster.Configure());
  const muster::FunctionProto function = testing::CountSteps();
  MU_ASSERT_OK(cluster.InstallFunction(function));
  MethodTable methods;
  cluster.worker().AddMethods(&methods);
  const auto call = std::make_shared<SlowCall>();
  methods.Find("/muster.Worker/Run")
      ->handler(call, Buffer(cluster.MakeRun(1, function, 1).SerializeAsString()));
  call->ends.Wait();
  EXPECT_EQ(call->results, 1) << "results go before the end";
  std::atomic<bool> drained{false};
  std::thread draining([&] {
    cluster.worker().Drain(absl::InfiniteDuration());
    drained = true;
  });
  EXPECT_FALSE(Eventually([&] { return drained.load(); }, absl::Milliseconds(100)));
  call->may_end.Notify();
  draining.join();
}

}  // namespace
}  // namespace mu
