// What callers do with functions: schedule, wait and cancel; the data that they read.
#include <utility>

#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

std::shared_ptr<PendingError> Pending(absl::Status status) {
  auto error = std::make_shared<PendingError>();
  error->status = std::move(status);
  return error;
}

absl::Status Report(PendingError* error) {
  MutexLock lock(&error->mutex);
  error->reported = true;
  return error->status;
}

}  // namespace

std::shared_ptr<PendingError> Runtime::UnseenError() const {
  if (error_ == nullptr) return nullptr;
  MutexLock lock(&error_->mutex);
  return error_->reported ? nullptr : error_;
}

bool Runtime::TrySchedule(FunctionWork* work, std::vector<std::string>* return_names,
                          std::optional<std::string>* user_state, RemoteValue* value) {
  if (Cancelling() || core_.loading()) return false;
  auto error = UnseenError();
  if (error == nullptr) {
    if (const absl::Status ended = EndedNow(); !ended.ok()) error = Pending(ended);
  }
  if (error == nullptr) {
    if (const absl::Status refused = core_.RefusalOf(work->fingerprint); !refused.ok())
      error = error_ = Pending(refused);
  }
  if (error != nullptr) {
    *value = RemoteValue(error);
    return true;
  }
  if (core_.queue().queued() >= options_.queue_bound) return false;
  if (const InstalledFunction* const installed = catalog_.FindFunction(work->fingerprint))
    work->name = installed->proto.name();
  Scheduling scheduling = {work->name, std::make_shared<FunctionState>(std::move(*return_names),
                                                                       work->steps, work->dataset)};
  // Whatever it uses was installed by now; a worker that has all of the catalog has that.
  work->needs_version = catalog_.version();
  if (user_state->has_value()) user_state_ = **std::move(user_state);
  scheduling_ = &scheduling;
  Step(event::Schedule{std::move(*work)});
  scheduling_ = nullptr;
  *value = RemoteValue(scheduling.id, std::move(scheduling.state));
  return true;
}

RemoteValue Runtime::Schedule(FunctionWork work, std::vector<std::string> return_names,
                              std::optional<std::string> user_state) {
  RemoteValue value;
  loop_.Await([&] {
    loop_.AssertHeld();
    return TrySchedule(&work, &return_names, &user_state, &value);
  });
  return value;
}

bool Runtime::TryJoin(absl::Status* result) {
  if (Cancelling()) return false;
  if (core_.closed()) {
    *result = absl::CancelledError("the coordinator is being destroyed");
  } else if (const auto error = UnseenError()) {
    *result = Report(error.get());
  } else if (!core_.ended().ok()) {
    *result = core_.ended();
  } else {
    return core_.done();
  }
  return true;
}

absl::Status Runtime::Join() {
  absl::Status result;
  loop_.Await([&] {
    loop_.AssertHeld();
    return TryJoin(&result);
  });
  return result;
}

absl::StatusOr<bool> Runtime::Done() {
  return loop_.Ask([this]() -> absl::StatusOr<bool> {
    loop_.AssertHeld();
    absl::Status result;
    const bool done = TryJoin(&result);
    if (!result.ok()) return result;
    return done;
  });
}

RemoteValue Runtime::Refuse(absl::Status error) {
  RemoteValue value;
  loop_.Await([&] {
    loop_.AssertHeld();
    if (Cancelling()) return false;
    auto unseen = UnseenError();
    if (unseen == nullptr) unseen = error_ = Pending(std::move(error));
    value = RemoteValue(unseen);
    return true;
  });
  return value;
}

void Runtime::CancelEverything() {
  loop_.Ask([this] {
    loop_.AssertHeld();
    Step(event::CancelEverything{});
  });
  loop_.Await([this] {
    loop_.AssertHeld();
    return !Cancelling();
  });
}

}  // namespace mu
