// What callers do with functions: schedule, wait, cancel; how they end, and how an error ends all
// of them.
#include <utility>

#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
std::shared_ptr<PendingError> Runtime::UnseenError() {
  while (cancelling_ && !stopping_) changed_.Wait(&mutex_);
  if (error_ == nullptr) return nullptr;
  MutexLock lock(&error_->mutex);
  return error_->reported ? nullptr : error_;
}

RemoteValue Runtime::Schedule(FunctionWork work, std::vector<std::string> return_names,
                              std::optional<std::string> user_state) {
  MutexLock lock(&mutex_);
  while (true) {
    if (auto error = UnseenError()) return RemoteValue(error);
    if (!fatal_.ok() || stopping_) {
      auto error = std::make_shared<PendingError>();
      error->status =
          stopping_ ? absl::CancelledError("the coordinator is being destroyed") : fatal_;
      return RemoteValue(error);
    }
    if (queue_.queued() < options_.queue_bound) break;
    changed_.Wait(&mutex_);
  }
  auto state = std::make_shared<FunctionState>(std::move(return_names), work.steps, work.dataset);
  // Whatever it uses was installed by now; a worker that has all of the catalog has that.
  work.needs_version = catalog_.version();
  if (work.updates && work.dataset != 0 && !per_worker_.contains(work.dataset))
    trained_on_.insert(work.dataset);
  if (user_state.has_value()) user_state_ = *std::move(user_state);
  if (!recovery_enabled_) queue_.ForgetKept();
  const std::string name = NameOf(work.fingerprint);
  const FunctionId id = queue_.Schedule(std::move(work));
  spans_.Scheduled(id, name);
  states_[id] = state;
  Dispatch();
  return RemoteValue(id, std::move(state));
}

absl::Status Runtime::Join() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (auto error = UnseenError()) {
      MutexLock error_lock(&error->mutex);
      error->reported = true;
      return error->status;
    }
    if (!fatal_.ok()) return fatal_;
    if (queue_.unfinished() == 0 && !recovery_.may_roll_back()) return absl::OkStatus();
    changed_.Wait(&mutex_);
  }
  return absl::CancelledError("the coordinator is being destroyed");
}

absl::StatusOr<bool> Runtime::Done() {
  MutexLock lock(&mutex_);
  if (cancelling_) return false;
  if (auto error = UnseenError()) {
    MutexLock error_lock(&error->mutex);
    error->reported = true;
    return error->status;
  }
  if (!fatal_.ok()) return fatal_;
  return queue_.unfinished() == 0 && !recovery_.may_roll_back();
}

RemoteValue Runtime::Refuse(absl::Status error) {
  MutexLock lock(&mutex_);
  if (auto earlier = UnseenError()) return RemoteValue(earlier);
  error_ = std::make_shared<PendingError>();
  error_->status = std::move(error);
  return RemoteValue(error_);
}

void Runtime::CancelEverything() {
  MutexLock lock(&mutex_);
  BeginCancel(absl::OkStatus());
  while (cancelling_ && !stopping_) changed_.Wait(&mutex_);
}

void Runtime::Dispatch() {
  if (stopping_ || cancelling_ || !fatal_.ok()) return;
  if (recovery_enabled_ && recovery_.started() && !recovery_.serving()) return;
  std::vector<FunctionId> completed;
  for (const StartRun& start : queue_.Dispatch(&completed)) StartOn(start);
  absl::Status out_of_data;
  for (FunctionId id : completed) {
    const absl::Status status = CompletedWithoutRun(id);
    out_of_data.Update(status);
    FinishFunction(id, status);
  }
  changed_.SignalAll();  // places in the queue may be free
  if (!out_of_data.ok()) BeginCancel(std::move(out_of_data));
}

void Runtime::FinishFunction(FunctionId id, absl::Status status) {
  failures_.FunctionOver(id, status.ok(), SecondsUp());
  spans_.Finished(id, status);
  const auto it = states_.find(id);
  if (it == states_.end()) return;
  if (status.ok()) ++stats_.functions;
  it->second->Finish(std::move(status));
  states_.erase(it);
  changed_.SignalAll();
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

bool Runtime::FinishCancel() {
  pb::CancelRunsRequest request;
  pb::RequestContext fence_context;
  std::vector<std::shared_ptr<WorkerLink>> links;
  std::function<absl::Status(const pb::RequestContext&)> fence;
  {
    MutexLock lock(&mutex_);
    *request.mutable_context() = ContextLocked();
    fence_context = fence_context_;
    request.set_below(fence_context.low_water());
    for (auto& [id, link] : links_) links.push_back(link);
    fence = fence_;
  }
  for (auto& link : links) {
    const auto reply = Call<pb::CancelRunsReply>(*link->channel, "/muster.Worker/CancelRuns",
                                                 request, {.timeout = options_.timeout});
    if (reply.ok()) continue;
    // It does not answer: its functions are over here, and the fence keeps its updates out there.
    MU_LOG(WARN, "worker {} does not confirm that its functions have ended: {}", link->id,
           reply.status());
    MutexLock lock(&mutex_);
    if (auto lost =
            membership_.Remove(pb::ROLE_WORKER, link->id.value(), link->member.incarnation)) {
      MemberLost(*lost, "unreachable", std::string(reply.status().message()));
    }
  }
  const absl::Status fenced = fence == nullptr ? absl::OkStatus() : fence(fence_context);
  if (!fenced.ok()) MU_LOG(WARN, "fence: {}", fenced);
  MutexLock lock(&mutex_);
  // Nothing of what was cancelled may be applied once users are told. A server that stalls is asked
  // again; one that is lost comes back in a new generation, which refuses all of it.
  const bool restored_anyway = recovery_enabled_ && recovery_.started() && !recovery_.serving();
  if (KindOf(fenced) == pb::ERROR_MACHINE && !stopping_ && fatal_.ok() && !restored_anyway &&
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

}  // namespace mu
