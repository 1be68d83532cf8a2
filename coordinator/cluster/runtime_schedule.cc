// What callers do with functions: schedule, wait and cancel; the data that they read.
#include <algorithm>
#include <utility>

#include "coordinator/cluster/runtime.h"

namespace mu {

RemoteValue Runtime::Schedule(FunctionWork work, std::vector<std::string> return_names,
                              std::optional<std::string> user_state) {
  RemoteValue value;
  const bool trains = work.group == GroupId();
  loop_.AwaitTurn(TurnOf(work.group, kSchedule), [&] {
    loop_.AssertHeld();
    if (const InstalledFunction* const installed = catalog_.FindFunction(work.fingerprint))
      work.name = installed->proto.name();
    auto error = errors_.Unseen(work.group);
    Permission may = core_.MaySchedule(work, error == nullptr ? absl::OkStatus() : error->status);
    if (may.wait) return false;
    if (!may.refusal.ok()) {
      if (error == nullptr) error = errors_.Failed(work.group, std::move(may.refusal));
      value = RemoteValue(std::move(error));
      return true;
    }
    Scheduling scheduling = {work.name,
                             std::make_shared<FunctionState>(std::move(return_names), work.steps)};
    if (synchronous_ && trains) scheduling.state->OnWait([this] { NothingMore(); });
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

bool Runtime::TryJoin(GroupId group, absl::Status* result) {
  if (group == GroupId() && core_.settling()) return false;
  *result = errors_.Tell(group, core_.closed(), core_.ended());
  return !result->ok() || core_.done(group);
}

absl::Status Runtime::AfterRepeats(const std::function<Permission()>& attempt) {
  absl::Status result;
  bool told = false;
  loop_.AwaitTurn(kRepeats, [&] {
    const Permission may = attempt();
    if (may.wait && !std::exchange(told, true)) NothingMore();
    result = may.refusal;
    return !may.wait;
  });
  return result;
}

absl::Status Runtime::WaitForRepeats() {
  return AfterRepeats([this] {
    loop_.AssertHeld();
    return core_.TrainingIsOver();
  });
}

absl::Status Runtime::SetRounds(const RoundRules& rules) {
  return AfterRepeats([&] {
    loop_.AssertHeld();
    const Permission may = core_.MaySetRounds(rules);
    if (may.granted()) {
      Step(event::SetRounds{rules});
      synchronous_ = rules.on();
    }
    return may;
  });
}

absl::Status Runtime::Join() {
  NothingMore();
  absl::Status result;
  loop_.AwaitTurn(kJoin, [&] {
    loop_.AssertHeld();
    return TryJoin(GroupId(), &result);
  });
  return result;
}

absl::StatusOr<bool> Runtime::Done() {
  NothingMore();
  return loop_.Ask([this]() -> absl::StatusOr<bool> {
    loop_.AssertHeld();
    absl::Status result;
    const bool done = TryJoin(GroupId(), &result);
    if (!result.ok()) return result;
    return done;
  });
}

RemoteValue Runtime::Refuse(absl::Status error, GroupId group) {
  RemoteValue value;
  loop_.AwaitTurn(group == GroupId() ? kCancelled : TurnOf(group, kSchedule), [&] {
    loop_.AssertHeld();
    if (group == GroupId() && core_.settling()) return false;
    value = RemoteValue(errors_.Failed(group, std::move(error)));
    return true;
  });
  return value;
}

absl::Status Runtime::unseen_error(GroupId group) {
  return loop_.Ask([&]() -> absl::Status {
    loop_.AssertHeld();
    const auto error = errors_.Unseen(group);
    return error == nullptr ? absl::OkStatus() : error->status;
  });
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
