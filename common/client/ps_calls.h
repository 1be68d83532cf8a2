// Calls to several parameter servers at once, each tried again while it is the machine's or the
// network's fault.
//
// CallRetries decides about tries, the waiting thread makes them; nothing runs after Run has
// returned except the ends of calls that were given up, which touch only what they share. Not
// thread safe, but for Cancel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/client/call_retries.h"
#include "common/rpc/buffer.h"
#include "common/rpc/transport.h"

namespace mu {

struct PsCall {
  uint32_t server_index = 0;  // for messages
  std::shared_ptr<Channel> channel;
  std::string method;
  Buffer request;
};

class PsCallGroup {
 public:
  // Sends all calls and waits. `on_reply` is called on this thread, once for each call that
  // succeeded (its position in `calls`), as replies arrive; an error from it ends the group.
  // Returns the first error: that of a server's refusal as it is; after total_timeout UNAVAILABLE
  // with ErrorDetail {ERROR_MACHINE, ROLE_PSSERVER, index}; CANCELLED after Cancel. On an error the
  // calls under way are cancelled.
  absl::Status Run(std::vector<PsCall> calls, const RetryPolicy& policy,
                   const std::function<absl::Status(size_t call, const Buffer& reply)>& on_reply);

  // Makes Run return soon. Thread safe; lasts until ResetCancel.
  void Cancel();
  void ResetCancel();

 private:
  struct State;
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<State> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
