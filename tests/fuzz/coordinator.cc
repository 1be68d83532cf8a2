// Calls of daemons to a coordinator, over the transport in memory, and what a worker answers to the
// functions that it is given.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/version.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"
#include "tests/fuzz/structured.h"
#include "tests/testing/played_feed.h"

namespace mu {
namespace {

constexpr int kMostCalls = 16;
constexpr uint32_t kMostSteps = 8;
constexpr Fingerprint kFunction(5);

// Servers that agree to everything.
class WillingServers final : public ServerApi {
 public:
  absl::Status Configure(const Call&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<pb::RestoreReply>> Restore(const Call& call, const SavedState&,
                                                        const std::vector<bool>&) override {
    return std::vector<pb::RestoreReply>(static_cast<size_t>(call.routing->servers_size()));
  }
  absl::StatusOr<std::vector<pb::SaveReply>> Save(const Call& call, const std::string&) override {
    return std::vector<pb::SaveReply>(static_cast<size_t>(call.routing->servers_size()));
  }
  std::map<uint32_t, absl::Status> Fence(const pb::RequestContext&,
                                         const std::vector<uint32_t>&) override {
    return {};
  }
  absl::StatusOr<std::vector<uint32_t>> CommitRound(const Call& call, const RoundSet&) override {
    return std::vector<uint32_t>(static_cast<size_t>(call.routing->servers_size()));
  }
  absl::Status LoadView(const Call&, ViewId, const SavedState&) override {
    return absl::OkStatus();
  }
  absl::Status DropView(const Call&, ViewId) override { return absl::OkStatus(); }
  absl::Status Assign(const pb::RequestContext&, FunctionId, const Assignment&) override {
    return absl::OkStatus();
  }
};

// A worker that answers to each run with the next answer of the input.
class AnsweringWorker {
 public:
  AnsweringWorker(Transport* transport, const fuzz::CoordinatorCalls& input) : input_(input) {
    MethodTable methods;
    const auto agree = [&](const char* name) {
      methods.AddUnary(std::string("/muster.Worker/") + name, RunOn::kTransportThread,
                       [](const std::shared_ptr<ServerCall>& call, const Buffer&) {
                         call->Finish(absl::OkStatus());
                       });
    };
    for (const char* name : {"Configure", "InstallDataset", "InstallFunction", "CancelRuns"})
      agree(name);
    feed_.AddMethod(&methods);
    server_ = *transport->Listen("memory:0", std::move(methods));
  }
  std::string address() const { return server_->address(); }

 private:
  void Answer(const std::shared_ptr<ServerCall>& call) {
    int next;
    {
      MutexLock lock(&mutex_);
      next = next_++;
    }
    if (next >= input_.runs_size()) return call->Finish(absl::CancelledError("no more answers"));
    const fuzz::RunAnswer& answer = input_.runs(next);
    for (const pb::RunReply& reply : answer.replies())
      call->Send(Buffer(reply.SerializeAsString()));
    absl::Status end(static_cast<absl::StatusCode>(answer.code() & 15), "as the input says");
    pb::ErrorDetail detail;
    if (detail.ParseFromString(answer.details())) end = WithDetail(std::move(end), detail);
    call->Finish(end);
  }

  const fuzz::CoordinatorCalls& input_;
  testing::PlayedFeed feed_{[this](const std::shared_ptr<ServerCall>& call, const pb::RunRequest&,
                                   const RunLeases&) { Answer(call); }};
  Mutex mutex_;
  int next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<RpcServer> server_;
};

class FuzzedCoordinator {
 public:
  explicit FuzzedCoordinator(const fuzz::CoordinatorCalls& input)
      : transport_(NewMemoryTransport()), worker_(transport_.get(), input) {
    Runtime::Options options;
    options.transport = transport_.get();
    options.listen = "memory:0";
    options.job = JobId(1);
    options.epoch = CoordinatorEpoch(1);
    options.heartbeat = absl::Milliseconds(50);
    options.timeout = absl::Milliseconds(300);  // silent daemons must not hold back an input
    options.telemetry = &telemetry_;
    options.server_api = &servers_;
    options.checkpoints = &checkpoints_;
    runtime_ = *Runtime::Start(std::move(options));
    pb::FunctionProto function;
    function.set_name("step");
    runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.AddFunction(kFunction, function); });
    channel_ = transport_->Connect(runtime_->address(), pb::ROLE_COORDINATOR);
  }
  // Results arrive before the runtime ends, unless a run has none.
  ~FuzzedCoordinator() {
    for (const RemoteValue& value : values_) {
      if (!value.WaitFor(absl::Milliseconds(5))) continue;
      const auto result = value.Fetch();
      if (!result.ok()) continue;
      (void)result->Mean("x");
      for (size_t step = 0; step < result->steps(); ++step) (void)result->Get(step, "x");
    }
  }

  void Make(const fuzz::CoordinatorCall& call) {
    switch (call.call_case()) {
      case fuzz::CoordinatorCall::kRegister: {
        pb::RegisterRequest request = call.register_();
        if (request.protocol() == 0) request.set_protocol(kProtocol);  // more than the refusal
        if (request.role() == pb::ROLE_WORKER) request.set_address(worker_.address());
        return Call("Register", request.SerializeAsString());
      }
      case fuzz::CoordinatorCall::kHeartbeat:
        return Call("Heartbeat", call.heartbeat().SerializeAsString());
      case fuzz::CoordinatorCall::kLeave:
        return Call("Leave", call.leave().SerializeAsString());
      case fuzz::CoordinatorCall::kStatus:
        return Call("GetStatus", call.status().SerializeAsString());
      case fuzz::CoordinatorCall::kRaw:
        return Call(call.raw().method(), call.raw().request());
      case fuzz::CoordinatorCall::kSchedule:
        values_.push_back(runtime_->Schedule({.fingerprint = kFunction,
                                              .steps = 1 + call.schedule() % kMostSteps,
                                              .needs_version = 1},
                                             {"x"}));
        return;
      case fuzz::CoordinatorCall::CALL_NOT_SET:
        return;
    }
  }

 private:
  // Some are answered later, when others have been made; those end with the runtime.
  void Call(const std::string& method, std::string request) {
    const auto done = std::make_shared<Notification>();
    channel_->Unary("/muster.Coordinator/" + method, Buffer(std::move(request)), {},
                    [done](const absl::Status&, const Buffer&) { done->Notify(); });
    done->WaitFor(absl::Milliseconds(5));
  }

  Telemetry telemetry_;
  WillingServers servers_;
  JobCheckpoints checkpoints_;
  const std::unique_ptr<Transport> transport_;
  AnsweringWorker worker_;
  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<Channel> channel_;
  std::vector<RemoteValue> values_;
};

}  // namespace
}  // namespace mu

MUSTER_FUZZ_MESSAGE(muster::fuzz::CoordinatorCalls) {
  mu::SetLogSeverity(mu::LogSeverity::OFF);
  mu::FuzzedCoordinator coordinator(input);
  int made = 0;
  for (const auto& call : input.calls()) {
    if (++made > mu::kMostCalls) break;
    coordinator.Make(call);
  }
}
