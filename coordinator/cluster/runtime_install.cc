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
  const Catalog::Delta delta = catalog_.Since(a.since);
  auto installation = std::make_shared<Installation>();
  installation->link = links_.at(a.worker);
  installation->version = delta.version;
  installation->began_ns = NowNs();
  const auto add = [&, context = ContextNow()](const char* method, auto request,
                                               std::optional<Fingerprint> function = {}) {
    *request->mutable_context() = context;
    installation->parts.push_back({method, std::move(request), function});
  };
  // What comes later may refer to what came before.
  if (delta.has_routing) {
    auto request = std::make_shared<pb::ConfigureWorkerRequest>();
    *request->mutable_routing() = delta.routing;
    add("/muster.Worker/Configure", std::move(request));
  }
  for (const pb::DatasetProto& dataset : delta.datasets) {
    auto request = std::make_shared<pb::InstallDatasetRequest>();
    *request->mutable_dataset() = dataset;
    add("/muster.Worker/InstallDataset", std::move(request));
  }
  for (const InstalledFunction& function : delta.functions) {
    auto request = std::make_shared<pb::InstallFunctionRequest>();
    *request->mutable_function() = function.proto;
    request->set_fingerprint(function.fingerprint.value());
    add("/muster.Worker/InstallFunction", std::move(request), function.fingerprint);
  }
  InstallNext(installation);
}

void Runtime::InstallNext(const std::shared_ptr<Installation>& installation) {
  WorkerLink& link = *installation->link;
  if (installation->sent < installation->parts.size()) {
    const auto& part = installation->parts[installation->sent++];
    ++callbacks_;
    // The replies of all these methods are empty.
    link.install_call = CallAsync<pb::InstallFunctionReply>(
        *link.channel, part.method, *part.request, {.timeout = kInstallTimeout},
        [this, installation](const absl::StatusOr<pb::InstallFunctionReply>& reply) {
          loop_.Post([this, installation, status = reply.status()] {
            loop_.AssertHeld();
            OnInstalled(installation, status);
          });
        });
    return;
  }
  if (options_.telemetry->tracing()) {
    options_.telemetry->AddAsyncSpan(
        "install", installation->began_ns, NowNs(),
        absl::StrCat("worker ", link.id.value(), ", version ", installation->version, ": ",
                     installation->sent, " parts"));
  }
  Step(event::Installed{link.id, link.member.incarnation, installation->version});
}

void Runtime::OnInstalled(const std::shared_ptr<Installation>& installation,
                          const absl::Status& status) {
  --callbacks_;
  loop_.LookAgain();
  WorkerLink& link = *installation->link;
  link.install_call = nullptr;
  if (link.gone || core_.closed()) return;
  const std::optional<Fingerprint> function = installation->parts[installation->sent - 1].function;
  if (!status.ok() && KindOf(status) == pb::ERROR_USER && function.has_value()) {
    // The worker is as good as before for all other functions.
    Step(event::FunctionRefused{link.id, *function, status});
  } else if (!status.ok()) {
    return Step(event::InstallFailed{link.id, link.member.incarnation, installation->version,
                                     CallError::Of(status)});
  }
  InstallNext(installation);
}

}  // namespace mu
