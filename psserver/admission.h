// Who may do what with a server, in one place: job, coordinator's epoch, generation of the state,
// lease, and the state's being whole (docs/design.md, "Exactly once").
//
// The epoch rises only by what a coordinator does to make the servers its own: its answer to a
// registration, Configure, Fence and Restore. What workers send (Pull, Push) and what only reads
// (GetStats) is refused if it is of an older epoch and raises nothing; nor do Save and Assign,
// which come after a Configure or Restore of the same coordinator. So nobody who merely looks can
// make a server refuse its coordinator.
//
// Thread safe. All refusals carry an ErrorDetail of ROLE_PSSERVER:
//   FAILED_PRECONDITION, ERROR_OTHER_JOB   the server belongs to another job
//   FAILED_PRECONDITION, ERROR_STALE       an older epoch or generation
//   UNAVAILABLE, ERROR_MACHINE             not registered, configured or restored yet, of an older
//   generation than the lease is for, or the lease ran out: try again
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/env/clock.h"
#include "proto/coordinator.pb.h"
#include "psserver/store/serving_lease.h"

namespace mu {

class Admission {
 public:
  // Held while a request works on the state; a restore waits until there is none.
  class Ticket {
   public:
    explicit Ticket(Admission* admission) : admission_(admission) {}
    Ticket(Ticket&& other) noexcept : admission_(std::exchange(other.admission_, nullptr)) {}
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (admission_ != nullptr) admission_->Leave();
    }

   private:
    Admission* admission_;
  };

  // `leased`: serve only after RenewLease and while the lease lasts. `registers`: nobody is
  // admitted before SetIdentity; else the first to configure this server decides to which job it
  // belongs.
  explicit Admission(Clock* clock, bool leased, bool registers = false)
      : clock_(clock), registers_(registers), lease_(leased) {}

  // The job that the coordinator gave at registration: another one cannot configure this server.
  absl::Status SetIdentity(uint64_t job, uint64_t epoch, uint32_t index);
  // A state of a generation below `least` does not serve, whatever the lease, until it is restored:
  // a process that others had replaced may be asked to come back.
  void RenewLease(int64_t sent_ns, absl::Duration lease, uint64_t least);

  // For requests that read or change the state.
  absl::StatusOr<Ticket> Admit(const muster::RequestContext& context);
  // For a fence, which must also hold in a state that is about to be left: what was admitted before
  // may still change it, and it may be kept.
  absl::StatusOr<Ticket> AdmitFence(const muster::RequestContext& context);
  // For requests that only look at the server, in whatever generation its state is.
  absl::Status AdmitLook(const muster::RequestContext& context);
  // For requests of the coordinator that do not depend on the state's generation. Takes a newer
  // epoch.
  absl::Status AdmitControl(const muster::RequestContext& context);
  // The same; a server without a job takes this one, with its index. It serves, in the context's
  // generation, once Configured says that the store is ready.
  absl::Status AdmitConfigure(const muster::RequestContext& context, uint32_t index);
  void Configured(const muster::RequestContext& context);
  absl::Status CheckLease() const;

  // Begins the change to context.generation: new requests are refused as UNAVAILABLE, those under
  // way have ended when it returns. False: the state is already the one asked for, a repeat. `what`
  // says what is restored: within a generation nothing else may be, so that requests that come late
  // mix nothing. `dirty`: the state has taken updates, which only a newer generation may drop.
  // `keep`: the state stays as it is, unless it is broken (UNAVAILABLE). UNAVAILABLE while another
  // restore runs.
  absl::StatusOr<bool> BeginRestore(const muster::RequestContext& context, const std::string& what,
                                    bool dirty, bool keep);
  // After BeginRestore gave true. Not ok: the state stays unusable until another restore.
  void EndRestore(bool ok);

  uint32_t index() const;
  bool configured() const;

 private:
  enum class State { kFresh, kServing, kRestoring, kBroken };

  absl::Status CheckIdentity(const muster::RequestContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refuse(absl::StatusCode code, muster::ErrorKind kind,
                      const std::string& message) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave();
  // `behind`: also in an older generation than least_.
  absl::StatusOr<Ticket> AdmitLocked(const muster::RequestContext& context, bool behind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  const bool registers_;
  ServingLease lease_;
  mutable Mutex mutex_;
  CondVar left_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kFresh;
  uint64_t job_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t least_ ABSL_GUARDED_BY(mutex_) = 0;  // in which it may serve
  // What has been admitted is of an older generation than least_ or than what is being restored, so
  // it is not acknowledged. Changes under mutex_.
  std::atomic<bool> behind_ = false;
  uint32_t index_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string restoring_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::string> restored_ ABSL_GUARDED_BY(mutex_);  // in this generation
  int working_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mu
