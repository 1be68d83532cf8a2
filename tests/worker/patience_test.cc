// A worker that its coordinator does not call any more, and then does.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/caller_gone.h"
#include "common/base/mutex.h"
#include "common/obs/metrics.h"
#include "tests/testing/wait.h"
#include "tests/worker/test_functions.h"

namespace mu {
namespace {

using testing::Eventually;
using testing::HasCode;

constexpr uint32_t kForever = 100'000'000;

// One connection of the stream, as its handler holds it.
class Connection final : public ServerCall {
 public:
  bool IsCancelled() const override { return false; }
  void OnCancel(std::function<void()> callback) override { on_break_ = std::move(callback); }
  void Send(Buffer) override {}
  void Finish(absl::Status, Buffer) override {
    MutexLock lock(&mutex_);
    conversation_ = {};
  }
  void Converse(Conversation conversation) override {
    MutexLock lock(&mutex_);
    conversation_ = std::move(conversation);
  }
  void Poke() override {
    MutexLock lock(&mutex_);
    Buffer message;
    while (conversation_.next != nullptr && conversation_.next(&message)) {
      pb::FeedReply said;
      EXPECT_TRUE(said.ParseFromArray(message.data(), static_cast<int>(message.size())));
      for (const std::string& bytes : said.replies()) {
        pb::RunReply reply;
        EXPECT_TRUE(reply.ParseFromString(bytes));
        results += reply.steps_size();
        if (reply.has_end()) end_ = FromWire(FromProto(reply.end()));
      }
    }
  }

  void Hear(const pb::FeedRequest& request) {
    std::function<void(Buffer)> message;
    {
      MutexLock lock(&mutex_);
      message = conversation_.message;
    }
    message(Buffer(request.SerializeAsString()));
  }
  void Break() { on_break_(); }
  std::optional<absl::Status> end() {
    MutexLock lock(&mutex_);
    return end_;
  }

  std::atomic<int> results{0};

 private:
  std::function<void()> on_break_;
  Mutex mutex_;
  Conversation conversation_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

double RunsOf(const WorkerServer& worker) {
  MetricList list;
  worker.AddMetrics(&list);
  return list.families().at("muster_worker_runs").samples.at(0).value;
}

TEST(WorkerPatience, TheEndOfARunThatWasGivenUpSaysSo) {
  testing::WorkerCluster cluster;
  AddCounters(&cluster);
  MU_ASSERT_OK(cluster.Configure());
  const muster::FunctionProto function = testing::CountSteps();
  MU_ASSERT_OK(cluster.InstallFunction(function));
  MethodTable methods;
  cluster.worker().AddMethods(&methods);
  const auto connect = [&](uint64_t number) {
    pb::FeedRequest hello;
    *hello.mutable_hello()->mutable_context() = cluster.context();
    hello.mutable_hello()->set_stream(1);
    hello.mutable_hello()->set_connection(number);
    hello.mutable_hello()->set_patience_ms(50);
    const auto connection = std::make_shared<Connection>();
    methods.Find("/muster.Worker/Feed")->handler(connection, Buffer(hello.SerializeAsString()));
    return connection;
  };
  const auto first = connect(1);
  pb::FeedRequest run;
  run.set_number(1);
  *run.add_runs() = cluster.MakeRun(1, function, kForever);
  run.mutable_runs(0)->set_run(1);
  first->Hear(run);
  ASSERT_TRUE(Eventually([&] { return first->results > 0; }));
  first->Break();
  ASSERT_TRUE(Eventually([&] { return RunsOf(cluster.worker()) < 1; }));
  EXPECT_FALSE(first->end().has_value());

  const auto second = connect(2);
  ASSERT_TRUE(Eventually([&] { return second->end().has_value(); }));
  EXPECT_THAT(*second->end(), HasCode(absl::StatusCode::kCancelled));
  EXPECT_TRUE(IsCallerGone(*second->end()));
  second->Finish(absl::OkStatus(), {});
}

}  // namespace
}  // namespace mu
