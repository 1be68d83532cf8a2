#include "common/client/membership.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/backoff.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/base/version.h"
#include "common/env/deadline.h"
#include "common/env/host_name.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"

namespace mu {
namespace {

constexpr char kRegister[] = "/muster.Coordinator/Register";
constexpr char kHeartbeat[] = "/muster.Coordinator/Heartbeat";
constexpr char kLeave[] = "/muster.Coordinator/Leave";
constexpr absl::Duration kRegisterTimeout = absl::Seconds(5);
constexpr absl::Duration kTellEvery = absl::Seconds(30);

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
                                                     : Incarnation(RandomIdentity())),
      core_(options_.orphan_timeout) {}

MembershipClient::~MembershipClient() { Stop(); }

bool MembershipClient::stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

pb::RegisterReply MembershipClient::registration() const {
  MutexLock lock(&mutex_);
  return core_.registration();
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

MembershipCore::Next MembershipClient::CallOnce() {
  const int64_t now_ns = options_.clock->Now();
  MembershipCore::Call call;
  {
    MutexLock lock(&mutex_);
    call = core_.Send(now_ns);
  }
  return call == MembershipCore::Call::kRegister ? RegisterOnce(now_ns) : Beat(now_ns);
}

MembershipCore::Next MembershipClient::RegisterOnce(int64_t sent_ns) {
  pb::RegisterRequest request;
  request.set_role(options_.role);
  request.set_address(options_.address);
  request.set_incarnation(incarnation_.value());
  request.set_http(options_.http);
  request.set_host(HostName());
  request.set_pid(getpid());
  request.set_protocol(kProtocol);
  request.set_version(Version());
  const pb::RegisterReply before = registration();
  const bool again = before.job() != 0;
  request.set_index(again ? static_cast<int32_t>(before.index()) : options_.index);
  request.set_may_move(again && options_.index < 0 && options_.may_move && options_.may_move());
  {
    MutexLock lock(&mutex_);
    core_.MayMove(request.may_move());
  }
  const auto reply = CallUntilStopped<pb::RegisterReply>(kRegister, request, kRegisterTimeout);
  MembershipCore::Next next;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return MembershipCore::Next::kWait;
    next = core_.Registered(options_.clock->Now(), reply);
    if (next == MembershipCore::Next::kTaken) tell_next_ns_ = 0;
  }
  if (next == MembershipCore::Next::kWait) TellUnanswered(reply.status());
  if (next == MembershipCore::Next::kTaken && options_.on_registered)
    options_.on_registered(*reply, sent_ns);
  return next;
}

MembershipCore::Next MembershipClient::Beat(int64_t sent_ns) {
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
  const auto reply = CallUntilStopped<pb::HeartbeatReply>(kHeartbeat, request, timeout);
  MembershipCore::Next next;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return MembershipCore::Next::kWait;
    next = core_.Beaten(options_.clock->Now(), reply.status());
    if (next == MembershipCore::Next::kTaken) tell_next_ns_ = 0;
  }
  if (next == MembershipCore::Next::kWait) TellUnanswered(reply.status());
  if (next == MembershipCore::Next::kTaken && options_.on_heartbeat)
    options_.on_heartbeat(*reply, sent_ns);
  if (next == MembershipCore::Next::kTaken && reply->dismissed() && options_.on_dismissed)
    options_.on_dismissed();
  return next;
}

void MembershipClient::TellUnanswered(const absl::Status& status) {
  // Not: an older coordinator answers, or one that does not know this daemon, which leaves.
  if (status.ok() || !IsMachine(status)) return;
  const int64_t now_ns = options_.clock->Now();
  {
    MutexLock lock(&mutex_);
    if (tell_next_ns_ != 0 && now_ns < tell_next_ns_) return;
    tell_next_ns_ = now_ns + absl::ToInt64Nanoseconds(kTellEvery);
  }
  MU_LOG(WARN, "the coordinator {}; this daemon tries again for {}. {}",
         absl::IsResourceExhausted(status) ? "has no place" : "does not answer",
         options_.orphan_timeout, status);
}

absl::Status MembershipClient::Register() {
  Backoff backoff(absl::Milliseconds(20), absl::Seconds(2), incarnation_.value());
  do {
    const MembershipCore::Next next = CallOnce();
    MutexLock lock(&mutex_);
    if (next == MembershipCore::Next::kLost) return core_.lost();
    if (next != MembershipCore::Next::kTaken) continue;
    if (!stopping_) thread_ = std::thread([this] { HeartbeatLoop(); });
    return absl::OkStatus();
  } while (SleepFor(backoff.Next()));
  return absl::CancelledError("registration with the coordinator was stopped");
}

void MembershipClient::HeartbeatLoop() {
  while (true) {
    const uint32_t interval_ms = std::max<uint32_t>(1, registration().heartbeat_ms());
    if (!SleepFor(absl::Milliseconds(interval_ms))) return;
    MembershipCore::Next next = CallOnce();
    while (next == MembershipCore::Next::kAtOnce) next = CallOnce();
    if (stopping()) return;
    if (next != MembershipCore::Next::kLost) continue;
    absl::Status lost;
    {
      MutexLock lock(&mutex_);
      lost = core_.lost();
    }
    if (options_.on_lost) options_.on_lost(std::move(lost));
    return;
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
    core_.Leave();
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
