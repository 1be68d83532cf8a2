// All that the coordinator decides: who belongs to the cluster, which function runs where, what
// follows an error, how cancelling, leaving, saving and restoring exclude each other. It composes
// the state machines of this folder. Pure: events in, actions out; no clock, thread, lock, socket
// or file. The runtime (coordinator/cluster) and the simulation are two shells around it.
//
// Not synchronised. What Step has not answered yet is answered by a later Step; actions refer to
// what the core holds when Step returns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/backoff.h"
#include "common/base/ids.h"
#include "coordinator/core/action.h"
#include "coordinator/core/cancellation.h"
#include "coordinator/core/checkpoint_commit.h"
#include "coordinator/core/dataset_leases.h"
#include "coordinator/core/event.h"
#include "coordinator/core/failure_log.h"
#include "coordinator/core/file_scan.h"
#include "coordinator/core/function_queue.h"
#include "coordinator/core/input_complaints.h"
#include "coordinator/core/installations.h"
#include "coordinator/core/membership.h"
#include "coordinator/core/old_leases.h"
#include "coordinator/core/permission.h"
#include "coordinator/core/recovery.h"
#include "coordinator/core/resumed_steps.h"
#include "coordinator/core/retry_delays.h"
#include "coordinator/core/server_task.h"
#include "coordinator/core/staleness_counts.h"
#include "coordinator/core/update_pause.h"
#include "coordinator/core/views.h"

namespace mu {

class Core {
 public:
  struct Options {
    JobId job;
    CoordinatorEpoch epoch;
    uint32_t servers = 1;
    uint32_t workers = 0;       // that the job was started for
    int in_flight = 2;          // functions per worker
    size_t queue_bound = 1000;  // functions that wait
    absl::Duration heartbeat = absl::Milliseconds(250);
    absl::Duration timeout = absl::Seconds(10);  // of a silent daemon
    BackupRule backup;                           // when what hangs on a worker runs elsewhere too
    absl::Time started;                          // failures count their seconds from then
    absl::Duration scan_patience = absl::Seconds(30);  // with a worker that looks through a file
    Installations::Options installs = {};
  };
  // One incarnation of a worker.
  struct Worker {
    Member member;
    std::map<RunId, FunctionId> runs;  // that have not ended
    std::set<RunId> handed_back;       // of `runs`: they end without all their results
    // Errors of runs that wait for the ends of earlier ones, so that the first one is reported.
    std::map<RunId, event::RunEnded> early_errors;
    std::shared_ptr<const pb::LeaseProto> last_read;  // the lease whose files were last noted
    absl::Time last_news;  // a result, or the start of a run while there was none
    std::vector<CallId> leaving;
    std::string why_it_leaves;
    absl::Time leaves_by = absl::InfiniteFuture();
    uint64_t functions_done = 0, steps_done = 0;
  };
  explicit Core(Options options);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Appends what is to be done, in this order.
  void Step(absl::Time now, Event event, Actions* actions);
  absl::Time alarm() const;  // when Step wants a Tick at the latest

  // Data.
  const DatasetLeases* leases(uint64_t dataset) const;  // null: there is none
  const std::map<uint64_t, DatasetLeases>& datasets() const { return leases_; }
  // The lease that a worker will probably read after those it has; null: none, or not yet.
  std::shared_ptr<const pb::LeaseProto> UpcomingLease(uint64_t dataset, WorkerId worker);
  std::vector<pb::DatasetPositionProto> DataPositions() const;  // that checkpoints hold
  JobPosition PositionAfterCuts() const;  // at the end of a checkpoint's saves

  // What is.
  const Membership& membership() const { return membership_; }
  const FunctionQueue& queue() const { return queue_; }
  const FailureLog& failures() const { return failures_; }
  const StalenessCounts& staleness() const { return staleness_; }
  const RoundCounts& rounds() const { return round_counts_; }
  const std::vector<std::string>& warnings() const { return warnings_; }  // for the user, each once
  const Recovery& recovery() const { return recovery_; }
  const std::map<WorkerId, Worker>& workers() const { return workers_; }
  const Installations& installations() const { return installations_; }
  // OK: not yet; CANCELLED after event::Close.
  absl::Status ended() const;
  bool closed() const { return closed_; }
  bool cancelling() const { return cancellation_.under_way(); }
  // A synchronous round has its set, and not all servers have said that they have applied it.
  bool round_decided() const { return !round_set_.empty(); }
  // An error is being dealt with: what callers are told comes at its end.
  bool settling() const { return cancelling() && !closed_; }
  bool recovery_enabled() const { return recovery_enabled_; }
  bool servers_configured() const { return configured_.has_value(); }
  uint64_t trained_steps() const { return trained_steps_; }
  uint64_t trained_samples() const { return trained_samples_; }
  // Servers have one state and take updates.
  bool serving() const;
  // Nothing of the group that a caller waits for is queued, runs, or may run again.
  bool done(GroupId group = GroupId()) const;
  // Functions that change parameters wait, or would if so many more bytes were kept for repeats.
  bool updates_paused(size_t more = 0) const { return update_pause_.paused(more) && ended().ok(); }
  // NoRoomToAssign if an assignment would wait for room that nobody makes, `more` bytes after
  // others. `waits_for_room`: see ServerTask.
  absl::Status RoomToAssign(const std::string& name, bool waits_for_room, size_t more = 0) const;
  // No function runs there any more, see input_complaints.h.
  bool IsAside(WorkerId worker) const { return inputs_.IsAside(worker); }
  bool leaving(uint32_t server) const { return leaving_.contains(server); }
  // A checkpoint or a repeated assignment is still to come before the state is what users expect.
  bool whole() const;
  bool loading() const;  // a caller wants other values, and waits for them
  // Of a call of a function. `unseen`: its group's error, which refuses it if nobody has seen it.
  Permission MaySchedule(const FunctionWork& work,
                         const absl::Status& unseen = absl::OkStatus()) const;
  // Of rounds by other rules than before: FAILED_PRECONDITION while functions are unfinished;
  // INVALID_ARGUMENT with recovery of single servers.
  Permission MaySetRounds(const RoundRules& rules) const;
  // Of what needs the end of training: it waits for what is repeated or cancelled.
  // FAILED_PRECONDITION while functions of training are unfinished.
  Permission TrainingIsOver() const;
  // Of a new epoch of this dataset: FAILED_PRECONDITION while functions that read it are
  // unfinished.
  Permission MayStartEpoch(uint64_t dataset) const;
  // Nothing of training runs, or will run again by itself.
  bool quiet() const;
  const Views& views() const { return views_; }
  FunctionId low_water() const { return queue_.low_water(); }
  int64_t rolled_back() const { return failures_.rolled_back(); }
  Generation least_generation() const { return std::max(generation_, recovery_.generation()); }
  Generation generation() const { return generation_; }  // of the routing
  // A coordinator of a newer epoch has taken over: this one must not write or delete anything.
  bool superseded() const { return newest_epoch_ > options_.epoch; }
  // Why a worker refused this function; OK: none did.
  absl::Status RefusalOf(Fingerprint function) const;

 private:
  template <typename A>
  void Do(A action) {
    actions_->push_back(std::move(action));
  }
  using Level = action::Note::Level;
  template <typename... Parts>
  void Note(Level level, const Parts&... parts) {
    Do(action::Note{level, absl::StrCat(parts...)});
  }
  double Seconds() const { return absl::ToDoubleSeconds(now_ - options_.started); }

  void On(event::Tick&);
  void On(event::Register& e);
  void On(event::Heartbeat& e);
  void On(event::Leave& e);
  void On(event::DaemonDied& e);
  void On(event::EpochSeen& e) { NoteEpoch(e.epoch); }
  void On(event::CatalogChanged& e);
  void On(event::Installed& e);
  void On(event::DatasetAdded& e);
  void On(event::EpochStarted& e);
  void On(event::PlanMade& e);
  void On(event::ScanWanted& e);
  void On(event::Scanned& e);
  void On(event::Schedule& e);
  void On(event::Results& e);
  void On(event::RunEnded& e);
  void On(event::Unreadable& e);
  void On(event::GroupMade& e);
  void On(event::GroupDropped& e);
  void On(event::CancelGroup& e);
  void On(event::ViewAnswered& e);
  void On(event::CancelEverything&) { BeginCancel(absl::OkStatus()); }
  void On(event::WorkerCancelled& e);
  void On(event::Fenced& e);
  void On(event::Fail& e) { End(std::move(e.error)); }
  void On(event::Close& e);
  void On(event::EnableRecovery& e);
  void On(event::TaskWanted& e);
  void On(event::TasksGivenUp& e);
  void On(event::Configured& e);
  void On(event::Assigned& e);
  void On(event::Loaded& e);
  void On(event::Restored& e);
  void On(event::FilesSeen& e);
  void On(event::Saved& e) { Act(commit_.Saved(e.checkpoint, e.status)); }
  void On(event::ManifestWritten& e) { Act(commit_.ManifestWritten(e.checkpoint, e.status)); }
  void On(event::MostKept& e);
  void On(event::BoundStaleness& e);
  void On(event::SetRounds& e);
  void On(event::NothingMore&) { nothing_more_ = true; }
  void On(event::RoundCommitted& e);

  // Members.
  Worker* Find(WorkerId worker, Incarnation incarnation);
  absl::Duration HeartbeatInterval() const;
  // Installs what the worker lacks, when its turn comes, unless that is under way or no use.
  void InstallOn(WorkerId id);
  void InstallFailed(const Worker& worker, absl::Time sent, const CallError& error);
  void FunctionRefused(WorkerId worker, Fingerprint function, const absl::Status& error);
  void ServerLeaves(event::Leave& e);
  void LeaveIfIdle(WorkerId id);
  void Remove(const Member& member, const std::string& kind, const std::string& message);
  void Lose(const Member& member, const std::string& kind, const std::string& message);
  void LoseWorker(const Member& member, const std::string& kind, const std::string& message);
  void LoseServer(const Member& member, const std::string& kind, const std::string& message);
  void AnswerLeaving(uint32_t server);
  void NoteEpoch(CoordinatorEpoch epoch);

  // Functions.
  std::optional<std::vector<BatchRange>> TakeBatches(uint64_t dataset, WorkerId worker,
                                                     uint32_t steps);
  // Who has the lease that this worker reads: where all read one lease, nobody.
  WorkerId ReaderFor(WorkerId worker) const {
    return queue_.rounds().one_lease() ? WorkerId(~uint32_t{0}) : worker;
  }
  absl::Status OutOfData(uint64_t dataset) const;
  void Dispatch();
  void StartBackups();
  void RunOver(const event::RunEnded& e, Worker* worker);
  // The run goes back to the queue, or is over if all its results have come.
  void RunAgain(const StartRun& start, FunctionQueue::Ended ended);
  // A run's results up to this step say that its worker has read the files of the step's lease.
  void NoteRead(Worker* worker, const FunctionQueue::Function& function, uint32_t step);
  // A worker cannot read a file of this dataset, or cannot do what others may. Sets the worker
  // aside if that is where the fault is. The error that the work ends with, or OK: it is to be
  // tried again.
  absl::Status WorkerCannot(const Worker& worker, uint64_t dataset, const CallError& why);
  void SetAside(const Worker& worker, const absl::Status& why);
  void DriveScans();
  void EndScan(ScanId id, const absl::Status& status);
  void EndScans(const absl::Status& status);
  void Unreadable(const StartRun& start, const std::string& what);
  void FailIfDeadly(const Member& member, const std::string& message);
  void FailFunction(FunctionId id, RunId run, absl::Status error);
  void Finish(FunctionId id, absl::Status status);
  void CountResult(const StartRun& start, const StepOutcome& step, bool delivered);
  std::string NameOf(FunctionId id) const;
  void StopRuns();

  // Groups beside training (core_groups.cc).
  // INVALID_ARGUMENT for a function of a group that changes state, or of a group that is over; the
  // error of a view that cannot be loaded.
  absl::Status GroupRefuses(const FunctionWork& work) const;
  struct Group {
    ViewId view;
    absl::Status unusable;  // its view cannot be loaded
  };
  void EndFunctionsOf(GroupId group, const absl::Status& why);
  void EndAllGroups(const absl::Status& why);
  void FailGroup(GroupId group, absl::Status error);
  void FailGroupsOf(ViewId view, const absl::Status& error);
  // Whether functions that read what this one reads may start.
  bool MayStart(const FunctionWork& work) const;
  void DriveViews();

  // Synchronous rounds (core_rounds.cc). A contribution that is complete.
  struct Contribution {
    StartRun start;
    StepOutcome outcome;
    uint32_t weight = 0;
  };
  // True: the step contributes to a round, and all that follows from its result has been done.
  bool TakeContribution(const StartRun& start, const StepOutcome& step, size_t result);
  void DriveRounds();
  bool SkipsRounds() const;  // servers do not know yet that the open round is their next one
  void DecideRound();
  void FinishRound(const std::vector<uint32_t>& updates);
  // A decided round is open again: the servers are to go back, or to end.
  void GiveUpRound();
  void CancelRestOfRound();

  // Cancelling, errors, the end.
  void BeginCancel(absl::Status error);
  void FenceWhenWorkersAreQuiet();
  void Fence();
  bool RefusesWhatWasCancelled() const;
  void End(absl::Status error);

  // Servers' state.
  bool OpensRecovery();
  void Act(const Recovery::Actions& actions);
  void Act(const CheckpointCommit::Next& next);
  void Act(UpdatePause::Change change);
  void NoteKept() { Act(update_pause_.CoordinatorKeeps({queue_.kept_bytes(), most_kept_})); }
  void LetGo(uint32_t server);
  // Takes a server out of the cluster for good; another process may take its place.
  void Expel(uint32_t server, const absl::Status& error, const std::string& kind = "cannot_read");
  void FinishRestore();

  // Tasks (core_tasks.cc).
  struct Task {
    ServerTask what;
    int tries = 0, failures = 0;  // failures: also those that are no try, in a row
    absl::Time not_before = absl::InfinitePast();
    FunctionId place;  // of an assignment, of all tries
  };
  // What is under way. Whatever else the servers are asked waits for its end; a lost server ends it
  // here, and what still comes of it is ignored.
  struct Work {
    enum class Kind { kNone, kConfigure, kAssign, kRepeatAssignment, kLoad, kSave, kCommitRound };
    Kind kind = Kind::kNone;
    uint64_t attempt = 0;
    TaskId task;  // 0: nobody's
    Generation generation;
    CheckpointNumber point;   // kLoad, kSave
    bool asked = false;       // kLoad: servers are, since its files are there
    uint64_t parameters = 0;  // that servers are given, or had
    uint64_t round = 0;       // kCommitRound
  };
  void BeginWork(Work::Kind kind, TaskId task);
  Work EndWork();
  void DelayWork() { work_again_at_ = now_ + delays_.After(++work_failures_); }
  bool Waits(uint64_t attempt) const {
    return work_.kind != Work::Kind::kNone && work_.attempt == attempt;
  }
  // False: it was not a load, so the servers hold what they did.
  bool VoidWork();
  void DoTasks();
  void AnswerReady();  // who waits for no more than that
  bool MayBegin(const Task& task) const;
  bool WaitsForRepeats(const Task& task) const;
  void Begin(TaskId id, Task* task);
  void Configure();
  bool RepeatAssignment();
  void BeginCheckpoint(TaskId task);
  void CheckpointEnded(const absl::Status& status);
  CheckpointNumber OldestPoint() const;
  Task* FindTask(TaskId id);
  void Answer(TaskId id, const absl::Status& status);
  void AnswerAll(const absl::Status& status);
  void TryAgain(TaskId id, const CallError& error, bool counts = true);
  // Some servers may hold what was being loaded, others not: until they go back or are reset.
  void StateBroken();
  bool state_broken() const { return reset_servers_ && configured_.has_value(); }
  // A server could not read a checkpoint's files. What follows is decided when the coordinator has
  // looked at them.
  using Unread = std::variant<event::Loaded, event::Restored>;
  void LookFirst(action::LookAtFiles look, Unread unread);
  void AssignmentRepeated(const CallError& error);
  // Whether the job can take this over: it has not begun, its data is the same.
  absl::Status Fits(const ResumePoint& point) const;
  void TakeOver(const Work& work, const std::vector<uint64_t>& updates, const ResumePoint& point);
  bool AllServersAreThere() const {
    return membership_.Count(pb::ROLE_PSSERVER) == options_.servers;
  }
  // One that no server's state has been in, and that none has been asked to take.
  Generation NextGeneration();
  Generation FirstGeneration() const;  // whatever older coordinators gave out is smaller

  const Options options_;
  absl::Time now_;
  absl::Time awake_since_ = absl::InfinitePast();  // this process stood still for long, until then
  Actions* actions_ = nullptr;                     // of the current Step
  bool dispatch_ = false;                          // at its end
  bool install_ = false;                           // before that: what workers lack
  bool scan_ = false;                              // somebody may be given files to look through

  Membership membership_;
  std::map<WorkerId, Worker> workers_;
  std::set<WorkerId> workers_leaving_;               // those with `leaving`
  std::map<uint32_t, std::vector<CallId>> leaving_;  // servers
  CoordinatorEpoch newest_epoch_;
  Installations installations_;
  Generation generation_;  // of the routing that workers are given

  FunctionQueue queue_;
  std::map<uint64_t, DatasetLeases> leases_;
  std::map<Fingerprint, absl::Status> refused_;  // functions that a worker found wrong
  // Datasets of functions that change state: checkpoints hold their positions.
  std::set<uint64_t> trained_on_;
  uint64_t trained_steps_ = 0, trained_samples_ = 0;  // of functions that change state
  ResumedSteps resumed_steps_;
  FailureLog failures_;
  StalenessCounts staleness_;
  InputComplaints inputs_;
  struct Scan {
    std::shared_ptr<const pb::DatasetProto> dataset;
    FileScan files;
  };
  std::map<ScanId, Scan> scans_;
  std::map<FunctionId, Contribution> contributions_;  // of the open round, but for its set
  std::vector<Contribution> round_set_;  // of the decided round, in the order of the data; or empty
  bool nothing_more_ = false, warned_of_few_workers_ = false, cancelled_ = false;
  std::vector<std::string> warnings_;
  AppliedRound applied_round_;
  RoundCounts round_counts_;
  std::map<GroupId, Group> groups_;
  Views views_;
  Cancellation cancellation_;
  absl::Status ended_;
  bool closed_ = false, dismissed_ = false;  // dismissed: daemons are to end
  bool recovery_enabled_ = false;
  Recovery recovery_{Recovery::Options{}};
  std::optional<Generation> configured_;  // servers have their parameters, first in this generation
  Generation given_;                      // the newest of NextGeneration
  bool leave_opened_ = false;             // dispatch is paused for a leave; nothing was lost since
  absl::Status round_error_;              // of the last round that failed
  absl::Time retry_at_ = absl::InfiniteFuture();
  Backoff between_rounds_;  // since the servers last served
  RetryDelays delays_;
  OldLeases old_leases_;
  std::optional<event::Restored> restored_;  // held back until they have ended
  std::optional<Unread> unread_;             // see LookFirst
  Generation unread_generation_;

  CheckpointCommit commit_;
  FunctionQueue::Position begun_;  // of the checkpoint under way
  JobPosition begun_job_;

  UpdatePause update_pause_;
  uint64_t most_kept_ = 0;  // bytes; 0: any amount

  std::map<TaskId, Task> tasks_;  // oldest first
  Work work_;
  uint64_t attempts_ = 0;
  absl::Time work_again_at_ = absl::InfinitePast();
  int configure_tries_ = 0, work_failures_ = 0;  // in a row
  std::vector<event::Leave> leaves_;             // of servers, that wait for the end of the work
  bool leave_wanted_ = false;                    // a checkpoint before a server leaves
  struct LeaveSaved {
    std::optional<CheckpointNumber> checkpoint;  // none: it failed
  };
  std::optional<LeaveSaved> leave_saved_;  // that one has ended
  action::Restore round_;                  // the last
  uint64_t round_parameters_ = 0;          // what its servers were given
  // Variables and tables, as CatalogChanged counts them: created, and known to the servers.
  uint64_t parameters_ = 0;
  std::optional<uint64_t> parameters_configured_;
  bool reset_servers_;  // they may hold what an older coordinator or a load left
  CheckpointNumber last_checkpoint_;
};

}  // namespace mu
