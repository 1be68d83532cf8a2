// Which calls of a group are made again after an error, when, and when the group is given up. A
// pure state machine: time comes in as an argument, in nanoseconds of any clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/backoff.h"

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

class CallRetries {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // All calls begin now.
  CallRetries(size_t calls, const RetryPolicy& policy, int64_t now_ns);

  // What a try that begins now may take.
  absl::Duration TryTimeout(int64_t now_ns) const;

  void Succeeded() { --open_; }  // once for each call
  bool done() const { return open_ == 0; }

  enum class Verdict {
    kRetry,    // its next try is due in a while
    kFinal,    // a refusal, or another error that no other try will find different
    kGivenUp,  // total_timeout is over
  };
  Verdict Failed(size_t call, const absl::Status& status, int64_t now_ns);

  // A call whose next try begins now; nothing: none is due.
  std::optional<size_t> TakeDue(int64_t now_ns);
  int64_t next_due_ns() const;  // kNever: none waits

 private:
  struct Try {
    Backoff backoff;
    int64_t retry_at_ns = kNever;
  };

  const RetryPolicy policy_;
  const int64_t give_up_ns_;
  size_t open_;
  absl::InlinedVector<Try, 4> tries_;
};

}  // namespace mu
