#include "worker/core/run_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/caller_gone.h"
#include "worker/core/protections.h"

namespace mu {

absl::Status RunQueue::Add(WorkerRun run, WorkerActions* actions) {
  if (!refusal_.ok()) return refusal_;
  if (run.function < cancelled_below_) {
    return absl::CancelledError(absl::StrCat("function ", run.function.value(), " was cancelled"));
  }
  if (draining_) {
    actions->push_back(worker_action::EndRun{run.call, absl::OkStatus(), /*handed_back=*/true});
    return absl::OkStatus();
  }
  run.arrival = next_arrival_++;
  waiting_.push_back(std::move(run));
  return absl::OkStatus();
}

WorkerRun* RunQueue::Start() {
  if (running_.has_value() || waiting_.empty()) return nullptr;
  running_ = std::move(waiting_.front());
  waiting_.pop_front();
  return &*running_;
}

void RunQueue::Ended(WorkerActions* actions) {
  running_.reset();
  AnswerWaiters(actions);
}

void RunQueue::CallerGone(CallId call) {
  const absl::Status why = CallerGoneError();
  if (running_.has_value() && running_->call == call) return running_->Stop(why);
  for (WorkerRun& run : waiting_) {
    if (run.call == call) return run.Stop(why);
  }
}

void RunQueue::CancelBelow(FunctionId below, CallId call, WorkerActions* actions) {
  cancelled_below_ = std::max(cancelled_below_, below);
  StopIf([below](const WorkerRun& run) { return run.function < below; },
         absl::CancelledError("the function was cancelled"), actions);
  waiters_.push_back({below, next_arrival_, call});
  AnswerWaiters(actions);
}

void RunQueue::Reset(const absl::Status& why, WorkerActions* actions) {
  cancelled_below_ = FunctionId();
  StopIf([](const WorkerRun&) { return true; }, why, actions);
}

void RunQueue::Drain(WorkerActions* actions) {
  draining_ = true;
  if (running_.has_value()) running_->HandBack();
  for (const WorkerRun& run : waiting_)
    actions->push_back(worker_action::EndRun{run.call, absl::OkStatus(), /*handed_back=*/true});
  waiting_.clear();
}

void RunQueue::Shutdown(WorkerActions* actions) {
  if (refusal_.ok()) refusal_ = absl::UnavailableError("the worker is shutting down");
  StopIf([](const WorkerRun&) { return true; }, refusal_, actions);
}

template <typename Stop>
void RunQueue::StopIf(const Stop& stop, const absl::Status& why, WorkerActions* actions) {
  if (running_.has_value() && stop(*running_)) running_->Stop(why);
  std::erase_if(waiting_, [&](const WorkerRun& run) {
    if (!stop(run)) return false;
    actions->push_back(worker_action::EndRun{run.call, why});
    return true;
  });
}

void RunQueue::AnswerWaiters(WorkerActions* actions) {
  // Only the run in execution can hold a waiter up: those that waited were taken out when it came.
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    const bool waits = running_.has_value() && running_->arrival < waiter.arrival &&
                       running_->function < waiter.below && !MU_WORKER_BROKEN(early_cancel);
    if (!waits) actions->push_back(worker_action::Cancelled{waiter.call});
    return !waits;
  });
}

}  // namespace mu
