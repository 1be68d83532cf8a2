#include "common/client/call_retries.h"

#include <algorithm>

#include "common/base/status.h"

namespace mu {
namespace {

constexpr int64_t kLeastTryNs = 1'000'000;

// A full disk or a damaged file is the machine's fault as well, but no other try will find it
// different.
bool WorthRetrying(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return KindOf(status) == pb::ERROR_MACHINE;
    default:
      return false;
  }
}

int64_t After(int64_t now_ns, absl::Duration wait) {
  const int64_t ns = absl::ToInt64Nanoseconds(wait);
  return ns > CallRetries::kNever - now_ns ? CallRetries::kNever : now_ns + ns;
}

}  // namespace

CallRetries::CallRetries(size_t calls, const RetryPolicy& policy, int64_t now_ns)
    : policy_(policy), give_up_ns_(After(now_ns, policy.total_timeout)), open_(calls) {
  for (size_t i = 0; i < calls; ++i)
    tries_.push_back({Backoff(policy.first_backoff, policy.longest_backoff, policy.seed + i)});
}

absl::Duration CallRetries::TryTimeout(int64_t now_ns) const {
  if (!policy_.bound_tries) return policy_.call_timeout;
  return std::min(policy_.call_timeout,
                  absl::Nanoseconds(std::max(give_up_ns_ - now_ns, kLeastTryNs)));
}

CallRetries::Verdict CallRetries::Failed(size_t call, const absl::Status& status, int64_t now_ns) {
  if (!WorthRetrying(status)) return Verdict::kFinal;
  if (now_ns >= give_up_ns_) return Verdict::kGivenUp;
  Try& next = tries_[call];
  next.retry_at_ns = now_ns + absl::ToInt64Nanoseconds(next.backoff.Next());
  return Verdict::kRetry;
}

std::optional<size_t> CallRetries::TakeDue(int64_t now_ns) {
  for (size_t i = 0; i < tries_.size(); ++i) {
    if (tries_[i].retry_at_ns > now_ns) continue;
    tries_[i].retry_at_ns = kNever;
    return i;
  }
  return std::nullopt;
}

int64_t CallRetries::next_due_ns() const {
  int64_t next = kNever;
  for (const Try& t : tries_) next = std::min(next, t.retry_at_ns);
  return next;
}

}  // namespace mu
