#include "worker/worker_server.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "worker/step_plan.h"

namespace mu {
namespace {

absl::Status DoesNotParse(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("the request does not parse as ", what));
}

// A call that is wrong on every worker.
absl::Status CallersError(const std::string& message) {
  return WithKind(absl::InvalidArgumentError(message), pb::ERROR_USER, pb::ROLE_WORKER);
}

// For the runs of a coordinator whose time is over.
absl::Status TakenOver(uint64_t epoch) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_STALE);
  detail.set_role(pb::ROLE_WORKER);
  return WithDetail(
      absl::CancelledError(absl::StrCat("epoch ", epoch, " of the coordinator took over")), detail);
}

// A registration's answer comes within milliseconds, or is asked for again after some seconds.
constexpr absl::Duration kRegistrationPatience = absl::Seconds(20);

// Answers by `f` once the worker knows to whom it belongs. On a thread of its own, since it may
// wait.
template <typename Request, typename Function>
Handler AfterRegistration(RequestGate* gate, Function f) {
  return TypedHandler<Request>(
      [gate, f = std::move(f)](const Request& request) -> decltype(f(request)) {
        MU_RETURN_IF_ERROR(gate->AwaitRegistration(kRegistrationPatience));
        return f(request);
      });
}

}  // namespace

WorkerServer::WorkerServer(const WorkerOptions& options, Transport* transport)
    : telemetry_(options.telemetry),
      gate_(options.registers),
      datasets_({options.cache_dir, options.cache_bytes, options.lease_bytes, options.threads}),
      functions_(options.telemetry),
      route_(transport, options.servers),
      runner_(&datasets_.leases(), &route_, options.telemetry),
      queue_([this](FunctionRun& run) { runner_.Execute(run); }) {
  runner_.SetIndex(options.index);
  runner_.SlowDown(options.slow_down);
}

WorkerServer::~WorkerServer() { queue_.Shutdown(); }

void WorkerServer::AddMethods(MethodTable* methods) {
  const auto own = RunOn::kOwnThread;
  const auto add = [&](const char* name, Handler handler) {
    methods->AddUnary(std::string("/muster.Worker/") + name, own, std::move(handler));
  };
  add("Configure", AfterRegistration<pb::ConfigureWorkerRequest>(
                       &gate_, [this](const auto& r) { return Configure(r); }));
  add("InstallDataset", AfterRegistration<pb::InstallDatasetRequest>(
                            &gate_, [this](const auto& r) { return InstallDataset(r); }));
  add("ScanFile", AfterRegistration<pb::ScanFileRequest>(
                      &gate_, [this](const auto& r) { return ScanFile(r); }));
  add("InstallFunction", AfterRegistration<pb::InstallFunctionRequest>(
                             &gate_, [this](const auto& r) { return InstallFunction(r); }));
  add("CancelRuns", [this](Call call, Buffer bytes) { CancelRuns(std::move(call), bytes); });
  // Whoever sends a Run has installed its function before.
  methods->AddServerStream("/muster.Worker/Run", RunOn::kTransportThread,
                           [this](Call call, Buffer bytes) { StartRun(std::move(call), bytes); });
  methods->AddUnary("/muster.Worker/GetTelemetry", own,
                    TypedHandler<pb::TelemetryRequest>(
                        [this](const auto& r) -> absl::StatusOr<pb::TelemetryReply> {
                          return telemetry_->ToReply(r);
                        }));
}

absl::Status WorkerServer::Registered(uint64_t job, uint64_t epoch, uint32_t index) {
  pb::RequestContext context;
  context.set_job(job);
  context.set_epoch(epoch);
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(Admitted(gate_.Register(context), context));
  runner_.SetIndex(index);
  return absl::OkStatus();
}

void WorkerServer::Drain(absl::Duration patience) {
  gate_.Close();
  queue_.Drain(patience);
}

StepWatch::Place WorkerServer::place() const {
  StepWatch::Place place = runner_.watch().place();
  place.moves += datasets_.unpacking();
  return place;
}

absl::Status WorkerServer::Admit(const pb::RequestContext& context) {
  return Admitted(gate_.Admit(context), context);
}

absl::Status WorkerServer::Admitted(const absl::StatusOr<RequestGate::Verdict>& verdict,
                                    const pb::RequestContext& context) {
  MU_RETURN_IF_ERROR(verdict.status());
  if (*verdict == RequestGate::Verdict::kNewEpoch) {
    MU_LOG(INFO, "epoch {} of the coordinator takes over", context.epoch());
    queue_.Reset(TakenOver(context.epoch()));
    functions_.Clear();
    datasets_.Clear();
    route_.Clear();
    generation_ = 0;
  }
  route_.SetLowWater(gate_.low_water());
  return absl::OkStatus();
}

absl::StatusOr<pb::ConfigureWorkerReply> WorkerServer::Configure(
    const pb::ConfigureWorkerRequest& request) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(Admit(request.context()));
  MU_RETURN_IF_ERROR(route_.Update(request.routing()));
  if (request.routing().generation() > generation_) {
    generation_ = request.routing().generation();
    queue_.ForgetCancelled();
  }
  return pb::ConfigureWorkerReply();
}

absl::StatusOr<pb::InstallDatasetReply> WorkerServer::InstallDataset(
    const pb::InstallDatasetRequest& request) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(Admit(request.context()));
  MU_RETURN_IF_ERROR(datasets_.Install(request.dataset()));
  return pb::InstallDatasetReply();
}

absl::StatusOr<pb::ScanFileReply> WorkerServer::ScanFile(const pb::ScanFileRequest& request) {
  std::shared_ptr<DatasetReader> reader;
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(gate_.AdmitLook(request.context()));
    MU_ASSIGN_OR_RETURN(reader, datasets_.Find(request.dataset()));
  }
  const auto stamp = [&]() -> absl::StatusOr<FileInfo> {
    if (request.file() >= static_cast<uint32_t>(reader->dataset().files_size()))
      return absl::NotFoundError("no such file");  // Layout says it better
    return GetFileInfo(reader->dataset().files(static_cast<int>(request.file())));
  };
  const auto before = stamp();
  pb::ScanFileReply reply;
  MU_ASSIGN_OR_RETURN(*reply.mutable_layout(), reader->Layout(request.file()));
  const auto after = stamp();
  if (before.ok() && after.ok() && before->inode == after->inode && before->size == after->size &&
      before->modified_ns == after->modified_ns) {
    reply.mutable_stamp()->set_inode(after->inode);
    reply.mutable_stamp()->set_size(after->size);
    reply.mutable_stamp()->set_modified_ns(after->modified_ns);
  }
  return reply;
}

absl::StatusOr<pb::InstallFunctionReply> WorkerServer::InstallFunction(
    const pb::InstallFunctionRequest& request) {
  std::shared_ptr<const pb::RoutingProto> routing;
  uint64_t clears;
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(Admit(request.context()));
    routing = route_.routing();
    clears = functions_.clears();
  }
  MU_RETURN_IF_ERROR(
      functions_.Install(request.function(), Fingerprint(request.fingerprint()), *routing, clears));
  return pb::InstallFunctionReply();
}

void WorkerServer::StartRun(Call call, const Buffer& bytes) {
  pb::RunRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return call->Finish(DoesNotParse("a RunRequest"));
  }
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    auto inputs = ResolveRun(request);
    status = inputs.status();
    if (!status.ok()) {
      queue_.Refused(request.run());
    } else {
      ReadAhead(request, *inputs);
      auto run = std::make_shared<FunctionRun>(std::move(request), call, *std::move(inputs));
      call->OnCancel([weak = std::weak_ptr<FunctionRun>(run)] {
        if (auto run = weak.lock()) run->Stop(absl::CancelledError("the caller of Run is gone"));
      });
      queue_.Add(std::move(run));
    }
  }
  if (!status.ok()) call->Finish(status);
}

absl::StatusOr<RunInputs> WorkerServer::ResolveRun(const pb::RunRequest& request) {
  MU_RETURN_IF_ERROR(Admit(request.context()));
  MU_RETURN_IF_ERROR(route_.CheckGeneration(request.context().generation()));
  RunInputs inputs;
  MU_ASSIGN_OR_RETURN(inputs.function, functions_.Find(Fingerprint(request.fingerprint())));
  const pb::FunctionProto& graph = inputs.function->graph;
  if (request.args_size() != graph.args_size()) {
    return CallersError(absl::StrCat("function '", graph.name(), "' takes ", graph.args_size(),
                                     " arguments, not ", request.args_size()));
  }
  for (int i = 0; i < request.args_size(); ++i) {
    absl::StatusOr<Tensor> arg = Tensor::FromProto(request.args(i));
    if (!arg.ok()) return WithKind(arg.status(), pb::ERROR_USER, pb::ROLE_WORKER);
    if (arg->dtype() != graph.args(i).dtype() || arg->shape().rank() != 0) {
      return CallersError(absl::StrCat("argument '", graph.args(i).name(), "' of function '",
                                       graph.name(), "' is a scalar of type ",
                                       pb::DType_Name(graph.args(i).dtype())));
    }
    inputs.args.push_back(*std::move(arg));
  }
  for (const auto& range : request.batches()) {
    if (range.lease().dataset() != graph.dataset()) {
      return CallersError(absl::StrCat("function '", graph.name(), "' reads dataset ",
                                       graph.dataset(), ", not dataset ", range.lease().dataset()));
    }
  }
  if (graph.dataset() != 0) {
    MU_ASSIGN_OR_RETURN(inputs.dataset, datasets_.Find(graph.dataset()));
  }
  return inputs;
}

void WorkerServer::ReadAhead(const pb::RunRequest& request, const RunInputs& inputs) {
  if (inputs.dataset != nullptr) {
    for (const auto* lease : StepPlan(request.batches()).LeasesFrom(request.first_step())) {
      datasets_.leases().Prefetch(inputs.dataset, *lease);
    }
  }
  for (const auto& lease : request.upcoming()) {
    if (auto reader = datasets_.Find(lease.dataset()); reader.ok()) {
      datasets_.leases().Prefetch(*std::move(reader), lease);
    }
  }
}

void WorkerServer::CancelRuns(Call call, const Buffer& bytes) {
  pb::CancelRunsRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return call->Finish(DoesNotParse("a CancelRunsRequest"));
  }
  if (absl::Status status = gate_.AwaitRegistration(kRegistrationPatience); !status.ok())
    return call->Finish(status);
  {
    MutexLock lock(&mutex_);
    if (absl::Status status = Admit(request.context()); !status.ok()) return call->Finish(status);
    // It comes late: the servers have gone back since, and refuse what is left of the runs that it
    // means; those of now are repeats of them.
    if (request.context().generation() < generation_)
      return call->Finish(absl::OkStatus(), Buffer(pb::CancelRunsReply().SerializeAsString()));
    // Under the lock: a newer routing, which lets repeats in, comes before it or after it.
    queue_.CancelBelow(request.below(), [call] {
      call->Finish(absl::OkStatus(), Buffer(pb::CancelRunsReply().SerializeAsString()));
    });
  }
}

}  // namespace mu
