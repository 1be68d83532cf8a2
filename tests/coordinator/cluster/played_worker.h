// The runtime with workers that are played by the test, over the transport in memory.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/base/error_kind.h"
#include "common/base/version.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"
#include "tests/testing/matchers.h"
#include "tests/testing/played_feed.h"

namespace mu::testing {

// As a worker's service makes it where the function is at fault.
inline absl::Status UsersError(const std::string& message) {
  return WithKind(absl::InvalidArgumentError(message), pb::ERROR_USER, pb::ROLE_WORKER);
}

// A worker whose runs the test answers by hand.
class PlayedWorker {
 public:
  // It refuses to install functions with the fingerprints `refuses`. `cannot`: it can install none.
  PlayedWorker(Transport* transport, const std::string& coordinator, uint64_t incarnation,
               int index, std::set<uint64_t> refuses = {}, bool cannot = false)
      : coordinator_(transport->Connect(coordinator, pb::ROLE_COORDINATOR)),
        refuses_(std::move(refuses)),
        cannot_install_(cannot) {
    MethodTable methods;
    Add("InstallFunction", &methods,
        TypedHandler<pb::InstallFunctionRequest>([this](const pb::InstallFunctionRequest& r)
                                                     -> absl::StatusOr<pb::InstallFunctionReply> {
          if (refuses_.contains(r.fingerprint())) {
            ++refused;
            return UsersError("no such op");
          }
          if (cannot_install_) return absl::InternalError("its disk is broken");
          ++installed;
          return pb::InstallFunctionReply();
        }));
    Add("InstallDataset", &methods, TypedHandler<pb::InstallDatasetRequest>([this](const auto&) {
          ++datasets_installed;
          return absl::StatusOr<pb::InstallDatasetReply>(pb::InstallDatasetReply());
        }));
    Add("ScanFile", &methods,
        TypedHandler<pb::ScanFileRequest>(
            [this](const pb::ScanFileRequest& r) -> absl::StatusOr<pb::ScanFileReply> {
              if (scanning != nullptr) MU_RETURN_IF_ERROR(scanning(r.file()));
              return pb::ScanFileReply();
            }));
    Add("Configure", &methods, TypedHandler<pb::ConfigureWorkerRequest>([](const auto&) {
          return absl::StatusOr<pb::ConfigureWorkerReply>(pb::ConfigureWorkerReply());
        }));
    Add("CancelRuns", &methods,
        TypedHandler<pb::CancelRunsRequest>([this](const pb::CancelRunsRequest& r) {
          cancelled_below = r.below();
          return absl::StatusOr<pb::CancelRunsReply>(pb::CancelRunsReply());
        }));
    feed.AddMethod(&methods);
    server_ = *transport->Listen("", std::move(methods));
    request_.set_role(pb::ROLE_WORKER);
    request_.set_address(server_->address());
    request_.set_incarnation(incarnation);
    request_.set_protocol(kProtocol);
    request_.set_index(index);
    Register();
  }
  ~PlayedWorker() { server_->Shutdown(); }

  void Register() {
    MU_EXPECT_OK(Call<pb::RegisterReply>(*coordinator_, "/muster.Coordinator/Register", request_));
  }

  // The next call of this method waits until the test answers what NextHeld returns.
  void HoldNext(const std::string& method) {
    MutexLock lock(&mutex);
    hold_.insert(method);
  }
  std::shared_ptr<ServerCall> NextHeld() {
    MutexLock lock(&mutex);
    while (held_.empty()) changed.Wait(&mutex);
    std::shared_ptr<ServerCall> call = std::move(held_.front());
    held_.pop_front();
    return call;
  }

  struct Run {
    std::shared_ptr<ServerCall> call;
    pb::RunRequest request;
  };
  Run NextRun() {
    MutexLock lock(&mutex);
    while (runs.empty()) changed.Wait(&mutex);
    Run run = std::move(runs.front());
    runs.pop_front();
    return run;
  }
  static void Step(const Run& run, uint32_t step, float value) {
    pb::RunReply reply;
    pb::StepResult& result = *reply.add_steps();
    result.set_step(step);
    result.set_samples(1);
    *result.add_returns() = Tensor::Scalar(value).ToProto();
    run.call->Send(Buffer(reply.SerializeAsString()));
  }
  static void HandBack(const Run& run) {
    pb::RunReply reply;
    reply.set_handed_back(true);
    run.call->Send(Buffer(reply.SerializeAsString()));
    run.call->Finish(absl::OkStatus());
  }
  absl::Status Leave() {
    pb::LeaveRequest request;
    request.set_role(pb::ROLE_WORKER);
    request.set_index(static_cast<uint32_t>(request_.index()));
    request.set_incarnation(request_.incarnation());
    request.set_reason("asked to stop");
    return Call<pb::LeaveReply>(*coordinator_, "/muster.Coordinator/Leave", request).status();
  }
  static void Finish(const Run& run) {
    for (uint32_t s = run.request.first_step(); s < run.request.steps(); ++s)
      Step(run, s, static_cast<float>(s));
    run.call->Finish(absl::OkStatus());
  }
  void Die() { server_->Shutdown(); }

  std::atomic<int> installed{0}, refused{0}, datasets_installed{0};
  // What ends a look at a file; null, OK: it has no records. Set before a scan.
  std::function<absl::Status(uint32_t file)> scanning;
  std::atomic<uint64_t> cancelled_below{0};
  Mutex mutex;
  CondVar changed;
  std::deque<Run> runs ABSL_GUARDED_BY(mutex);
  PlayedFeed feed{[this](std::shared_ptr<ServerCall> call, pb::RunRequest request, RunLeases) {
    MutexLock lock(&mutex);
    runs.push_back({std::move(call), std::move(request)});
    changed.SignalAll();
  }};

 private:
  void Add(const std::string& method, MethodTable* methods, Handler handler) {
    methods->AddUnary("/muster.Worker/" + method, RunOn::kTransportThread,
                      [this, method, handler = std::move(handler)](std::shared_ptr<ServerCall> call,
                                                                   const Buffer& request) {
                        {
                          MutexLock lock(&mutex);
                          if (hold_.erase(method) > 0) {
                            held_.push_back(std::move(call));
                            return changed.SignalAll();
                          }
                        }
                        handler(std::move(call), request);
                      });
  }

  const std::shared_ptr<Channel> coordinator_;
  std::set<std::string> hold_ ABSL_GUARDED_BY(mutex);
  std::deque<std::shared_ptr<ServerCall>> held_ ABSL_GUARDED_BY(mutex);
  const std::set<uint64_t> refuses_;
  const bool cannot_install_;
  std::unique_ptr<RpcServer> server_;
  pb::RegisterRequest request_;
};

// Servers that do what the test says.
class PlayedServers final : public ServerApi {
 public:
  absl::Status Configure(const Call&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<pb::RestoreReply>> Restore(const Call& call, const SavedState& from,
                                                        const std::vector<bool>&) override {
    if (restored != nullptr) restored(from.directory);
    if (restoring != nullptr) MU_RETURN_IF_ERROR(restoring(call));
    return std::vector<pb::RestoreReply>(static_cast<size_t>(call.routing->servers_size()));
  }
  absl::StatusOr<std::vector<pb::SaveReply>> Save(const Call& call, const std::string&) override {
    if (saving != nullptr) MU_RETURN_IF_ERROR(saving(call));
    return std::vector<pb::SaveReply>(static_cast<size_t>(call.routing->servers_size()));
  }
  std::map<uint32_t, absl::Status> Fence(const pb::RequestContext& context,
                                         const std::vector<uint32_t>&) override {
    const absl::Status status = fence(context);
    if (status.ok()) return {};
    return {{0, status}};
  }
  absl::StatusOr<std::vector<uint32_t>> CommitRound(const Call& call, const RoundSet&) override {
    return std::vector<uint32_t>(static_cast<size_t>(call.routing->servers_size()));
  }
  absl::Status LoadView(const Call&, ViewId view, const SavedState& from) override {
    return loading_view == nullptr ? absl::OkStatus() : loading_view(view, from);
  }
  absl::Status DropView(const Call&, ViewId) override { return absl::OkStatus(); }
  absl::Status Assign(const pb::RequestContext&, FunctionId, const Assignment&) override {
    return absl::OkStatus();
  }

  // Set before anything is lost or cancelled.
  std::function<absl::Status(const pb::RequestContext&)> fence;
  std::function<void(const std::string& directory)> restored;
  // What restores and saves wait for and end with; null: nothing, OK.
  std::function<absl::Status(const Call&)> restoring, saving;
  std::function<absl::Status(ViewId view, const SavedState& from)> loading_view;
};

class PlayedClusterTest : public ::testing::Test {
 protected:
  void Start(int in_flight = 2, size_t bound = 1000) {
    Runtime::Options options = options_;
    if (options.transport == nullptr) options.transport = transport_.get();
    options.listen = "";
    options.job = JobId(9);
    options.epoch = CoordinatorEpoch(1);
    options.in_flight = in_flight;
    options.queue_bound = bound;
    options.telemetry = &telemetry_;
    options.server_api = &servers_;
    options.checkpoints = &checkpoints_;
    servers_.fence = [this](const pb::RequestContext& context) {
      fenced_below_ = context.low_water();
      return absl::OkStatus();
    };
    MU_ASSERT_OK_AND_ASSIGN(runtime_, Runtime::Start(options));
    pb::FunctionProto function;
    function.set_name("step");
    runtime_->ChangeCatalog(
        [&](Catalog& catalog) { catalog.AddFunction(Fingerprint(5), function); });
  }
  std::unique_ptr<PlayedWorker> Worker(uint64_t incarnation, int index = -1,
                                       std::set<uint64_t> refuses = {}, bool cannot = false) {
    return std::make_unique<PlayedWorker>(transport_.get(), runtime_->address(), incarnation, index,
                                          std::move(refuses), cannot);
  }
  void RegisterServer(uint32_t pid) {
    const auto channel = transport_->Connect(runtime_->address(), pb::ROLE_COORDINATOR);
    pb::RegisterRequest request;
    request.set_role(pb::ROLE_PSSERVER);
    request.set_address("memory:none");
    request.set_incarnation(pid);
    request.set_protocol(kProtocol);
    request.set_pid(pid);
    MU_ASSERT_OK(Call<pb::RegisterReply>(*channel, "/muster.Coordinator/Register", request));
  }
  RemoteValue Schedule(uint32_t steps) {
    return runtime_->Schedule({.fingerprint = Fingerprint(5), .steps = steps, .needs_version = 1},
                              {"x"});
  }

  Runtime::Options options_;  // what a test sets before Start
  Telemetry telemetry_;
  PlayedServers servers_;
  JobCheckpoints checkpoints_;
  const std::unique_ptr<Transport> transport_ = NewMemoryTransport();
  std::unique_ptr<Runtime> runtime_;
  std::atomic<uint64_t> fenced_below_{0};
};

}  // namespace mu::testing
