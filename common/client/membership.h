// A daemon's side of the cluster's membership: it registers with the coordinator, heartbeats on a
// thread of its own and leaves. Workers and parameter servers share it. See docs/design.md.
//
// Thread safe. Callbacks run one at a time, on the heartbeat thread or, for the first registration,
// on the caller's of Register; they must not block for long and must not call Stop, Leave or the
// destructor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/client/membership_core.h"
#include "common/env/clock.h"
#include "common/rpc/transport.h"
#include "proto/coordinator.pb.h"

namespace mu {

struct MembershipOptions {
  muster::Role role = muster::ROLE_UNSPECIFIED;
  std::string address;  // where this daemon is called
  int32_t index = -1;   // the wish; -1: any
  // Whether this daemon, if it has no wish, can take another index than the one that it had. Null:
  // it cannot.
  std::function<bool()> may_move;
  std::string http;  // where it serves metrics; empty: nowhere
  // How long the coordinator may be out of reach before the daemon gives up.
  absl::Duration orphan_timeout = absl::Minutes(10);
  Incarnation incarnation;  // 0: a random one
  Clock* clock = Clock::Real();

  // After each registration: the first one, and again when the coordinator has forgotten this
  // daemon or one of a newer epoch took over (job and index stay or the daemon is lost, but see
  // may_move; one of an older epoch is none). `sent_ns` is the clock's time when the request was
  // sent: leases count from then.
  std::function<void(const muster::RegisterReply&, int64_t sent_ns)> on_registered;
  std::function<void(const muster::HeartbeatReply&, int64_t sent_ns)> on_heartbeat;
  // Adds to a heartbeat what this daemon reports of itself. May be null.
  std::function<void(muster::HeartbeatRequest*)> fill_heartbeat;
  // The job is over, and this daemon is to take its leave; perhaps several times. May be null.
  std::function<void()> on_dismissed;
  // The coordinator has been out of reach for orphan_timeout (UNAVAILABLE) or refuses this daemon.
  // Called at most once; there are no heartbeats after it. The daemon should end.
  std::function<void(absl::Status)> on_lost;
};

class MembershipClient {
 public:
  MembershipClient(std::shared_ptr<Channel> coordinator, MembershipOptions options);
  ~MembershipClient();  // Stop()
  MembershipClient(const MembershipClient&) = delete;
  MembershipClient& operator=(const MembershipClient&) = delete;

  // Registers, trying again with back-off while the coordinator cannot be reached, for
  // orphan_timeout at most, and starts the heartbeats. Once. UNAVAILABLE if the coordinator stayed
  // out of reach, CANCELLED after Stop, else the coordinator's refusal.
  absl::Status Register();

  // Tells the coordinator that this daemon goes, after stopping the heartbeats. Tries for
  // `timeout`.
  absl::Status Leave(const std::string& reason, absl::Duration timeout = absl::Seconds(5));
  // The same while the heartbeats go on, so that the daemon serves until the coordinator has
  // answered: it may take its time (a checkpoint, say), at most `timeout`. Gives up earlier if the
  // coordinator has been out of reach for 5 seconds.
  absl::Status Drain(const std::string& reason, absl::Duration timeout);

  // Makes a Register under way return; waits only for the heartbeat thread.
  void Stop();
  // The same without waiting: may be called from anywhere.
  void RequestStop();

  muster::RegisterReply registration() const;  // of the last one
  Incarnation incarnation() const { return incarnation_; }

 private:
  struct PendingCall;

  absl::Status SayGoodbye(const std::string& reason, absl::Duration timeout,
                          absl::Duration patience, bool try_again);
  // The call that is due, and what its answer brings with it.
  MembershipCore::Next CallOnce();
  MembershipCore::Next RegisterOnce(int64_t sent_ns);
  MembershipCore::Next Beat(int64_t sent_ns);
  void HeartbeatLoop();
  template <typename Reply, typename Request>
  absl::StatusOr<Reply> CallUntilStopped(const char* method, const Request& request,
                                         absl::Duration timeout);
  // Logs why the coordinator does not answer: at first, and every 30 s while it goes on.
  void TellUnanswered(const absl::Status& status);
  bool stopping() const;
  // False once Stop was called.
  bool SleepFor(absl::Duration time);

  const std::shared_ptr<Channel> coordinator_;
  const MembershipOptions options_;
  const Incarnation incarnation_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  MembershipCore core_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ClientCall> call_ ABSL_GUARDED_BY(mutex_);
  int64_t tell_next_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: it answers
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

// A random number that no other process has: for incarnations and the like.
uint64_t RandomIdentity();

}  // namespace mu
