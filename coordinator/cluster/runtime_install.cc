// Installation on workers of what the catalog holds: part after part, as the core says, without a
// thread.
#include "absl/strings/str_cat.h"
#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"
#include "coordinator/core/deadlines.h"

namespace mu {

void Runtime::ChangeCatalog(const std::function<void(Catalog&)>& change) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    change(catalog_);
    StepCatalogChanged();
  });
}

void Runtime::StepCatalogChanged() {
  Step(event::CatalogChanged{catalog_.version(), catalog_.routing_version(),
                             Generation(catalog_.routing().generation()), catalog_.parameters(),
                             catalog_.TakeChanged()});
}

void Runtime::Do(action::Install& a) {
  const std::shared_ptr<WorkerLink> link = links_.at(a.worker);
  const Catalog::Request& request = catalog_.RequestOf(a.part);
  // The context has the same place in all these requests.
  pb::InstallFunctionRequest context;
  *context.mutable_context() = ContextNow();
  auto job = expected_.Expect();
  link->install_call = link->channel->Unary(
      request.method, Buffer(absl::StrCat(context.SerializeAsString(), *request.bytes)),
      {.timeout = deadlines::kInstall},
      // The replies of all these methods are empty.
      [this, link, part = a.part, began_ns = NowNs(), job = std::move(job)](
          const absl::Status& status, const Buffer&) {
        job->Post([this, link, part, began_ns, status] {
          loop_.AssertHeld();
          link->install_call = nullptr;
          if (link->gone || core_.closed()) return;
          if (options_.telemetry->tracing()) {
            options_.telemetry->AddAsyncSpan(
                "install", began_ns, NowNs(),
                absl::StrCat("worker ", link->id.value(), ": ", Describe(part)));
          }
          Step(event::Installed{link->id, link->member.incarnation, CallError::Of(status)});
        });
      });
}

}  // namespace mu
