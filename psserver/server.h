// A parameter server without its transport: the handlers of the service PsServer
// (proto/psserver.proto), over a store, a memory of applied pushes and the checks of who may call.
//
// Thread safe. Errors: those of Admission (psserver/admission.h); otherwise what each handler says,
// with an ErrorDetail of ROLE_PSSERVER.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/env/clock.h"
#include "common/obs/telemetry.h"
#include "common/rpc/thread_pool.h"
#include "common/rpc/transport.h"
#include "proto/psserver.pb.h"
#include "psserver/admission.h"
#include "psserver/applied_pushes.h"
#include "psserver/assigned_places.h"
#include "psserver/checkpoint/checkpoint.h"
#include "psserver/push.h"
#include "psserver/saves.h"
#include "psserver/store/cut_gate.h"
#include "psserver/store/store.h"
#include "psserver/store/store_cut.h"

namespace mu {

struct PsServerOptions {
  Clock* clock = Clock::Real();
  // Serve only while the lease that RenewLease extends lasts. Without a coordinator (tests, tools):
  // false.
  bool leased = false;
  // Refuse everybody until SetIdentity, as a server does that registers with a coordinator: the
  // first to call it need not be the one whose job it serves.
  bool registers = false;
  Telemetry* telemetry = &Telemetry::Process();
  // Memory for copies of what changes while a save writes, in bytes; pushes that would need more
  // wait for the writer. 0: a quarter of the state.
  size_t most_copies = 0;
  // Larger replies are refused, since the transport would not carry them.
  uint64_t most_reply_bytes = static_cast<uint64_t>(TransportOptions().max_message_bytes);
  // Memory for what is remembered of applied pushes, in bytes. 0: 896 MB.
  size_t most_applied = 0;
  // A push that has waited so long ends the save.
  absl::Duration most_wait = absl::Seconds(10);
};

class PsServer {
 public:
  explicit PsServer(PsServerOptions options = {});
  ~PsServer();  // ends a save; no call is under way

  // Adds the methods "/muster.PsServer/...". The table's server must end before this object does.
  void RegisterMethods(MethodTable* methods);

  // From the membership: what the coordinator said.
  absl::Status SetIdentity(uint64_t job, uint64_t epoch, uint32_t index) {
    return admission_.SetIdentity(job, epoch, index);
  }
  void RenewLease(int64_t sent_ns, absl::Duration lease, uint64_t least_generation) {
    admission_.RenewLease(sent_ns, lease, least_generation);
  }
  void RaiseLowWater(uint64_t function) { pushes_.RaiseLowWater(function); }
  // For heartbeats.
  AppliedPushes::Usage applied_usage() const { return pushes_.usage(); }

  // Adds what is new in the routing; repeats are harmless. FAILED_PRECONDITION for contradictions.
  absl::StatusOr<muster::ConfigurePsReply> Configure(const muster::ConfigurePsRequest& request);
  // Frames in, a frame out. INVALID_ARGUMENT, OUT_OF_RANGE for bad requests.
  absl::StatusOr<Buffer> Pull(const Buffer& request);
  // Calls `done` once: at once; for a repeat of a push in progress, when that ends; while copies
  // for a save take too much memory, later and from another thread. INVALID_ARGUMENT, OUT_OF_RANGE
  // for bad requests, of which nothing is applied; FAILED_PRECONDITION (ERROR_STALE) below the
  // low-water mark; RESOURCE_EXHAUSTED (IsAppliedFull) without room to remember it.
  void Push(const Buffer& request, std::function<void(absl::StatusOr<muster::PushReply>)> done);
  // Gives a partition a value, once: as Push, with the function and the partition as its identity.
  // INVALID_ARGUMENT for another size than the partition's, for NaN and infinity, and for a place
  // that another variable or value has.
  void Assign(const muster::AssignRequest& request,
              std::function<void(absl::StatusOr<muster::AssignReply>)> done);
  // Blocks until no push below the mark is in progress, as Save and Restore block for their files.
  absl::StatusOr<muster::FenceReply> Fence(const muster::FenceRequest& request);
  // Takes a cut between pushes, which stops them for milliseconds, and writes it while pushes go
  // on. One at a time; repeats of an attempt share its result. ABORTED: a restore or a newer epoch
  // ended it, or memory for what changed meanwhile ran out. RESOURCE_EXHAUSTED (disk full) and what
  // else the file system says; earlier files stay.
  absl::StatusOr<muster::SaveReply> Save(const muster::SaveRequest& request);
  // Replaces the state by the checkpoint's, in context.generation; no files: the initial values;
  // keep_state: by nothing. Ends a save first. A repeat does nothing; something else in the same
  // generation is FAILED_PRECONDITION. DATA_LOSS names a bad file (of those that this server
  // needs), an error for which IsCannotRead holds one that this server cannot open or read; nothing
  // has changed then, except that a server that held nothing but initial values must be restored
  // from something else before it serves.
  absl::StatusOr<muster::RestoreReply> Restore(const muster::RestoreRequest& request);
  absl::StatusOr<muster::PsStatsReply> GetStats(const muster::PsStatsRequest& request);

 private:
  using PushDone = std::function<void(absl::StatusOr<muster::PushReply>)>;

  // Until copies have room, which the writer of a checkpoint makes.
  void WaitForCopies();
  void PushNow(const muster::PushRequest& request, absl::Span<const char> payload,
               const PushDone& done);
  absl::Status ApplyPush(PushPlan* plan, const PushCounts& counts);
  // Applies what has this identity unless it was applied before, and acknowledges it either way;
  // `check` and `apply` as ApplyBehindGate has them. Holds the admission's ticket meanwhile: the
  // caller.
  void ApplyOnce(const PushId& id, const PushCounts& counts,
                 const std::function<absl::Status()>& check,
                 const std::function<absl::Status()>& apply, const PushDone& done);
  // Whether this is the only assignment of its place, or a repeat of it.
  bool ClaimPlace(const muster::AssignRequest& request);
  absl::StatusOr<muster::PushReply> Acknowledge(bool repeated, const PushCounts& counts);
  absl::StatusOr<muster::SaveReply> SaveNow(const muster::SaveRequest& request, Saves::Job* job);
  // The cut, marked, with its memory of applied pushes.
  absl::StatusOr<std::unique_ptr<StoreCut>> TakeCut(const muster::SaveRequest& request,
                                                    CutMemory* memory);
  absl::StatusOr<muster::RestoreReply> LoadState(const muster::RestoreRequest& request,
                                                 bool verify);
  // Adds to an error that this server is the one that has it, and the kind if the error has none.
  absl::Status Detailed(absl::Status status, int64_t step = 0) const;

  const PsServerOptions options_;
  Timer* const pull_timer_;
  Timer* const push_timer_;
  Timer* const push_wait_timer_;
  Counter* const pulled_rows_;
  Counter* const repeated_counter_;
  Timer* const cut_timer_;
  Timer* const save_timer_;
  Timer* const restore_timer_;
  Admission admission_;
  Mutex configure_mutex_;
  uint64_t configured_epoch_ ABSL_GUARDED_BY(configure_mutex_) = 0;
  Store store_;
  AppliedPushes pushes_;
  CutGate gate_;
  CutCopies copies_;
  Saves saves_;
  std::atomic<uint64_t> pulls_{0};
  std::atomic<uint64_t> applied_{0};
  std::atomic<uint64_t> repeated_{0};
  std::atomic<bool> dirty_{false};   // pushes were applied since the last restore
  std::atomic<bool> initial_{true};  // nothing but initial values is lost with the state
  Mutex restore_mutex_;
  muster::RestoreReply restored_ ABSL_GUARDED_BY(restore_mutex_);
  Mutex places_mutex_;
  AssignedPlaces places_ ABSL_GUARDED_BY(places_mutex_);
  ThreadPool waiting_;  // pushes that wait for memory; the last member, so that they end first
};

}  // namespace mu
