// A cluster of real daemons with a job that runs, and a stranger's connections to them: for what a
// broken or hostile client may send. Not thread safe.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/fingerprint.h"
#include "tests/conformance/checked_job.h"
#include "tests/psserver/frames.h"
#include "tests/testing/raw_stream.h"

namespace mu::testing {

// Two workers and a server.
class Victims {
 public:
  static absl::StatusOr<std::unique_ptr<Victims>> Start() {
    std::unique_ptr<Victims> v(new Victims);
    MU_ASSIGN_OR_RETURN(v->cluster_, TestCluster::Start({.workers = 2, .ps = 1}));
    Coordinator& c = v->cluster_->coordinator();
    MU_ASSIGN_OR_RETURN(v->weight_, c.CreateVariable({.name = "weight", .shape = Shape({4})}));
    MU_ASSIGN_OR_RETURN(v->items_,
                        c.CreateEmbeddingTable({.name = "items", .rows = 1000, .dim = 4}));
    MU_ASSIGN_OR_RETURN(CheckedJob job, CheckedJob::Create(*v->cluster_, {.epochs = 8}));
    v->job_ = std::move(job);
    v->pids_ = v->cluster_->pids();
    v->job_.ScheduleAll(50);
    v->job_.WaitForSteps(100);
    for (const Member& server : c.runtime().Servers()) v->server_ = server.address;
    v->worker_ = c.runtime().Workers()[0]->member.address;
    return v;
  }

  Coordinator& c() { return cluster_->coordinator(); }
  const Function& step() const { return job_.step(); }
  const Variable& weight() const { return weight_; }
  const EmbeddingTable& items() const { return items_; }
  const std::string& worker() const { return worker_; }
  const std::string& server() const { return server_; }
  std::vector<std::string> addresses() { return {worker_, server_, c().address()}; }
  Transport& transport() { return *transport_; }

  absl::Status Send(const std::string& address, const std::string& method, Buffer message) {
    const auto channel = transport_->Connect(address, pb::ROLE_PSSERVER);
    struct Answer {
      Notification done;
      absl::Status status;
    };
    const auto answer = std::make_shared<Answer>();
    const auto end = [answer](absl::Status status) {
      answer->status = std::move(status);
      answer->done.Notify();
    };
    if (method == "/muster.Worker/Feed") return EndOfStream(*channel, method, {message});
    channel->Unary(method, std::move(message), {},
                   [end](absl::Status status, Buffer) { end(std::move(status)); });
    answer->done.Wait();
    return answer->status;
  }
  absl::Status Install(const pb::FunctionProto& function) {
    pb::InstallFunctionRequest request;
    *request.mutable_context() = c().runtime().Context();
    *request.mutable_function() = function;
    request.set_fingerprint(FingerprintOf(function).value());
    return Send(worker_, "/muster.Worker/InstallFunction", Buffer(request.SerializeAsString()));
  }
  // A push or pull with the context of the job.
  template <typename Request>
  absl::Status SendFrame(const std::string& method, Request request, const std::string& payload) {
    *request.mutable_context() = c().runtime().Context();
    return Send(server_, "/muster.PsServer/" + method, Frame(request, payload));
  }

  // The same processes are there, answer, and lost or repeated nothing of the job.
  void ExpectUnharmed() {
    job_.JoinAndCheck();
    for (const pb::Role role : {pb::ROLE_WORKER, pb::ROLE_PSSERVER})
      EXPECT_THAT(Losses(c(), role), ::testing::IsEmpty());
    EXPECT_EQ(cluster_->pids(), pids_);
    for (int w = 0; w < 2; ++w) EXPECT_FALSE(cluster_->process("worker", w).TryWait().has_value());
    EXPECT_FALSE(cluster_->process("psserver", 0).TryWait().has_value());
    const auto is_up = [&](const std::string& address, const std::string& service) {
      return Send(address, "/muster." + service + "/GetTelemetry", Buffer(std::string()));
    };
    MU_EXPECT_OK(is_up(worker_, "Worker"));
    MU_EXPECT_OK(is_up(server_, "PsServer"));
    MU_EXPECT_OK(Send(c().address(), "/muster.Coordinator/GetStatus", Buffer(std::string())));
    MU_ASSERT_OK_AND_ASSIGN(const Tensor weight, c().Read(weight_));
    EXPECT_THAT(weight.flat<float>(), ::testing::Each(0.0f)) << "no bad update was applied";
  }

 private:
  Victims() = default;
  std::unique_ptr<TestCluster> cluster_;
  Variable weight_;
  EmbeddingTable items_;
  CheckedJob job_;
  std::vector<pid_t> pids_;
  std::string worker_, server_;
  // As a stranger's: it may send more than we take.
  const std::unique_ptr<Transport> transport_ =
      NewGrpcTransport({.max_message_bytes = std::numeric_limits<int>::max()});
};

}  // namespace mu::testing
