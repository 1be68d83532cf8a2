#include "common/client/feed_retries.h"

#include <algorithm>
#include <utility>

#include "common/base/backoff.h"
#include "common/rpc/refused.h"

namespace mu {
namespace {

constexpr uint32_t kLongBackoff = 10;

// Another connection may do better.
bool IsPassing(const absl::Status& status) {
  if (IsRefused(status)) return false;
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool FeedRetries::Connected() {
  ++connections_;
  answered_ = progress_ = false;
  return !std::exchange(counting_, true);
}

void FeedRetries::Answered(bool is_new) {
  answered_ = true;
  progress_ |= is_new;
}

std::optional<absl::Duration> FeedRetries::Broken(const absl::Status& status, absl::Time now) {
  if (answered_) {
    silent_ = absl::ZeroDuration();
    counted_at_ = now;
  }
  fruitless_ = progress_ ? 0 : fruitless_ + 1;
  if (!IsPassing(status) || (answered_ && fruitless_ > kMostFruitless)) return std::nullopt;
  // The first time at once: the other end may be as well as it was.
  absl::Duration delay;
  Backoff backoff(policy_.first_backoff, policy_.longest_backoff, connections_);
  for (uint32_t i = 0; i < std::min(fruitless_, kLongBackoff); ++i) delay = backoff.Next();
  return delay;
}

FeedRetries::Silence FeedRetries::CountSilence(absl::Time now) {
  if (answered_) {
    counting_ = false;
    return Silence::kOver;
  }
  const absl::Duration since = now - counted_at_;
  silent_ += std::min(since, 2 * count_interval());
  counted_at_ = now;
  return silent_ < policy_.give_up ? Silence::kGoesOn : Silence::kGivenUp;
}

}  // namespace mu
