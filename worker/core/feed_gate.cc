#include "worker/core/feed_gate.h"

#include "worker/core/protections.h"
#include "worker/core/refusal.h"

namespace mu {

absl::StatusOr<bool> FeedGate::Open(uint64_t epoch, const Connection& connection) {
  const bool is_new = epoch > epoch_ || connection.stream > newest_.stream;
  if (!is_new && connection.stream < newest_.stream) {
    return WorkerRefusal(pb::ERROR_STALE,
                         "the coordinator has begun a newer stream to this worker since");
  }
  if (!is_new && connection.connection <= newest_.connection && !MU_WORKER_BROKEN(old_connection))
    return absl::AbortedError("a newer connection has taken the place of this one");
  epoch_ = epoch;
  newest_ = connection;
  return is_new;
}

}  // namespace mu
