// What callers do with functions: schedule, wait and cancel; the data that they read.
#include <utility>

#include "coordinator/cluster/runtime.h"

namespace mu {

std::shared_ptr<PendingError> Runtime::UnseenError() {
  while (core_.cancelling() && !core_.closed()) changed_.Wait(&mutex_);
  if (error_ == nullptr) return nullptr;
  MutexLock lock(&error_->mutex);
  return error_->reported ? nullptr : error_;
}

RemoteValue Runtime::Schedule(FunctionWork work, std::vector<std::string> return_names,
                              std::optional<std::string> user_state) {
  MutexLock lock(&mutex_);
  while (true) {
    if (auto error = UnseenError()) return RemoteValue(error);
    if (const absl::Status ended = EndedLocked(); !ended.ok()) {
      auto error = std::make_shared<PendingError>();
      error->status = ended;
      return RemoteValue(error);
    }
    if (const absl::Status refused = core_.RefusalOf(work.fingerprint); !refused.ok()) {
      error_ = std::make_shared<PendingError>();
      error_->status = refused;
      return RemoteValue(error_);
    }
    if (core_.queue().queued() < options_.queue_bound) break;
    changed_.Wait(&mutex_);
  }
  if (const InstalledFunction* const installed = catalog_.FindFunction(work.fingerprint))
    work.name = installed->proto.name();
  Scheduling scheduling = {work.name, std::make_shared<FunctionState>(std::move(return_names),
                                                                      work.steps, work.dataset)};
  // Whatever it uses was installed by now; a worker that has all of the catalog has that.
  work.needs_version = catalog_.version();
  if (user_state.has_value()) user_state_ = *std::move(user_state);
  scheduling_ = &scheduling;
  Step(event::Schedule{std::move(work)});
  scheduling_ = nullptr;
  return RemoteValue(scheduling.id, std::move(scheduling.state));
}

absl::Status Runtime::Join() {
  MutexLock lock(&mutex_);
  while (!core_.closed()) {
    if (auto error = UnseenError()) {
      MutexLock error_lock(&error->mutex);
      error->reported = true;
      return error->status;
    }
    if (!core_.ended().ok()) return core_.ended();
    if (core_.done()) return absl::OkStatus();
    changed_.Wait(&mutex_);
  }
  return absl::CancelledError("the coordinator is being destroyed");
}

absl::StatusOr<bool> Runtime::Done() {
  MutexLock lock(&mutex_);
  if (core_.cancelling()) return false;
  if (auto error = UnseenError()) {
    MutexLock error_lock(&error->mutex);
    error->reported = true;
    return error->status;
  }
  if (!core_.ended().ok()) return core_.ended();
  return core_.done();
}

RemoteValue Runtime::Refuse(absl::Status error) {
  MutexLock lock(&mutex_);
  if (auto earlier = UnseenError()) return RemoteValue(earlier);
  error_ = std::make_shared<PendingError>();
  error_->status = std::move(error);
  return RemoteValue(error_);
}

bool Runtime::WithLeases(uint64_t dataset, const std::function<void(DataLeases&)>& look) {
  MutexLock lock(&mutex_);
  DataLeases* const leases = core_.leases(dataset);
  if (leases == nullptr) return false;
  look(*leases);
  return true;
}

void Runtime::AddLeases(std::unique_ptr<DataLeases> leases, std::unique_ptr<PerWorkerLeases> own) {
  MutexLock lock(&mutex_);
  core_.AddLeases(std::move(leases), std::move(own));
}

void Runtime::StartEpoch(uint64_t dataset, uint64_t epoch) {
  MutexLock lock(&mutex_);
  core_.StartEpoch(dataset, epoch);
}

void Runtime::CancelEverything() {
  MutexLock lock(&mutex_);
  Step(event::CancelEverything{});
  while (core_.cancelling() && !core_.closed()) changed_.Wait(&mutex_);
}

}  // namespace mu
