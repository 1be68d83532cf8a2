// What the coordinator holds for one incarnation of a worker. Guarded by the runtime's mutex,
// except the channel.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/rpc/transport.h"
#include "coordinator/cluster/function_queue.h"
#include "coordinator/cluster/membership.h"

namespace mu {

struct WorkerLink {
  WorkerId id;
  Member member;
  std::shared_ptr<Channel> channel;

  bool gone = false;                         // lost or replaced: nothing is started on it any more
  uint64_t installed_version = 0;            // of the catalog
  std::shared_ptr<ClientCall> install_call;  // under way, so that it can be cancelled
  std::shared_ptr<ClientCall> cancel_call;   // the same
  std::map<RunId, std::shared_ptr<ClientCall>> runs;
  std::set<RunId> handed_back;  // of `runs`: they end without all their results
  std::map<RunId, std::pair<StartRun, absl::Status>>
      early_errors;  // earlier runs have not ended yet
  std::thread installer;
  bool installer_ended = false;

  std::shared_ptr<const pb::LeaseProto> last_read;  // the lease whose files were last noted
  absl::Time last_news;  // of its runs: a result, or the start of a run while there was none

  uint64_t functions_done = 0;
  uint64_t steps_done = 0;
};

// A worker's own error, of no kind that says more: its process answers, but cannot do what it was
// asked to.
inline bool Answered(const absl::Status& status) {
  return KindOf(status) == pb::ERROR_MACHINE && !absl::IsUnavailable(status) &&
         !absl::IsDeadlineExceeded(status) && !absl::IsCancelled(status);
}

}  // namespace mu
