// How an error, or the user, ends everything: on the workers first, then the servers are fenced,
// then it is told. On a thread of its own: a worker or a server that hangs is waited for here, and
// found out by the monitor meanwhile.
#include <utility>

#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

void Runtime::CancelEverything() {
  MutexLock lock(&mutex_);
  BeginCancel(absl::OkStatus());
  while (cancelling_ && !stopping_) changed_.Wait(&mutex_);
}

void Runtime::BeginCancel(absl::Status error) {
  for (FunctionId id : queue_.CancelAll()) {
    FinishFunction(id, absl::CancelledError("cancelled: another function failed"));
  }
  if (cancelling_) {
    if (cancel_error_.ok()) cancel_error_ = std::move(error);
    return;
  }
  cancelling_ = true;
  cancel_error_ = std::move(error);
  // Of the generation in which it ran. Should servers be restored before they are fenced, functions
  // below the mark run again in the next one.
  fence_context_ = ContextLocked();
  fence_context_.set_low_water(queue_.next_id().value());
  Act(commit_.FunctionsCancelled());
  changed_.SignalAll();
}

void Runtime::Canceller() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!cancelling_ && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
    }
    CancelOnWorkers();
    while (!FenceServers()) {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      changed_.WaitFor(&mutex_, options_.heartbeat);
    }
  }
}

void Runtime::CancelOnWorkers() {
  struct Waiter {
    std::shared_ptr<WorkerLink> link;
    Notification done;
    absl::Status status;
  };
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    MutexLock lock(&mutex_);
    pb::CancelRunsRequest request;
    *request.mutable_context() = ContextLocked();
    // A worker that is in a newer generation by then has nothing left of what is meant: what has
    // these ids there are repeats.
    request.mutable_context()->set_generation(fence_context_.generation());
    request.set_below(fence_context_.low_water());
    for (auto& [id, link] : links_) {
      waiters.push_back(std::make_shared<Waiter>());
      Waiter* const waiter = waiters.back().get();
      waiter->link = link;
      link->cancel_call = CallAsync<pb::CancelRunsReply>(
          *link->channel, "/muster.Worker/CancelRuns", request, {.timeout = options_.timeout},
          [held = waiters.back()](const absl::StatusOr<pb::CancelRunsReply>& reply) {
            held->status = reply.status();
            held->done.Notify();
          });
    }
  }
  for (const auto& waiter : waiters) {
    waiter->done.Wait();
    MutexLock lock(&mutex_);
    WorkerLink& link = *waiter->link;
    link.cancel_call = nullptr;
    if (waiter->status.ok() || stopping_) continue;
    auto lost = membership_.Remove(pb::ROLE_WORKER, link.id.value(), link.member.incarnation);
    if (!lost.has_value()) continue;  // as somebody else has found
    // It does not answer: its functions are over here, and the fence keeps its updates out there.
    MU_LOG(WARN, "worker {} does not confirm that its functions have ended: {}", link.id,
           waiter->status);
    MemberLost(*lost, "unreachable", std::string(waiter->status.message()));
  }
}

bool Runtime::FenceServers() {
  pb::RequestContext context;
  std::function<absl::Status(const pb::RequestContext&)> fence;
  {
    MutexLock lock(&mutex_);
    context = fence_context_;
    fence = fence_;
  }
  const absl::Status fenced = fence == nullptr ? absl::OkStatus() : fence(context);
  if (!fenced.ok()) MU_LOG(WARN, "fence: {}", fenced);
  MutexLock lock(&mutex_);
  // Nothing of what was cancelled may be applied once users are told. A server that stalls is asked
  // again; one that was lost comes back, or is back, in a newer generation, which refuses all of
  // it.
  const bool newer =
      recovery_enabled_ && recovery_.started() &&
      (!recovery_.serving() || recovery_.generation() > Generation(fence_context_.generation()));
  if (KindOf(fenced) == pb::ERROR_MACHINE && !stopping_ && fatal_.ok() && !newer &&
      membership_.Count(pb::ROLE_PSSERVER) == options_.servers) {
    return false;
  }
  if (!cancel_error_.ok()) {
    error_ = std::make_shared<PendingError>();
    error_->status = cancel_error_;
  }
  cancelling_ = false;
  // Functions that were being repeated are part of what users were told is done: they are repeated
  // from the beginning, in a generation in which nothing of before is refused or applied.
  if (recovery_enabled_ && queue_.repeats_cancelled()) Act(recovery_.StateLost());
  changed_.SignalAll();
  return true;
}

void Runtime::SetFence(std::function<absl::Status(const pb::RequestContext&)> fence) {
  MutexLock lock(&mutex_);
  fence_ = std::move(fence);
}

void Runtime::SetInterrupt(std::function<void()> interrupt) {
  MutexLock lock(&mutex_);
  interrupt_ = std::move(interrupt);
}

}  // namespace mu
