// Installation on workers of what the catalog holds: part after part, without a thread.
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
  loop_.Ask([&] {
    loop_.AssertHeld();
    change(catalog_);
    StepCatalogChanged();
  });
}

void Runtime::StepCatalogChanged() {
  Step(event::CatalogChanged{catalog_.version(), catalog_.routing_version(),
                             Generation(catalog_.routing().generation()), catalog_.parameters()});
}

void Runtime::Do(action::Install& a) {
  auto installation = std::make_shared<Installation>();
  installation->link = links_.at(a.worker);
  installation->delta = catalog_.Since(a.since);
  installation->context = ContextNow();
  installation->began_ns = NowNs();
  InstallNext(installation);
}

template <typename Reply, typename Request>
void Runtime::InstallCall(const std::shared_ptr<Installation>& installation, const char* method,
                          Request request) {
  *request.mutable_context() = installation->context;
  ++installation->sent;
  ++callbacks_;
  installation->link->install_call =
      CallAsync<Reply>(*installation->link->channel, method, request, {.timeout = kInstallTimeout},
                       [this, installation](const absl::StatusOr<Reply>& reply) {
                         loop_.Post([this, installation, status = reply.status()] {
                           loop_.AssertHeld();
                           OnInstalled(installation, status);
                         });
                       });
}

// Routing, data sets, functions: what comes later may refer to what came before.
void Runtime::InstallNext(const std::shared_ptr<Installation>& installation) {
  const Catalog::Delta& delta = installation->delta;
  WorkerLink& link = *installation->link;
  size_t part = installation->sent;
  if (delta.has_routing && part-- == 0) {
    pb::ConfigureWorkerRequest request;
    *request.mutable_routing() = delta.routing;
    return InstallCall<pb::ConfigureWorkerReply>(installation, "/muster.Worker/Configure",
                                                 std::move(request));
  }
  if (part < delta.datasets.size()) {
    pb::InstallDatasetRequest request;
    *request.mutable_dataset() = delta.datasets[part];
    return InstallCall<pb::InstallDatasetReply>(installation, "/muster.Worker/InstallDataset",
                                                std::move(request));
  }
  part -= delta.datasets.size();
  if (part < delta.functions.size()) {
    pb::InstallFunctionRequest request;
    *request.mutable_function() = delta.functions[part].proto;
    request.set_fingerprint(delta.functions[part].fingerprint.value());
    return InstallCall<pb::InstallFunctionReply>(installation, "/muster.Worker/InstallFunction",
                                                 std::move(request));
  }
  if (options_.telemetry->tracing()) {
    options_.telemetry->AddAsyncSpan(
        "install", installation->began_ns, NowNs(),
        absl::StrCat("worker ", link.id.value(), ", version ", delta.version, ": ",
                     delta.has_routing ? "routing, " : "", delta.datasets.size(), " data sets, ",
                     delta.functions.size(), " functions"));
  }
  Step(event::Installed{link.id, link.member.incarnation, delta.version});
}

void Runtime::OnInstalled(const std::shared_ptr<Installation>& installation,
                          const absl::Status& status) {
  --callbacks_;
  loop_.LookAgain();
  const Catalog::Delta& delta = installation->delta;
  WorkerLink& link = *installation->link;
  link.install_call = nullptr;
  if (link.gone || core_.closed()) return;
  const size_t before = (delta.has_routing ? 1 : 0) + delta.datasets.size();
  if (!status.ok() && KindOf(status) == pb::ERROR_USER && installation->sent > before) {
    // The worker is as good as before for all other functions.
    const Fingerprint function = delta.functions[installation->sent - before - 1].fingerprint;
    Step(event::FunctionRefused{link.id, function, status});
  } else if (!status.ok()) {
    return Step(event::InstallFailed{link.id, link.member.incarnation, delta.version,
                                     CallError::Of(status)});
  }
  InstallNext(installation);
}

}  // namespace mu
