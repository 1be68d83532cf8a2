// Calls to several parameter servers at once, each tried again while it is the machine's or the
// network's fault.
//
// The waiting thread does the retrying; nothing runs after Run has returned except the ends of
// calls that were given up, which touch only what they share. Not thread safe, but for Cancel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/rpc/buffer.h"
#include "common/rpc/transport.h"

namespace mu {

struct RetryPolicy {
  absl::Duration call_timeout = absl::Seconds(10);   // of one try
  absl::Duration total_timeout = absl::Seconds(60);  // of a call with all its tries
  // A try ends with total_timeout; false: it may take call_timeout, but no other follows.
  bool bound_tries = true;
  absl::Duration first_backoff = absl::Milliseconds(10);
  absl::Duration longest_backoff = absl::Seconds(1);
  uint64_t seed = 0;  // of the jitter
};

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
