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

// The stream as its handler holds it: to write the end of a run takes as long as the test wants.
class SlowFeed final : public ServerCall {
 public:
  bool IsCancelled() const override { return false; }
  void OnCancel(std::function<void()>) override {}
  void Send(Buffer) override {}
  void Finish(absl::Status, Buffer) override { conversation = {}; }
  void Converse(Conversation c) override { conversation = std::move(c); }
  void Poke() override {
    Buffer message;
    while (conversation.next != nullptr && conversation.next(&message)) {
      pb::FeedReply said;
      ASSERT_TRUE(said.ParseFromArray(message.data(), static_cast<int>(message.size())));
      for (const std::string& bytes : said.replies()) {
        pb::RunReply reply;
        ASSERT_TRUE(reply.ParseFromString(bytes));
        results += reply.steps_size();
        if (!reply.has_end()) continue;
        ends.Notify();
        may_end.Wait();
      }
    }
  }

  Conversation conversation;
  std::atomic<int> results{0};
  Notification ends, may_end;
};

// Opens the stream and begins a run of one step there. The worker has it when this returns.
void StartOneStep(testing::WorkerCluster* cluster, const std::shared_ptr<SlowFeed>& call) {
  AddCounters(cluster);
  MU_ASSERT_OK(cluster->Configure());
  const muster::FunctionProto function = testing::CountSteps();
  MU_ASSERT_OK(cluster->InstallFunction(function));
  MethodTable methods;
  cluster->worker().AddMethods(&methods);
  pb::FeedRequest hello, run;
  *hello.mutable_hello()->mutable_context() = cluster->context();
  hello.mutable_hello()->set_stream(1);
  hello.mutable_hello()->set_connection(1);
  methods.Find("/muster.Worker/Feed")->handler(call, Buffer(hello.SerializeAsString()));
  run.set_number(1);
  *run.add_runs() = cluster->MakeRun(1, function, 1);
  run.mutable_runs(0)->set_run(1);
  call->conversation.message(Buffer(run.SerializeAsString()));
}

// The process ends when it has drained: what it has not said by then is lost, and runs again.
TEST(WorkerDrain, WaitsForTheEndsOfRunsToBeSent) {
  testing::WorkerCluster cluster;
  const auto call = std::make_shared<SlowFeed>();
  ASSERT_NO_FATAL_FAILURE(StartOneStep(&cluster, call));
  call->ends.Wait();
  EXPECT_EQ(call->results, 1) << "results go with the end, or before";
  std::atomic<bool> drained{false};
  std::thread draining([&] {
    cluster.worker().Drain(absl::InfiniteDuration());
    drained = true;
  });
  EXPECT_FALSE(Eventually([&] { return drained.load(); }, absl::Milliseconds(100)));
  call->may_end.Notify();
  draining.join();
  call->Finish(absl::OkStatus(), {});
}

// It has been given a step, and must find the run when it comes to take it.
TEST(WorkerDrain, WhileTheThreadOfStepsWakesUp) {
  for (int i = 0; i < 50; ++i) {
    testing::WorkerCluster cluster;
    const auto call = std::make_shared<SlowFeed>();
    call->may_end.Notify();
    ASSERT_NO_FATAL_FAILURE(StartOneStep(&cluster, call));
    cluster.worker().Drain(absl::ZeroDuration());
    EXPECT_TRUE(call->ends.HasBeenNotified());
    EXPECT_LE(call->results.load(), Steps(cluster)) << "a result of a step that was not applied";
    call->Finish(absl::OkStatus(), {});
  }
}

}  // namespace
}  // namespace mu
