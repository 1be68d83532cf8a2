// Installation on workers of what the catalog holds, on a thread per worker.
#include "absl/strings/str_cat.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

// Installing may wait for a large graph to compile or a file to be listed, not for data.
constexpr absl::Duration kInstallTimeout = absl::Seconds(60);

}  // namespace

void Runtime::ChangeCatalog(const std::function<void(Catalog&)>& change) {
  MutexLock lock(&mutex_);
  change(catalog_);
  Step(event::CatalogChanged{catalog_.version(), catalog_.routing_version(),
                             Generation(catalog_.routing().generation())});
  changed_.SignalAll();
}

template <typename Reply, typename Request>
absl::Status Runtime::InstallCall(WorkerLink& link, const char* method, const Request& request) {
  struct Waiter {
    Notification done;
    absl::Status status;
  };
  auto waiter = std::make_shared<Waiter>();
  {
    MutexLock lock(&mutex_);
    if (link.gone) return absl::CancelledError("the worker is gone");
    link.install_call =
        CallAsync<Reply>(*link.channel, method, request, {.timeout = kInstallTimeout},
                         [waiter](absl::StatusOr<Reply> reply) {
                           waiter->status = reply.status();
                           waiter->done.Notify();
                         });
  }
  waiter->done.Wait();
  MutexLock lock(&mutex_);
  link.install_call = nullptr;
  return waiter->status;
}

absl::Status Runtime::InstallOn(WorkerLink& link, const Catalog::Delta& delta) {
  const pb::RequestContext context = Context();
  if (delta.has_routing) {
    pb::ConfigureWorkerRequest request;
    *request.mutable_context() = context;
    *request.mutable_routing() = delta.routing;
    MU_RETURN_IF_ERROR(
        InstallCall<pb::ConfigureWorkerReply>(link, "/muster.Worker/Configure", request));
  }
  for (const auto& dataset : delta.datasets) {
    pb::InstallDatasetRequest request;
    *request.mutable_context() = context;
    *request.mutable_dataset() = dataset;
    MU_RETURN_IF_ERROR(
        InstallCall<pb::InstallDatasetReply>(link, "/muster.Worker/InstallDataset", request));
  }
  for (const auto& function : delta.functions) {
    pb::InstallFunctionRequest request;
    *request.mutable_context() = context;
    *request.mutable_function() = function.proto;
    request.set_fingerprint(function.fingerprint.value());
    const absl::Status installed =
        InstallCall<pb::InstallFunctionReply>(link, "/muster.Worker/InstallFunction", request);
    if (installed.ok()) continue;
    if (KindOf(installed) != pb::ERROR_USER) return installed;
    // The worker is as good as before for all the others.
    MutexLock lock(&mutex_);
    Step(event::FunctionRefused{link.id, function.fingerprint, installed});
  }
  return absl::OkStatus();
}

void Runtime::InstallLoop(std::shared_ptr<WorkerLink> link) {
  while (true) {
    Catalog::Delta delta;
    {
      MutexLock lock(&mutex_);
      uint64_t installed = 0;
      while (!link->gone && !core_.closed()) {
        installed = core_.workers().at(link->id).installed_version;
        if (installed != catalog_.version() && catalog_.version() != 0 && !core_.IsAside(link->id))
          break;
        changed_.Wait(&mutex_);
      }
      if (link->gone || core_.closed()) break;
      delta = catalog_.Since(installed);
    }
    const absl::Status status = [&] {
      ScopedSpan span(options_.telemetry, "install",
                      absl::StrCat("worker ", link->id.value(), ", version ", delta.version, ": ",
                                   delta.has_routing ? "routing, " : "", delta.datasets.size(),
                                   " data sets, ", delta.functions.size(), " functions"));
      return InstallOn(*link, delta);
    }();
    MutexLock lock(&mutex_);
    if (link->gone || core_.closed()) break;
    if (status.ok()) {
      Step(event::Installed{link->id, link->member.incarnation, delta.version});
    } else {
      Step(event::InstallFailed{link->id, link->member.incarnation, delta.version,
                                CallError::Of(status)});
    }
  }
  MutexLock lock(&mutex_);
  link->installer_ended = true;
  changed_.SignalAll();
}

}  // namespace mu
