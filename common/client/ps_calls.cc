#include "common/client/ps_calls.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/backoff.h"
#include "common/base/status.h"
#include "common/env/clock.h"
#include "common/env/deadline.h"

namespace mu {
namespace {

struct Try {
  Backoff backoff;
  int64_t retry_at_ns = -1;  // when to try again; -1: nothing to do
};

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

absl::Status GaveUp(const PsCall& call, const RetryPolicy& policy, const absl::Status& last) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_MACHINE);
  detail.set_role(pb::ROLE_PSSERVER);
  detail.set_index(call.server_index);
  return WithDetail(
      absl::UnavailableError(absl::StrCat(
          "parameter server ", call.server_index, " did not answer ", call.method, " within ",
          absl::FormatDuration(policy.total_timeout), "; last error: ", last.message())),
      detail);
}

}  // namespace

// Shared with the callbacks, which may come after the group's end.
struct PsCallGroup::State {
  struct Ended {
    size_t call;
    absl::Status status;
    Buffer reply;
  };
  Mutex mutex;
  CondVar changed;
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
  std::vector<Ended> ended ABSL_GUARDED_BY(mutex);
};

void PsCallGroup::Cancel() {
  std::shared_ptr<State> running;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    running = running_;
  }
  if (running == nullptr) return;
  MutexLock lock(&running->mutex);
  running->cancelled = true;
  running->changed.SignalAll();
}

void PsCallGroup::ResetCancel() {
  MutexLock lock(&mutex_);
  cancelled_ = false;
}

absl::Status PsCallGroup::Run(
    std::vector<PsCall> calls, const RetryPolicy& policy,
    const std::function<absl::Status(size_t call, const Buffer& reply)>& on_reply) {
  const auto state = std::make_shared<State>();
  {
    MutexLock lock(&mutex_);
    if (cancelled_) return absl::CancelledError("the step was cancelled");
    running_ = state;
  }
  Clock* const clock = Clock::Real();
  const int64_t give_up_ns = DeadlineNs(*clock, policy.total_timeout);
  std::vector<std::shared_ptr<ClientCall>> under_way(calls.size());
  std::vector<Try> tries;
  for (size_t i = 0; i < calls.size(); ++i) {
    tries.push_back({Backoff(policy.first_backoff, policy.longest_backoff, policy.seed + i)});
  }
  const auto start = [&](size_t i) {
    const absl::Duration left =
        policy.bound_tries
            ? absl::Nanoseconds(std::max<int64_t>(give_up_ns - clock->Now(), 1000000))
            : absl::InfiniteDuration();
    tries[i].retry_at_ns = -1;
    under_way[i] =
        calls[i].channel->Unary(calls[i].method, calls[i].request,
                                CallOptions{.timeout = std::min(policy.call_timeout, left)},
                                [state, i](absl::Status status, Buffer reply) {
                                  MutexLock lock(&state->mutex);
                                  state->ended.push_back({i, std::move(status), std::move(reply)});
                                  state->changed.SignalAll();
                                });
  };
  for (size_t i = 0; i < calls.size(); ++i) start(i);

  absl::Status result;
  size_t open = calls.size();
  std::vector<State::Ended> ended;
  while (open > 0 && result.ok()) {
    int64_t next_retry = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < calls.size(); ++i) {
      if (tries[i].retry_at_ns < 0) continue;
      if (tries[i].retry_at_ns <= clock->Now()) {
        start(i);
      } else {
        next_retry = std::min(next_retry, tries[i].retry_at_ns);
      }
    }
    {
      MutexLock lock(&state->mutex);
      while (state->ended.empty() && !state->cancelled) {
        if (next_retry == std::numeric_limits<int64_t>::max()) {
          state->changed.Wait(&state->mutex);
        } else {
          const int64_t left = next_retry - clock->Now();
          if (left <= 0) break;
          state->changed.WaitFor(&state->mutex, absl::Nanoseconds(left));
        }
      }
      if (state->cancelled) result = absl::CancelledError("the step was cancelled");
      ended.swap(state->ended);
    }
    for (State::Ended& end : ended) {
      if (!result.ok()) break;
      if (end.status.ok()) {
        --open;
        result = on_reply(end.call, end.reply);
      } else if (!WorthRetrying(end.status)) {
        result = end.status;
      } else if (clock->Now() >= give_up_ns) {
        result = GaveUp(calls[end.call], policy, end.status);
      } else {
        tries[end.call].retry_at_ns =
            clock->Now() + absl::ToInt64Nanoseconds(tries[end.call].backoff.Next());
      }
    }
    ended.clear();
  }
  if (!result.ok()) {
    for (const auto& call : under_way) {
      if (call != nullptr) call->Cancel();
    }
  }
  MutexLock lock(&mutex_);
  running_ = nullptr;
  return result;
}

}  // namespace mu
