// What a daemon decides about its membership of the cluster: which call to the coordinator comes
// next, what follows from the answer, from when on a lease counts, and when the daemon has to end.
// A pure state machine: times come in as arguments, in nanoseconds of any clock. MembershipClient
// and the simulation are two shells around it. Not synchronised.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace mu {

class MembershipCore {
 public:
  // `orphan_timeout`: how long the coordinator may be out of reach before the daemon gives up.
  explicit MembershipCore(absl::Duration orphan_timeout) : orphan_timeout_(orphan_timeout) {}

  enum class Call { kRegister, kHeartbeat };
  // The call to make now. Answered by Registered or Beaten before the next one.
  Call Send(int64_t now_ns);

  enum class Next {
    kTaken,   // the answer is the coordinator's; what it grants counts from sent_ns()
    kWait,    // the next call is due in a while
    kAtOnce,  // the next call is due now
    kLost,    // lost() says why; there are no more calls
  };
  Next Registered(int64_t now_ns, const absl::StatusOr<muster::RegisterReply>& reply);
  Next Beaten(int64_t now_ns, const absl::Status& status);

  // Whether the next registration may be answered with another index than the one before.
  void MayMove(bool may_move) { may_move_ = may_move; }

  // The daemon does not register again, and ignores errors.
  void Leave() { leaving_ = true; }

  // When the last call was sent.
  int64_t sent_ns() const { return sent_ns_; }
  // The last answer that was taken; job 0: none.
  const muster::RegisterReply& registration() const { return registration_; }
  // UNAVAILABLE: the coordinator was out of reach for too long; else why it refuses this daemon.
  const absl::Status& lost() const { return lost_; }

 private:
  bool ever_registered() const { return registration_.job() != 0; }
  Next Lost(absl::Status status);
  // The coordinator cannot be reached, or an older one answers.
  Next OutOfReach(int64_t now_ns, const absl::Status& error);

  const absl::Duration orphan_timeout_;
  bool registered_ = false;  // as far as this daemon knows
  bool leaving_ = false;
  bool may_move_ = false;
  bool sent_ = false;  // anything
  int64_t sent_ns_ = 0;
  int64_t last_contact_ns_ = 0;
  muster::RegisterReply registration_;
  absl::Status lost_;
};

}  // namespace mu
