#include "common/client/ps_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/clock.h"

namespace mu {
namespace {

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
  CallRetries retries(calls.size(), policy, clock->Now());
  std::vector<std::shared_ptr<ClientCall>> under_way(calls.size());
  const auto start = [&](size_t i) {
    under_way[i] = calls[i].channel->Unary(
        calls[i].method, calls[i].request, CallOptions{.timeout = retries.TryTimeout(clock->Now())},
        [state, i](absl::Status status, Buffer reply) {
          {
            MutexLock lock(&state->mutex);
            state->ended.push_back({i, std::move(status), std::move(reply)});
          }
          state->changed.SignalAll();
        });
  };
  for (size_t i = 0; i < calls.size(); ++i) start(i);

  absl::Status result;
  std::vector<State::Ended> ended;
  while (!retries.done() && result.ok()) {
    while (const auto due = retries.TakeDue(clock->Now())) start(*due);
    const int64_t next_retry = retries.next_due_ns();
    {
      MutexLock lock(&state->mutex);
      while (state->ended.empty() && !state->cancelled) {
        if (next_retry == CallRetries::kNever) {
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
        retries.Succeeded();
        result = on_reply(end.call, end.reply);
        continue;
      }
      switch (retries.Failed(end.call, end.status, clock->Now())) {
        case CallRetries::Verdict::kRetry:
          break;
        case CallRetries::Verdict::kFinal:
          result = end.status;
          break;
        case CallRetries::Verdict::kGivenUp:
          result = GaveUp(calls[end.call], policy, end.status);
          break;
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
