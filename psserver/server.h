// A parameter server without its transport: the handlers of the service PsServer
// (proto/psserver.proto), over a store, a memory of applied pushes and the checks of who may call.
//
// Thread safe. Errors: those of Admission (psserver/core/admission.h); otherwise what each handler
// says, with an ErrorDetail of ROLE_PSSERVER.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/env/clock.h"
#include "common/env/work_progress.h"
#include "common/obs/telemetry.h"
#include "common/rpc/thread_pool.h"
#include "common/rpc/transport.h"
#include "proto/psserver.pb.h"
#include "psserver/checkpoint/checkpoint.h"
#include "psserver/compute_threads.h"
#include "psserver/core/server_core.h"
#include "psserver/save_reading.h"
#include "psserver/store/cut_copies.h"
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
  // Memory for values and slots of the job and for views, in bytes: from there on pulls that may
  // create rows are refused, and views that need more. 0: any.
  uint64_t most_values = 0;
  // A save that writes nothing for so long is ended, if pushes wait for its copies.
  absl::Duration most_wait = absl::Seconds(10);
  // Threads for products; 0: as many as the machine has cores, 16 at most.
  int compute_threads = 0;
  // Tests stop calls at these moments: "push" (admitted, about to be applied), "cut" (prepared,
  // about to be taken), "save" (a piece of the cut is about to be read), "round" (about to be
  // applied), "view" (its files are open, about to be read), "view pull" (admitted) and "product"
  // (of one partition, about to be computed).
  std::function<void(absl::string_view moment)> at = [](absl::string_view) {};
};

class PsServer {
 public:
  explicit PsServer(PsServerOptions options = {});
  ~PsServer();  // ends a save; no call is under way

  // Adds the methods "/muster.PsServer/...". The table's server must end before this object does.
  void RegisterMethods(MethodTable* methods);

  // From the membership: what the coordinator said.
  absl::Status SetIdentity(uint64_t job, uint64_t epoch, uint32_t index);
  // False: it can still become another server than it is.
  bool placed() const;
  void RenewLease(int64_t sent_ns, absl::Duration lease, uint64_t least_generation);
  void RaiseLowWater(uint64_t function);
  // Of the memory of applied pushes, for heartbeats. Without what is inherited: files bound that.
  struct AppliedUsage {
    uint64_t bytes = 0;
    uint64_t most_bytes = 0;
  };
  AppliedUsage applied_usage() const;
  // What it holds. Adds to the metrics of its telemetry.
  void AddMetrics(MetricList* list);
  // Of saves, restores, views and Configure, for heartbeats.
  const WorkProgress& progress() const { return progress_; }

  // Adds what is new in the routing; repeats are harmless. FAILED_PRECONDITION for contradictions,
  // unless the coordinator is newer than the one before: then they replace the state, which serves
  // after a restore. RESOURCE_EXHAUSTED (ERROR_USER) for variables that are more than most_values.
  absl::StatusOr<muster::ConfigurePsReply> Configure(const muster::ConfigurePsRequest& request);
  // Frames in, a frame out. INVALID_ARGUMENT, OUT_OF_RANGE for bad requests. RESOURCE_EXHAUSTED
  // (ERROR_USER: no server has more room) if it may create rows and most_values is reached.
  // FAILED_PRECONDITION (ERROR_NOT_INSTALLED) for a view that LoadView has to load first.
  absl::StatusOr<Buffer> Pull(const Buffer& request);
  // The same for the transport: calls `done` once; at once, but with products from another thread.
  // They are not computed if `abandoned` says then that nobody waits for them any more.
  void Pull(const Buffer& request, std::function<bool()> abandoned,
            std::function<void(absl::StatusOr<Buffer>)> done);
  // A frame out, with the rows that exist of a part of a table's partition. INVALID_ARGUMENT for
  // what is not held here.
  absl::StatusOr<Buffer> Scan(const muster::ScanRequest& request);
  // Calls `done` once: at once; for a repeat of a push in progress, when that ends, however long it
  // takes; for gradients that are products, and while copies for a save take too much memory, later
  // and from another thread. INVALID_ARGUMENT, OUT_OF_RANGE
  // for bad requests, of which nothing is applied; FAILED_PRECONDITION (ERROR_STALE) below the
  // low-water mark; ABORTED (ERROR_STALE, IsTooLate) for gradients that are later than the request
  // allows; RESOURCE_EXHAUSTED (IsAppliedFull) without room to remember it.
  // A push that waited is not applied, and products are not computed, if `abandoned` says by then
  // that nobody waits.
  void Push(const Buffer& request, std::function<void(absl::StatusOr<muster::PushReply>)> done,
            std::function<bool()> abandoned = nullptr);
  // Applies the mean of a synchronous round's pushes, which Push has kept, once, and drops what
  // else was kept. FAILED_PRECONDITION (ERROR_STALE) for a round before the last one.
  absl::StatusOr<muster::CommitRoundReply> CommitRound(const muster::CommitRoundRequest& request);
  // Gives a partition, or some rows of it, a value, once: as Push, with the function and the
  // partition as its identity. INVALID_ARGUMENT for a value of another size, for NaN and infinity,
  // and for a place that another variable, table or value has; OUT_OF_RANGE for rows that the
  // partition does not have; RESOURCE_EXHAUSTED as Pull if it may create rows.
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
  // has changed then, unless the server held nothing but initial values, or the file became bad
  // after it was verified: then it must be restored from something else before it serves.
  absl::StatusOr<muster::RestoreReply> Restore(const muster::RestoreRequest& request);
  // Loads a checkpoint's values beside the state, while that goes on and whatever becomes of it:
  // Pull reads them by the view's number, until DropView or a newer coordinator's Configure. Blocks
  // its caller alone, and those that ask for the same view. Errors for files: as Restore, and
  // nothing has changed; RESOURCE_EXHAUSTED (ERROR_USER) beyond most_values; FAILED_PRECONDITION
  // (ERROR_USER) for a view that is another checkpoint's, (ERROR_STALE) for one that was dropped.
  absl::StatusOr<muster::LoadViewReply> LoadView(const muster::LoadViewRequest& request);
  absl::StatusOr<muster::DropViewReply> DropView(const muster::DropViewRequest& request);
  absl::StatusOr<muster::PsStatsReply> GetStats(const muster::PsStatsRequest& request);

 private:
  using PushDone = std::function<void(absl::StatusOr<muster::PushReply>)>;
  // What was admitted; it holds back a restore.
  class UnderWay {
   public:
    explicit UnderWay(PsServer* server) : server_(server) {}
    UnderWay(const UnderWay&) = delete;
    ~UnderWay() { server_->Leave(); }

   private:
    PsServer* const server_;
  };

  // The values that a view reads; pulls under way keep them alive.
  using View = std::shared_ptr<const StoreDirectory>;

  void Leave();
  void CountPull(const muster::PullRequest& request);
  absl::StatusOr<Buffer> PullNow(muster::PullRequest* request, absl::Span<const char> payload);
  absl::StatusOr<Buffer> PullView(muster::PullRequest* request, absl::Span<const char> payload);
  absl::StatusOr<View> LoadValuesOf(const muster::LoadViewRequest& request,
                                    const ViewTable::Load& load);
  // Lets the values of views go that have been dropped.
  void FreeViews();
  // Whether rows may be created.
  absl::Status CheckRoom();
  // Whether variables may be made, with which the state will have `bytes`.
  absl::Status CheckRoomForVariables(uint64_t bytes);
  void OnViewsGivenUp(const char* needed_by);
  // Of a push that belongs to a synchronous round: it is checked and kept.
  void Contribute(const Buffer& frame, const muster::PushRequest& request,
                  absl::Span<const char> payload, const PushDone& done);
  void TakePush(const Buffer& frame, const muster::PushRequest& request,
                absl::Span<const char> payload, const PushDone& done);
  // When one of the threads that compute is free: those of the transport must not be kept.
  void Compute(std::function<void()> task);
  // Until copies have room, which the writer of a checkpoint makes; ends its save if it does not
  // move for most_wait. False: `abandoned` says that nobody waits for the push any more.
  bool WaitForCopies(const std::function<bool()>& abandoned = nullptr);
  void PushNow(const muster::PushRequest& request, absl::Span<const char> payload,
               const PushDone& done);
  // Carries out what was decided. `check` changes nothing, so a cut need not wait for it; `apply`
  // cannot fail.
  void Carry(PushBegun begun, absl::FunctionRef<absl::Status()> check,
             absl::FunctionRef<void(const AdmittedPush&)> apply, const PushDone& done);
  // Waits while a cut is taken. OK: applied, or nothing was to be changed.
  absl::Status Change(AdmittedPush* push, absl::FunctionRef<void(const AdmittedPush&)> apply);
  // Those who wait for a push that has ended, in the order of `ended.waiting`.
  std::vector<PushDone> TakeWaiting(const PushEnded& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(const PushEnded& ended, const std::vector<PushDone>& waiting, const PushDone& done);
  absl::StatusOr<muster::PushReply> ReplyOf(const PushAnswer& answer);
  absl::StatusOr<muster::SaveReply> SaveNow(const muster::SaveRequest& request,
                                            SaveReading* reading);
  // The cut, marked, with its memory of applied pushes.
  absl::StatusOr<std::unique_ptr<StoreCut>> TakeCut(const muster::SaveRequest& request,
                                                    CutMemory* memory);
  // Ends the save, if one runs, and waits until it does not read the store any more. It may go on
  // to wait for its disk.
  void EndReading();
  // What the core says to the request. If the restore has begun: when nothing that was admitted
  // before is under way.
  RestoreTurn BeginRestore(const muster::RestoreRequest& request, bool verified);
  absl::StatusOr<muster::RestoreReply> LoadState(const muster::RestoreRequest& request,
                                                 InheritedMemory* memory, UpdateClocks* clocks);
  int64_t Now() const { return options_.clock->Now(); }
  // Adds to an error that this server is the one that has it, and the kind if the error has none.
  absl::Status Detailed(absl::Status status, int64_t step = 0) const;

  const PsServerOptions options_;
  Timer* const pull_timer_;
  Timer* const push_timer_;
  Timer* const round_timer_;
  Timer* const push_wait_timer_;
  Timer* const compute_wait_timer_;
  Counter* const pulled_rows_;
  Counter* const repeated_counter_;
  Counter* const late_counter_;
  Counter* const judged_counter_;
  Counter* const too_late_counter_;
  Timer* const cut_timer_;
  Timer* const save_timer_;
  Timer* const restore_timer_;
  Timer* const load_view_timer_;
  Mutex configure_mutex_;  // one change of the definitions at a time
  Store store_;
  CutCopies copies_;
  WorkProgress progress_;
  std::atomic<uint64_t> room_checks_{0};
  std::atomic<uint64_t> memory_seen_{0};  // at the last of the checks that counted it
  std::atomic<uint64_t> pulls_{0};
  std::atomic<uint64_t> applied_{0};
  std::atomic<uint64_t> repeated_{0};

  // Held for a decision at a time, and for nothing else.
  mutable Mutex mutex_ ABSL_ACQUIRED_AFTER(configure_mutex_);
  CondVar opened_;   // the gate, for pushes
  CondVar changed_;  // something ended, for fences, cuts, saves and restores
  ServerCore core_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<PsCallId, PushDone> waiting_calls_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<SaveReading> reading_ ABSL_GUARDED_BY(mutex_);  // of the save that runs
  std::map<uint64_t, View> views_ ABSL_GUARDED_BY(mutex_);

  // The last members, so that what they run ends first; those that wait may compute afterwards.
  ComputeThreads compute_;
  ThreadPool waiting_;  // pushes that wait for memory
};

}  // namespace mu
