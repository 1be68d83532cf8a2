// What callers do with functions: schedule, wait and cancel; the data that they read.
#include <algorithm>
#include <utility>

#include "coordinator/cluster/runtime.h"

namespace mu {

std::shared_ptr<PendingError> Runtime::UnseenError() const {
  return error_ == nullptr || error_->reported ? nullptr : error_;
}

RemoteValue Runtime::Schedule(FunctionWork work, std::vector<std::string> return_names,
                              std::optional<std::string> user_state) {
  RemoteValue value;
  loop_.AwaitTurn(kSchedule, [&] {
    loop_.AssertHeld();
    if (!core_.may_schedule()) return false;
    auto error = UnseenError();
    if (error == nullptr) {
      if (const absl::Status ended = core_.ended(); !ended.ok())
        error = std::make_shared<PendingError>(ended);
    }
    if (error == nullptr) {
      if (const absl::Status refused = core_.RefusalOf(work.fingerprint); !refused.ok())
        error = error_ = std::make_shared<PendingError>(refused);
    }
    if (error != nullptr) {
      value = RemoteValue(error);
      return true;
    }
    if (!core_.has_room()) return false;
    if (const InstalledFunction* const installed = catalog_.FindFunction(work.fingerprint))
      work.name = installed->proto.name();
    Scheduling scheduling = {work.name,
                             std::make_shared<FunctionState>(std::move(return_names), work.steps)};
    if (synchronous_) scheduling.state->OnWait([this] { NothingMore(); });
    // Whatever it uses was installed by now; a worker that has all of the catalog has that.
    work.needs_version = catalog_.version();
    if (user_state.has_value()) user_state_ = *std::move(user_state);
    scheduling_ = &scheduling;
    Step(event::Schedule{std::move(work)});
    scheduling_ = nullptr;
    value = RemoteValue(scheduling.id, std::move(scheduling.state));
    return true;
  });
  return value;
}

bool Runtime::TryJoin(absl::Status* result) {
  if (core_.settling()) return false;
  const auto error = UnseenError();
  if (error != nullptr && !core_.closed()) {
    *result = error->Report();
  } else {
    *result = core_.ended();
  }
  return !result->ok() || core_.done();
}

absl::Status Runtime::SetRounds(const RoundRules& rules) {
  return loop_.Ask([&]() -> absl::Status {
    loop_.AssertHeld();
    if (rules == core_.queue().rounds()) return absl::OkStatus();
    if (core_.queue().unfinished() > 0) {
      return absl::FailedPreconditionError(
          "synchronous rounds cannot begin or change while functions are unfinished; Join first, "
          "and ask for them before Restore()");
    }
    if (rules.on() && core_.recovery_enabled() && core_.recovery().mode() == RecoveryMode::kShard) {
      return absl::InvalidArgumentError(
          "synchronous rounds need RecoveryMode::kAll: a server that goes back alone would lack "
          "rounds that the others have");
    }
    Step(event::SetRounds{rules});
    synchronous_ = rules.on();
    return absl::OkStatus();
  });
}

absl::Status Runtime::Join() {
  NothingMore();
  absl::Status result;
  loop_.AwaitTurn(kJoin, [&] {
    loop_.AssertHeld();
    return TryJoin(&result);
  });
  return result;
}

absl::StatusOr<bool> Runtime::Done() {
  NothingMore();
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
  loop_.AwaitTurn(kCancelled, [&] {
    loop_.AssertHeld();
    if (core_.settling()) return false;
    auto unseen = UnseenError();
    if (unseen == nullptr) unseen = error_ = std::make_shared<PendingError>(std::move(error));
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
  loop_.AwaitTurn(kCancelled, [this] {
    loop_.AssertHeld();
    return !core_.settling();
  });
}

}  // namespace mu
