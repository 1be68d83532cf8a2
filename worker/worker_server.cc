#include "worker/worker_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/signal_stack.h"
#include "common/exec/memory_budget.h"
#include "common/rpc/typed.h"
#include "worker/step_plan.h"

namespace mu {
namespace {

absl::Status DoesNotParse(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("the request does not parse as ", what));
}

// Answers by `f` once the worker knows to whom it belongs. On a thread of its own, since it may
// wait.
template <typename Request, typename Function>
Handler AfterRegistration(CoreShell* shell, Function f) {
  return TypedHandler<Request>(
      [shell, f = std::move(f)](const Request& request) -> decltype(f(request)) {
        shell->AwaitRegistration();
        return f(request);
      });
}

}  // namespace

WorkerServer::WorkerServer(const WorkerOptions& options, Transport* transport)
    : telemetry_(options.telemetry),
      datasets_({options.cache_dir, options.cache_bytes, options.lease_bytes,
                 options.most_lease_bytes, options.threads}),
      shell_(std::make_shared<CoreShell>(WorkerCore::Options{.registers = options.registers},
                                         transport, options.servers, &datasets_)),
      runner_(shell_.get(), &datasets_.leases(), options.telemetry),
      feeds_(options.incarnation, shell_.get(),
             [this](Call call, pb::RunRequest request, RunLeases leases) {
               StartRun(std::move(call), std::move(request), std::move(leases));
             }) {
  runner_.SetIndex(options.index);
  runner_.SlowDown(options.slow_down);
  runner_.WaitInSteps(options.step_wait);
  runner_.OnIdle(options.on_idle);
  runner_.BoundResults(options.most_result_bytes);
  thread_ = std::thread([this] {
    const SignalStack signal_stack;
    runner_.Loop();
  });
}

WorkerServer::~WorkerServer() {
  shell_->Shutdown();
  thread_.join();
}

void WorkerServer::AddMethods(MethodTable* methods) {
  const auto own = RunOn::kOwnThread;
  const auto add = [&](const char* name, Handler handler) {
    methods->AddUnary(std::string("/muster.Worker/") + name, own, std::move(handler));
  };
  add("Configure", AfterRegistration<pb::ConfigureWorkerRequest>(
                       shell_.get(), [this](const auto& r) { return Configure(r); }));
  add("InstallDataset", AfterRegistration<pb::InstallDatasetRequest>(
                            shell_.get(), [this](const auto& r) { return InstallDataset(r); }));
  add("ScanFile", AfterRegistration<pb::ScanFileRequest>(
                      shell_.get(), [this](const auto& r) { return ScanFile(r); }));
  add("InstallFunction", AfterRegistration<pb::InstallFunctionRequest>(
                             shell_.get(), [this](const auto& r) { return InstallFunction(r); }));
  add("CancelRuns", [this](Call call, Buffer bytes) { CancelRuns(std::move(call), bytes); });
  // Whoever opens a stream has installed functions before.
  methods->AddConversation(
      "/muster.Worker/Feed", RunOn::kTransportThread,
      [this](Call call, Buffer bytes) { feeds_.Open(std::move(call), bytes); });
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
  MU_RETURN_IF_ERROR(shell_->Registered(context));
  runner_.SetIndex(index);
  return absl::OkStatus();
}

void WorkerServer::Drain(absl::Duration patience, absl::Duration most) {
  runner_.Hurry();
  shell_->Drain(patience, most);
}

void WorkerServer::AddMetrics(MetricList* list) const {
  list->Gauge("muster_worker_runs", "Runs of functions that this worker has, the running one too",
              static_cast<double>(shell_->runs()));
  list->Gauge("muster_worker_functions_installed", "Functions that are installed",
              static_cast<double>(shell_->functions()));
  list->Gauge("muster_worker_lease_bytes", "Records of leases in memory, in bytes",
              static_cast<double>(datasets_.lease_bytes()));
  const MemoryBudget& budget = MemoryBudget::Process();
  list->Gauge("muster_worker_tensor_bytes", "Tensors of the functions installed, in bytes",
              static_cast<double>(budget.used()));
  if (budget.limit() > 0) {
    list->Gauge("muster_worker_tensor_limit_bytes", "Most that these may take, in bytes",
                static_cast<double>(budget.limit()));
  }
  const StepWatch::Place place = runner_.watch().place();
  const uint64_t now = NowNs();
  const bool busy = !place.doing.empty() && now > place.since_ns;
  list->Gauge("muster_worker_step_stands_seconds",
              "For how long the running step has read data or computed without a sign; 0 while it "
              "waits for servers",
              busy ? static_cast<double>(now - place.since_ns) * 1e-9 : 0);
}

StepWatch::Place WorkerServer::place() const {
  StepWatch::Place place = runner_.watch().place();
  place.moves += datasets_.unpacking();
  return place;
}

absl::StatusOr<pb::ConfigureWorkerReply> WorkerServer::Configure(
    const pb::ConfigureWorkerRequest& request) {
  MU_RETURN_IF_ERROR(shell_->Configure(request));
  return pb::ConfigureWorkerReply();
}

absl::StatusOr<pb::InstallDatasetReply> WorkerServer::InstallDataset(
    const pb::InstallDatasetRequest& request) {
  MU_ASSIGN_OR_RETURN(const auto installing, shell_->BeginInstall(request.context()));
  MU_ASSIGN_OR_RETURN(auto reader, datasets_.Prepare(request.dataset()));
  MU_RETURN_IF_ERROR(shell_->Installed(installing.token, std::move(reader)));
  return pb::InstallDatasetReply();
}

absl::StatusOr<pb::ScanFileReply> WorkerServer::ScanFile(const pb::ScanFileRequest& request) {
  MU_ASSIGN_OR_RETURN(const auto reader, shell_->Look(request.context(), request.dataset()));
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
  const Fingerprint fingerprint(request.fingerprint());
  MU_ASSIGN_OR_RETURN(const auto installing, shell_->BeginInstall(request.context(), fingerprint));
  if (installing.installed) return pb::InstallFunctionReply();
  const pb::RoutingProto none;
  MU_ASSIGN_OR_RETURN(
      auto function,
      CompileWorkerFunction(request.function(), fingerprint,
                            installing.routing == nullptr ? none : installing.routing->proto(),
                            telemetry_));
  MU_RETURN_IF_ERROR(shell_->Installed(installing.token, fingerprint, std::move(function)));
  return pb::InstallFunctionReply();
}

void WorkerServer::StartRun(Call call, pb::RunRequest request, RunLeases leases) {
  const std::shared_ptr<FunctionRun> run =
      shell_->StartRun(std::move(request), std::move(leases), call);
  if (run == nullptr) return;
  call->OnCancel([weak = std::weak_ptr<CoreShell>(shell_), id = run->id] {
    if (auto shell = weak.lock()) shell->CallerGone(id);
  });
  ReadAhead(*run);
}

void WorkerServer::ReadAhead(const FunctionRun& run) {
  if (run.inputs.dataset != nullptr) {
    for (const auto* lease : StepPlan(run.leases.batches).LeasesFrom(run.request.first_step())) {
      datasets_.leases().Prefetch(run.inputs.dataset, *lease);
    }
  }
  for (const auto& lease : run.leases.upcoming) {
    if (auto reader = datasets_.Find(lease->dataset()); reader != nullptr) {
      datasets_.leases().Prefetch(std::move(reader), *lease);
    }
  }
}

void WorkerServer::CancelRuns(Call call, const Buffer& bytes) {
  pb::CancelRunsRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return call->Finish(DoesNotParse("a CancelRunsRequest"));
  }
  shell_->AwaitRegistration();
  shell_->CancelRuns(request, std::move(call));
}

}  // namespace mu
