// What the coordinator holds for one incarnation of a worker. The runtime's loop's.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "common/client/feed_client.h"
#include "common/rpc/transport.h"
#include "coordinator/cluster/run_requests.h"
#include "coordinator/core/function_queue.h"
#include "coordinator/core/membership.h"

namespace mu {

struct WorkerLink {
  WorkerId id;
  Member member;
  std::shared_ptr<Channel> channel;

  bool gone = false;                          // lost or replaced
  std::shared_ptr<ClientCall> install_call;   // under way, so that it can be cancelled
  std::shared_ptr<ClientCall> cancel_call;    // the same
  std::shared_ptr<FeedClient> feed;           // from the first run on
  std::optional<absl::Status> feed_ended;     // why no run can be started on it any more
  std::shared_ptr<RunRequests> run_requests;  // of the feed; its writer's
  std::map<RunId, StartRun> runs;             // whose ends have not come
};

}  // namespace mu
