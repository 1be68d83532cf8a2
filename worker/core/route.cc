#include "worker/core/route.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/core/protections.h"
#include "worker/core/refusal.h"

namespace mu {

bool WorkerRoute::IsNews(const WorkerRouting& routing) const {
  if (!configured_) return true;
  return routing.version > routing_.version && !MU_WORKER_BROKEN(old_routing);
}

void WorkerRoute::Take(WorkerRouting routing) {
  if (configured_ && routing.servers != routing_.servers) ++servers_version_;
  routing_ = std::move(routing);
  configured_ = true;
}

void WorkerRoute::Clear() {
  configured_ = false;
  routing_ = WorkerRouting();
  ++servers_version_;
}

absl::Status WorkerRoute::CheckGeneration(Generation generation) const {
  if (generation == Generation() || generation == routing_.generation) return absl::OkStatus();
  const bool old = generation < routing_.generation;
  if (old && MU_WORKER_BROKEN(fencing)) return absl::OkStatus();
  const std::string numbers = absl::StrCat("the request is of generation ", generation.value(),
                                           " of the servers' state, this worker knows generation ",
                                           routing_.generation.value());
  return old ? WorkerRefusal(pb::ERROR_STALE, numbers)
             : WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                             absl::StrCat(numbers, ": call Configure first"));
}

}  // namespace mu
