// Installation on workers of what the catalog holds: part after part, without a thread.
#include "absl/strings/str_cat.h"
#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"
#include "coordinator/core/deadlines.h"

namespace mu {

// One that is under way.
struct Runtime::Installation {
  std::shared_ptr<WorkerLink> link;
  Catalog::Delta delta;
  std::string context;  // with which each request begins
  size_t sent = 0;      // parts
  uint64_t began_ns = 0;
};

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
  installation->began_ns = NowNs();
  // The context has the same place in all these requests.
  pb::InstallFunctionRequest context;
  *context.mutable_context() = ContextNow();
  installation->context = context.SerializeAsString();
  InstallNext(installation);
}

void Runtime::InstallNext(const std::shared_ptr<Installation>& installation) {
  WorkerLink& link = *installation->link;
  const std::vector<Catalog::Part>& parts = installation->delta.parts;
  if (installation->sent < parts.size()) {
    const Catalog::Part& part = parts[installation->sent++];
    auto job = expected_.Expect();
    link.install_call = link.channel->Unary(
        part.method, Buffer(absl::StrCat(installation->context, *part.request)),
        {.timeout = deadlines::kInstall},
        // The replies of all these methods are empty.
        [this, installation, job = std::move(job)](const absl::Status& status, const Buffer&) {
          job->Post([this, installation, status] {
            loop_.AssertHeld();
            OnInstalled(installation, status);
          });
        });
    return;
  }
  if (options_.telemetry->tracing()) {
    options_.telemetry->AddAsyncSpan(
        "install", installation->began_ns, NowNs(),
        absl::StrCat("worker ", link.id.value(), ", version ", installation->delta.version, ": ",
                     installation->sent, " parts"));
  }
  Step(event::Installed{link.id, link.member.incarnation, installation->delta.version});
}

void Runtime::OnInstalled(const std::shared_ptr<Installation>& installation,
                          const absl::Status& status) {
  WorkerLink& link = *installation->link;
  link.install_call = nullptr;
  if (link.gone || core_.closed()) return;
  const std::optional<Fingerprint> function =
      installation->delta.parts[installation->sent - 1].function;
  if (!status.ok() && KindOf(status) == pb::ERROR_USER && function.has_value()) {
    // The worker is as good as before for all other functions.
    Step(event::FunctionRefused{link.id, *function, status});
  } else if (!status.ok()) {
    return Step(event::InstallFailed{link.id, link.member.incarnation, installation->delta.version,
                                     CallError::Of(status)});
  }
  InstallNext(installation);
}

}  // namespace mu
