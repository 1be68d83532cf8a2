// What the coordinator holds for one incarnation of a worker. The runtime's loop's.
#pragma once

#include <map>
#include <memory>

#include "common/rpc/transport.h"
#include "coordinator/core/function_queue.h"
#include "coordinator/core/membership.h"

namespace mu {

struct WorkerLink {
  WorkerId id;
  Member member;
  std::shared_ptr<Channel> channel;

  bool gone = false;                         // lost or replaced
  std::shared_ptr<ClientCall> install_call;  // under way, so that it can be cancelled
  std::shared_ptr<ClientCall> cancel_call;   // the same
  std::map<RunId, std::shared_ptr<ClientCall>> runs;
};

}  // namespace mu
