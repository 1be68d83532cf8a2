#include "common/client/membership.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/backoff.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/env/deadline.h"
#include "common/env/host_name.h"
#include "common/rpc/typed.h"

namespace mu {
namespace {

constexpr char kRegister[] = "/muster.Coordinator/Register";
constexpr char kHeartbeat[] = "/muster.Coordinator/Heartbeat";
constexpr char kLeave[] = "/muster.Coordinator/Leave";
constexpr absl::Duration kRegisterTimeout = absl::Seconds(5);

bool IsMachine(const absl::Status& status) { return KindOf(status) == pb::ERROR_MACHINE; }

}  // namespace

uint64_t RandomIdentity() {
  uint64_t value = 0;
  if (getrandom(&value, sizeof(value), 0) != sizeof(value)) {
    value =
        HashCombine(static_cast<uint64_t>(getpid()), static_cast<uint64_t>(Clock::Real()->Now()));
  }
  return value | 1;
}

MembershipClient::MembershipClient(std::shared_ptr<Channel> coordinator, MembershipOptions options)
    : coordinator_(std::move(coordinator)),
      options_(std::move(options)),
      incarnation_(options_.incarnation.value() != 0 ? options_.incarnation
                                                     : Incarnation(RandomIdentity())) {}

MembershipClient::~MembershipClient() { Stop(); }

bool MembershipClient::stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

pb::RegisterReply MembershipClient::registration() const {
  MutexLock lock(&mutex_);
  return registration_;
}

bool MembershipClient::SleepFor(absl::Duration time) {
  const int64_t until = DeadlineNs(*Clock::Real(), time);
  MutexLock lock(&mutex_);
  while (!stopping_) {
    const int64_t left = until - Clock::Real()->Now();
    if (left <= 0) return true;
    changed_.WaitFor(&mutex_, absl::Nanoseconds(left));
  }
  return false;
}

template <typename Reply, typename Request>
absl::StatusOr<Reply> MembershipClient::CallUntilStopped(const char* method, const Request& request,
                                                         absl::Duration timeout) {
  auto state = std::make_shared<std::pair<Notification, absl::StatusOr<Reply>>>();
  auto call = CallAsync<Reply>(*coordinator_, method, request, CallOptions{.timeout = timeout},
                               [state](absl::StatusOr<Reply> reply) {
                                 state->second = std::move(reply);
                                 state->first.Notify();
                               });
  bool cancel;
  {
    MutexLock lock(&mutex_);
    cancel = stopping_;
    call_ = call;
  }
  if (cancel) call->Cancel();
  state->first.Wait();
  MutexLock lock(&mutex_);
  call_ = nullptr;
  return std::move(state->second);
}

absl::StatusOr<pb::RegisterReply> MembershipClient::RegisterOnce(absl::Duration timeout,
                                                                 int64_t* sent_ns) {
  pb::RegisterRequest request;
  request.set_role(options_.role);
  request.set_address(options_.address);
  request.set_incarnation(incarnation_.value());
  request.set_host(HostName());
  request.set_pid(getpid());
  const pb::RegisterReply before = registration();
  request.set_index(before.job() != 0 ? static_cast<int32_t>(before.index()) : options_.index);
  *sent_ns = options_.clock->Now();
  return CallUntilStopped<pb::RegisterReply>(kRegister, request, timeout);
}

void MembershipClient::Registered(const pb::RegisterReply& reply, int64_t sent_ns) {
  {
    MutexLock lock(&mutex_);
    registration_ = reply;
    last_contact_ns_ = options_.clock->Now();
  }
  if (options_.on_registered) options_.on_registered(reply, sent_ns);
}

absl::Status MembershipClient::Register() {
  const int64_t give_up = DeadlineNs(*options_.clock, options_.orphan_timeout);
  Backoff backoff(absl::Milliseconds(20), absl::Seconds(2), incarnation_.value());
  while (true) {
    int64_t sent_ns = 0;
    auto reply = RegisterOnce(kRegisterTimeout, &sent_ns);
    if (stopping()) return absl::CancelledError("registration with the coordinator was stopped");
    if (reply.ok()) {
      Registered(*reply, sent_ns);
      MutexLock lock(&mutex_);
      if (!stopping_) thread_ = std::thread([this] { HeartbeatLoop(); });
      return absl::OkStatus();
    }
    if (!IsMachine(reply.status())) {
      return Annotate(reply.status(), "the coordinator refuses this daemon");
    }
    if (options_.clock->Now() >= give_up) {
      return absl::UnavailableError(
          absl::StrCat("the coordinator could not be reached within ",
                       absl::FormatDuration(options_.orphan_timeout),
                       " (is --coordinator right and is it running?): ", reply.status().message()));
    }
    if (!SleepFor(backoff.Next())) {
      return absl::CancelledError("registration with the coordinator was stopped");
    }
  }
}

absl::Status MembershipClient::Beat() {
  const pb::RegisterReply identity = registration();
  pb::HeartbeatRequest request;
  request.set_job(identity.job());
  request.set_epoch(identity.epoch());
  request.set_role(options_.role);
  request.set_index(identity.index());
  request.set_incarnation(incarnation_.value());
  if (options_.fill_heartbeat) options_.fill_heartbeat(&request);
  const absl::Duration timeout =
      std::max(absl::Seconds(1), absl::Milliseconds(identity.heartbeat_ms()) * 3);
  int64_t sent_ns = options_.clock->Now();
  const auto reply = CallUntilStopped<pb::HeartbeatReply>(kHeartbeat, request, timeout);
  if (stopping()) return absl::OkStatus();
  if (reply.ok()) {
    {
      MutexLock lock(&mutex_);
      last_contact_ns_ = options_.clock->Now();
    }
    if (options_.on_heartbeat) options_.on_heartbeat(*reply, sent_ns);
    return absl::OkStatus();
  }
  {
    MutexLock lock(&mutex_);
    if (leaving_) return absl::OkStatus();
  }
  if (KindOf(reply.status()) == pb::ERROR_OTHER_JOB) return reply.status();
  if (!IsMachine(reply.status())) {
    // The coordinator is there but does not know us, or is a newer one: register again.
    const auto again = RegisterOnce(kRegisterTimeout, &sent_ns);
    if (stopping()) return absl::OkStatus();
    if (again.ok() && again->epoch() < identity.epoch()) {
      // One that was taken for dead and has not noticed yet that a newer one has taken over: as
      // good as out of reach.
    } else if (again.ok()) {
      if (again->job() != identity.job() || again->index() != identity.index()) {
        return absl::FailedPreconditionError(
            "the coordinator that answers now has another job or another place for this daemon");
      }
      Registered(*again, sent_ns);
      return absl::OkStatus();
    }
    if (!again.ok() && !IsMachine(again.status())) return again.status();
  }
  MutexLock lock(&mutex_);
  const int64_t silent_ns = options_.clock->Now() - last_contact_ns_;
  if (silent_ns < absl::ToInt64Nanoseconds(options_.orphan_timeout)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the coordinator has been out of reach for ",
                                             absl::FormatDuration(options_.orphan_timeout),
                                             "; last error: ", reply.status().message()));
}

void MembershipClient::HeartbeatLoop() {
  while (true) {
    const uint32_t interval_ms = std::max<uint32_t>(1, registration().heartbeat_ms());
    if (!SleepFor(absl::Milliseconds(interval_ms))) return;
    absl::Status status = Beat();
    if (stopping()) return;
    if (!status.ok()) {
      if (options_.on_lost) options_.on_lost(std::move(status));
      return;
    }
  }
}

absl::Status MembershipClient::SayGoodbye(const std::string& reason, absl::Duration timeout,
                                          absl::Duration patience, bool try_again) {
  const pb::RegisterReply identity = registration();
  pb::LeaveRequest request;
  request.set_role(options_.role);
  request.set_index(identity.index());
  request.set_incarnation(incarnation_.value());
  request.set_reason(reason);
  const absl::Time give_up = SteadyNow() + timeout;
  absl::Time reached = SteadyNow();
  while (true) {
    const absl::Time begun = SteadyNow();
    const absl::Duration left = std::max(absl::Milliseconds(10), give_up - begun);
    const auto reply = Call<pb::LeaveReply>(*coordinator_, kLeave, request,
                                            CallOptions{.timeout = try_again ? left / 2 : left});
    const absl::Time now = SteadyNow();
    if (now - begun >= absl::Seconds(1))
      reached = now;  // it was there: the call did not fail at once
    if (reply.ok() || !IsMachine(reply.status()) || now >= give_up || now - reached >= patience)
      return reply.status();
    // A refused connection fails at once: do not spin on it.
    Notification never;
    never.WaitFor(std::min(absl::Milliseconds(50), give_up - now));
  }
}

absl::Status MembershipClient::Leave(const std::string& reason, absl::Duration timeout) {
  Stop();
  return SayGoodbye(reason, timeout, timeout, /*try_again=*/true);
}

absl::Status MembershipClient::Drain(const std::string& reason, absl::Duration timeout) {
  {
    MutexLock lock(&mutex_);
    leaving_ = true;
  }
  const absl::Status status =
      SayGoodbye(reason, timeout, std::min(timeout, absl::Seconds(5)), /*try_again=*/false);
  Stop();
  return status;
}

void MembershipClient::RequestStop() {
  std::shared_ptr<ClientCall> call;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    call = call_;
    changed_.SignalAll();
  }
  if (call) call->Cancel();
}

void MembershipClient::Stop() {
  RequestStop();
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

}  // namespace mu
