// What callers do with functions: schedule and wait; how they end. An error, or Cancel, ends all of
// them: runtime_cancel.cc.
#include <utility>

#include "common/obs/log.h"
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
    if (const auto refused = refused_.find(work.fingerprint); refused != refused_.end()) {
      error_ = std::make_shared<PendingError>();
      error_->status = refused->second;
      return RemoteValue(error_);
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

void Runtime::Dispatch() {
  if (stopping_ || cancelling_ || !fatal_.ok()) return;
  if (recovery_enabled_ && recovery_.started() && !recovery_.serving()) return;
  // Without recovery nobody goes back; the low-water mark must not wait for the next Schedule.
  if (!recovery_enabled_ && queue_.scheduled()) queue_.ForgetKept();
  NoteKept();
  const auto held = [this](FunctionId id, bool begun) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return update_pause_.Holds(id, begun);  // called under this lock
  };
  std::vector<FunctionId> completed;
  for (const StartRun& start : queue_.Dispatch(&completed, held)) StartOn(start);
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

}  // namespace mu
