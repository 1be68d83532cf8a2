// Who may do what with a server, in one place: job, coordinator's epoch, generation of the state,
// lease, and the state's being whole (docs/design.md, "Exactly once").
//
// The epoch rises only by what a coordinator does to make the servers its own: its answer to a
// registration, Configure, Fence and Restore. What workers send (Pull, Push) and what only reads
// (GetStats) is refused if it is of an older epoch and raises nothing; nor do Save and Assign,
// which come after a Configure or Restore of the same coordinator, nor what has to do with views of
// checkpoints. So nobody who merely looks can make a server refuse its coordinator.
//
// Pure. All refusals carry an ErrorDetail of ROLE_PSSERVER:
//   FAILED_PRECONDITION, ERROR_OTHER_JOB   the server belongs to another job
//   FAILED_PRECONDITION, ERROR_STALE       an older epoch or generation
//   UNAVAILABLE, ERROR_MACHINE             not registered, configured or restored yet, of an older
//   generation than the lease is for, or the lease ran out: try again
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "psserver/core/serving_lease.h"

namespace mu {

class Admission {
 public:
  // `leased`: serve only after RenewLease and while the lease lasts. `registers`: nobody is
  // admitted before SetIdentity; else the first to configure this server decides to which job it
  // belongs.
  explicit Admission(bool leased, bool registers = false) : registers_(registers), lease_(leased) {}

  // The job that the coordinator gave at registration: another one cannot configure this server.
  // FAILED_PRECONDITION (ERROR_OTHER_JOB) for another job than before, and for another index once
  // somebody was admitted to configure it.
  absl::Status SetIdentity(uint64_t job, uint64_t epoch, uint32_t index);
  // A state of a generation below `least` does not serve, whatever the lease, until it is restored:
  // a process that others had replaced may be asked to come back.
  void RenewLease(int64_t sent_ns, absl::Duration lease, uint64_t least);

  // For requests that read or change the state. OK: it is under way until Leave; a restore waits
  // until nothing is.
  absl::Status Admit(int64_t now_ns, const muster::RequestContext& context);
  // For a fence, which must also hold in a state that is about to be left: what was admitted before
  // may still change it, and it may be kept.
  absl::Status AdmitFence(int64_t now_ns, const muster::RequestContext& context);
  void Leave() { --under_way_; }
  bool idle() const { return under_way_ == 0; }
  // As Admit, for somebody who is not under way yet.
  absl::Status Check(int64_t now_ns, const muster::RequestContext& context) const;
  // For requests that only look at the server, in whatever generation its state is.
  absl::Status AdmitLook(const muster::RequestContext& context) const;
  // For views of checkpoints, which are of an epoch and of no generation: they may be read whatever
  // the lease, since nobody changes them. UNAVAILABLE before the server is configured, and before
  // it knows of the coordinator.
  absl::Status AdmitView(const muster::RequestContext& context) const;
  // For requests of the coordinator that do not depend on the state's generation. Takes a newer
  // epoch.
  absl::Status AdmitControl(const muster::RequestContext& context);
  // The same; a server without a job takes this one, with its index. It serves, in the context's
  // generation, once Configured says that the store is ready.
  absl::Status AdmitConfigure(const muster::RequestContext& context, uint32_t index);
  // `replaced`: the state is not the one that the generation was; it serves once it is restored.
  // `restore_follows`: the same of a server that has had none.
  void Configured(const muster::RequestContext& context, bool replaced,
                  bool restore_follows = false);
  // Whether what was admitted may still change the state, and be acknowledged.
  absl::Status CheckLease(int64_t now_ns) const;

  // Whether a restore to context.generation may begin. False: the state is already the one asked
  // for, a repeat. `what` says what is restored: within a generation nothing else may be, so that
  // requests that come late mix nothing. `dirty`: the state has taken updates, which only a newer
  // generation may drop. `keep`: the state stays as it is, unless it is broken (UNAVAILABLE).
  // UNAVAILABLE while another restore runs.
  absl::StatusOr<bool> CheckRestore(const muster::RequestContext& context, const std::string& what,
                                    bool dirty, bool keep) const;
  // After CheckRestore gave true: new requests are refused as UNAVAILABLE, what is under way is not
  // acknowledged.
  void BeginRestore(const muster::RequestContext& context, const std::string& what);
  // When it is idle.
  void StartRestore();
  // Not ok, or Configured replaced the state meanwhile: it stays unusable until another restore.
  // Returns whether it serves.
  bool EndRestore(bool ok);

  // An error of this server, with the detail of such an error.
  absl::Status Refuse(absl::StatusCode code, muster::ErrorKind kind,
                      const std::string& message) const;
  uint32_t index() const { return index_; }
  // It holds what belongs to its index, or is about to.
  bool placed() const { return placed_; }
  uint64_t epoch() const { return epoch_; }
  uint64_t generation() const { return generation_; }

 private:
  enum class State { kFresh, kServing, kRestoring, kBroken };

  absl::Status CheckIdentity(const muster::RequestContext& context) const;
  // `behind`: also in an older generation than least_.
  absl::Status Check(int64_t now_ns, const muster::RequestContext& context, bool behind) const;
  uint64_t GenerationOf(const muster::RequestContext& context) const;

  const bool registers_;
  ServingLease lease_;
  State state_ = State::kFresh;
  uint64_t job_ = 0;
  uint64_t epoch_ = 0;
  uint64_t generation_ = 0;
  uint64_t least_ = 0;  // in which it may serve
  // What has been admitted is of an older generation than least_ or than what is being restored, so
  // it is not acknowledged.
  bool behind_ = false;
  uint32_t index_ = 0;
  bool placed_ = false;
  bool replaced_ = false;  // while it was being restored
  std::string restoring_;
  std::optional<std::string> restored_;  // in this generation
  int under_way_ = 0;
};

}  // namespace mu
