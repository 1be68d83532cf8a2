#include "bench/scale/direct_workers.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "common/base/status.h"
#include "common/graph/fingerprint.h"
#include "common/rpc/typed.h"
#include "proto/coordinator.pb.h"

namespace mu::scale {
namespace {

constexpr size_t kAtATime = 16;  // workers that are prepared at the same time

pb::RequestContext Context() {
  pb::RequestContext context;
  context.set_job(1);
  context.set_epoch(1);
  context.set_low_water(1);
  return context;
}

}  // namespace

DirectWorkers::DirectWorkers(const DirectOptions& options, pb::FunctionProto function,
                             uint32_t steps)
    : options_(options),
      function_(std::move(function)),
      fingerprint_(FingerprintOf(function_)),
      steps_(steps),
      transport_(NewGrpcTransport()) {}

DirectWorkers::~DirectWorkers() {
  stopping_ = true;
  server_ = nullptr;  // nobody comes any more
  std::deque<Worker> workers;
  {
    MutexLock lock(&mutex_);
    workers.swap(workers_);
  }
  for (Worker& worker : workers) worker.feed->Close();
  transport_ = nullptr;  // no callback comes later
}

absl::StatusOr<std::string> DirectWorkers::Listen() {
  MethodTable methods;
  methods.AddUnary(kComeMethod, RunOn::kOwnThread,
                   TypedHandler<pb::RegisterRequest>(
                       [this](const auto& request) -> absl::StatusOr<pb::RegisterReply> {
                         if (stopping_) return absl::CancelledError("all has been measured");
                         MU_ASSIGN_OR_RETURN(Worker* const worker, Prepare(request.address()));
                         StartAll(worker);
                         return pb::RegisterReply();
                       }));
  may_lose_ = true;
  MU_ASSIGN_OR_RETURN(server_, transport_->Listen("127.0.0.1:0", std::move(methods)));
  return server_->address();
}

absl::Status DirectWorkers::Begin(const std::vector<std::string>& addresses) {
  std::vector<Worker*> prepared(addresses.size());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::min(kAtATime, addresses.size()); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < addresses.size(); i += kAtATime) {
        const auto worker = Prepare(addresses[i]);
        if (!worker.ok()) return Fail(worker.status());
        prepared[i] = *worker;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(error_);
  }
  for (Worker* const worker : prepared) StartAll(worker);
  return absl::OkStatus();
}

absl::StatusOr<Measured> DirectWorkers::Measure() {
  const Measured measured = MeasureEnds(options_, ended_);
  stopping_ = true;
  MutexLock lock(&mutex_);
  return error_.ok() ? absl::StatusOr<Measured>(measured) : error_;
}

absl::StatusOr<DirectWorkers::Worker*> DirectWorkers::Prepare(const std::string& address) {
  const std::shared_ptr<Channel> channel = transport_->Connect(address, pb::ROLE_WORKER);
  pb::ConfigureWorkerRequest configure;
  *configure.mutable_context() = Context();
  configure.mutable_routing()->set_version(1);
  MU_RETURN_IF_ERROR(
      Call<pb::ConfigureWorkerReply>(*channel, "/muster.Worker/Configure", configure).status());
  pb::InstallFunctionRequest install;
  *install.mutable_context() = Context();
  *install.mutable_function() = function_;
  install.set_fingerprint(fingerprint_.value());
  MU_RETURN_IF_ERROR(
      Call<pb::InstallFunctionReply>(*channel, "/muster.Worker/InstallFunction", install).status());
  Worker* worker;
  {
    MutexLock lock(&mutex_);
    worker = &workers_.emplace_back();
  }
  FeedClient::Options feed;
  feed.channel = worker->channel = channel;
  *feed.hello.mutable_context() = Context();
  feed.hello.set_stream(1);
  feed.on_reply = [this, worker](const pb::FeedReply& reply) { OnReply(worker, reply); };
  feed.on_ended = [this](const absl::Status& status) { OnStreamEnded(status); };
  worker->feed = FeedClient::Open(std::move(feed));
  return worker;
}

void DirectWorkers::StartAll(Worker* worker) {
  for (int i = 0; i < options_.in_flight; ++i) Start(worker);
}

void DirectWorkers::Start(Worker* worker) {
  pb::FeedRequest said;
  pb::RunRequest& request = *said.add_runs();
  const uint64_t number = ++last_run_;
  *request.mutable_context() = Context();
  request.set_function(number);
  request.set_fingerprint(fingerprint_.value());
  request.set_steps(steps_);
  request.set_run(number);
  worker->feed->Send(said.ByteSizeLong(),
                     [said](std::string* message) { said.AppendToString(message); });
}

void DirectWorkers::OnReply(Worker* worker, const pb::FeedReply& reply) {
  for (const std::string& bytes : reply.replies()) {
    pb::RunReply run;
    const bool failed = !run.ParseFromString(bytes) || run.end().code() != 0;
    // One that ends may say so of its runs.
    if (failed && may_lose_) continue;
    if (failed) return Fail(absl::InternalError("a run failed"));
    if (!run.has_end()) continue;
    ++ended_;
    if (!stopping_) Start(worker);
  }
}

void DirectWorkers::OnStreamEnded(const absl::Status& status) {
  if (stopping_) return;
  ++lost_;
  if (!may_lose_) Fail(status);
}

void DirectWorkers::Fail(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (!stopping_) error_.Update(status);
}

}  // namespace mu::scale
