// Calls that are tried again: with back-off and jitter, until an answer, an error that a retry does
// not mend, or the deadline. Only for methods that may run more than once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/backoff.h"
#include "common/rpc/transport.h"

namespace mu {

// UNAVAILABLE; and DEADLINE_EXCEEDED, which one attempt's deadline gives.
bool IsRetryable(const absl::Status& status);

struct RetryOptions {
  absl::Duration timeout = absl::Seconds(30);          // of all attempts together
  absl::Duration attempt_timeout = absl::Seconds(10);  // of each
  absl::Duration first_delay = absl::Milliseconds(20);
  absl::Duration longest_delay = absl::Seconds(1);
  uint64_t seed = 0;  // of the jitter; 0: another one each time
  std::function<bool(const absl::Status&)> retryable = IsRetryable;
};

// As Channel::Unary. When the time is up, `done` gets the last attempt's error, its message saying
// how often it was tried. The channel is kept alive until then.
std::shared_ptr<ClientCall> UnaryWithRetries(std::shared_ptr<Channel> channel,
                                             const std::string& method, Buffer request,
                                             RetryOptions options,
                                             std::function<void(absl::Status, Buffer)> done);

}  // namespace mu
