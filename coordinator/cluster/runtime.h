// The shell around the coordinator's core: the loop, calls and the values of functions. It brings
// events to the core and carries out its actions; it decides nothing. Thread safe.
//
// Everything that changes does so in the loop: on its thread, or on that of a caller or a message
// that would otherwise wait for it (loop.h). Work that blocks runs on threads of its own, which
// post an event at its end.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/obs/telemetry.h"
#include "common/rpc/resumable_end.h"
#include "common/rpc/transport.h"
#include "coordinator/cluster/catalog.h"
#include "coordinator/cluster/epoch_watcher.h"
#include "coordinator/cluster/expected_jobs.h"
#include "coordinator/cluster/function_spans.h"
#include "coordinator/cluster/job_checkpoints.h"
#include "coordinator/cluster/job_thread.h"
#include "coordinator/cluster/loop.h"
#include "coordinator/cluster/published_counts.h"
#include "coordinator/cluster/remote_value.h"
#include "coordinator/cluster/runtime_counters.h"
#include "coordinator/cluster/runtime_types.h"
#include "coordinator/cluster/server_api.h"
#include "coordinator/cluster/worker_link.h"
#include "coordinator/core/core.h"
#include "coordinator/core/permission.h"
#include "coordinator/core/unseen_errors.h"
#include "proto/worker.pb.h"

namespace mu {

class Runtime {
 public:
  struct Options {
    Transport* transport = nullptr;  // outlives the runtime
    std::string listen = "127.0.0.1:0";
    std::string job_name;
    JobId job;
    CoordinatorEpoch epoch;
    uint32_t servers = 1;
    uint32_t workers = 0;       // that the job was started for; for those who look at it
    int in_flight = 2;          // functions per worker
    size_t queue_bound = 1000;  // functions that wait; Schedule blocks beyond it
    absl::Duration heartbeat = absl::Milliseconds(250);
    absl::Duration timeout = absl::Seconds(10);
    BackupRule backup;                             // when what hangs on a worker runs elsewhere too
    Telemetry* telemetry = &Telemetry::Process();  // its spans go there
    ServerApi* server_api = nullptr;               // outlives the runtime
    JobCheckpoints* checkpoints = nullptr;         // the same
    // Of a call of a function, with its leases; larger ones fail.
    uint64_t most_run_bytes =
        static_cast<uint64_t>(TransportOptions().max_message_bytes) - kMessageOverhead;
    uint64_t job_fingerprint = 0;  // of what the job is, for checkpoints; 0: not known
    absl::Duration start_timeout = absl::Seconds(60);  // of servers
    Placement placement = PlaceByBytes{};              // of partitions on servers
    // The newest epoch that a coordinator of this job has claimed; none: nobody else can be.
    std::function<uint64_t()> newest_epoch;
  };
  // UNAVAILABLE if the address is in use.
  static absl::StatusOr<std::unique_ptr<Runtime>> Start(Options options);
  ~Runtime();  // Stop()
  // Everything unfinished ends CANCELLED; nothing is started any more, daemons may still take their
  // leave.
  void Close() { Close(/*dismiss=*/false); }
  // The job is over: Close(), and daemons are told to end. Waits until they have taken their leave,
  // at most until one that is silent would count as lost.
  void Dismiss();
  // Close(), and all threads have ended: no hook is called any more.
  void Stop();

  std::string address() const { return server_->address(); }
  const Options& options() const { return options_; }

  // DEADLINE_EXCEEDED with how many have come, or the error of a daemon that could not start.
  absl::Status WaitFor(pb::Role role, size_t count, absl::Duration timeout);
  std::vector<Member> Servers() const {
    return Look([](const Core& core) { return core.membership().Servers(); });
  }

  // Runs `change` on the loop; workers are then sent what is new.
  void ChangeCatalog(const std::function<void(Catalog&)>& change);
  pb::RequestContext Context() const;
  pb::RoutingProto Created() const;  // see Catalog

  // Finds how many records these files of a dataset (indices in its `files`) have, and where, on
  // the workers. `found` is called on this thread, file by file as the answers come.
  absl::Status ScanFiles(const pb::DatasetProto& dataset, const std::vector<size_t>& files,
                         const std::function<void(size_t file, pb::ScanFileReply reply)>& found);
  // Makes the plan of an epoch, on this thread; what frees it is another.
  absl::StatusOr<DataLeases::Plan> MakePlan(const DataLayout& data, uint64_t epoch);
  void AddDataset(DataLayout data, DataLeases::Plan first);
  // See Coordinator::StartEpoch.
  absl::Status StartEpoch(uint64_t dataset, uint64_t epoch, DataLeases::Plan plan,
                          const std::atomic<int>* stop = nullptr);
  // How far a dataset has been handed out. Without a plan if there is none of this id, and if every
  // worker reads it by itself: then `taken` says how far.
  struct Handed {
    uint64_t epoch = 0;
    uint64_t left = 0;     // batches of this epoch
    uint64_t unbound = 0;  // steps of functions that will take batches
    DataLeases::Plan plan;
    uint64_t taken = 0;  // DatasetLeases::steps_taken
  };
  Handed HandedOut(uint64_t dataset) const;

  // With `user_state`, SetUserState at the same instant.
  RemoteValue Schedule(FunctionWork work, std::vector<std::string> return_names,
                       std::optional<std::string> user_state = std::nullopt);
  // A call that cannot be made: its error is reported like a function's, by the value or by the
  // next Join or Done, of its group.
  RemoteValue Refuse(absl::Status error, GroupId group = GroupId());
  // With which Schedule refuses a call until somebody has seen it; OK: there is none.
  absl::Status unseen_error(GroupId group);
  absl::Status Join();
  absl::StatusOr<bool> Done();
  // Cancels what is queued and running, as after an error, and waits until nothing is left.
  void CancelEverything();
  // Groups beside training. `files`: null: the current values. Their Cancel waits for no worker.
  GroupId MakeGroup(std::shared_ptr<const ViewFiles> files);
  void DropGroup(GroupId group);
  absl::Status Join(GroupId group);
  void Cancel(GroupId group);
  // The cluster cannot go on (a server is lost, a daemon cannot start): every call fails with
  // `error` from now on.
  void Fail(absl::Status error);
  // That error, or CANCELLED after Close().
  absl::Status ended() const {
    return Look([](const Core& core) { return core.ended(); });
  }

  // Called, on a thread of the runtime, when a daemon has sent no heartbeat for the timeout; it may
  // come back.
  void SetOnSilent(std::function<void(const Member&)> on_silent);
  bool IsMember(int64_t pid) const;
  // The process of a daemon is known to be dead; `message` (its last lines) goes into the errors.
  void DaemonDied(int64_t pid, const std::string& message);

  // Waits for nobody, and may be a moment behind what else this thread has heard.
  RuntimeCounts Counts() const { return published_.Read(); }
  RuntimeStats Stats() const;
  pb::GetStatusReply Status() const;
  void SetPhase(std::string phase);
  // Of this job; what only counts up is in the telemetry.
  void AddMetrics(MetricList* list) const;
  // Where every process of the job serves metrics, `own` for this one (a URL), as Prometheus'
  // http_sd has it.
  std::string MetricTargets(const std::string& own) const;
  std::vector<std::shared_ptr<WorkerLink>> Workers() const;
  std::shared_ptr<Channel> ChannelTo(const std::string& address) {
    return options_.transport->Connect(address, pb::ROLE_PSSERVER);
  }

  // From now on a lost server does not end the job, see recovery.h. Functions that change state and
  // were scheduled before are not repeated: without a checkpoint there is then nothing to go back
  // to.
  void EnableRecovery(RecoveryMode mode);
  // Waits until the task is done, however often servers have to be recovered meanwhile. Its error,
  // or that with which everything has ended.
  absl::Status Run(ServerTask task, const std::shared_ptr<TaskState>& state);
  // See event::TasksGivenUp.
  void GiveUpTasks(absl::Status error);
  // Waits until the servers have all that was created, and serve. DEADLINE_EXCEEDED if not all have
  // come at the start.
  absl::Status EnsureServers();
  // The same, and if all of training has finished, waits while functions run again since servers
  // were lost. Returns the generation of the servers' state.
  absl::StatusOr<uint64_t> EnsureWhole();
  // Waits while functions that have finished are being repeated. FAILED_PRECONDITION if there are
  // others of training. Those of groups are no matter: a load waits for them.
  absl::Status WaitForRepeats();
  // A function that changes state was scheduled, or Resume has told where the job stands: its state
  // is more than initial values. Once true, true.
  bool begun() const {
    return Look([](const Core& core) { return core.queue().begun(); });
  }
  // Functions that change parameters wait (update_pause.h): memory for what checkpoints do not hold
  // runs out.
  bool updates_paused() const {
    return Look([](const Core& core) { return core.updates_paused(); });
  }
  // See Core.
  absl::Status RoomToAssign(const std::string& name, bool waits_for_room, uint64_t more) const {
    return Look([&](const Core& core) { return core.RoomToAssign(name, waits_for_room, more); });
  }
  // Finished functions that a lost server would make run again, and what keeping them takes.
  size_t uncovered_functions() const {
    return Look([](const Core& core) { return core.queue().uncovered(); });
  }
  uint64_t uncovered_bytes() const {
    return Look([](const Core& core) { return core.queue().uncovered_bytes(); });
  }
  // How much may be kept for repeats before functions that change parameters wait, and assignments
  // with them; 0, the default: any amount, for programs that take their checkpoints themselves.
  void SetMostKept(uint64_t bytes) { PostStep(event::MostKept{bytes}); }
  // See Coordinator::BoundStaleness.
  void BoundStaleness(std::optional<uint64_t> steps) { PostStep(event::BoundStaleness{steps}); }
  // See Coordinator::SynchronousRounds. Waits as WaitForRepeats does.
  absl::Status SetRounds(const RoundRules& rules);
  RoundRules rounds() const {
    return Look([](const Core& core) { return core.queue().rounds(); });
  }
  // Whoever schedules waits for what there is: a round need not wait for more. A note; until the
  // next Schedule.
  void NothingMore() {
    if (synchronous_) PostStep(event::NothingMore{});
  }
  // What a restarted program is told; a checkpoint's position carries the newest. See Schedule.
  void SetUserState(std::string state);
  // What a job continues after that stopped in state->manifest: fills in what is unfinished.
  // INVALID_ARGUMENT if it does not fit what was defined.
  absl::Status PrepareResume(TaskState* state, std::vector<ResumePoint::Data> data);
  // For Run: a checkpoint in the next numbered folder, which is emptied if it fails.
  std::shared_ptr<TaskState> NumberedCheckpoint();
  // A coordinator of a newer epoch has taken over. Asks the job's directory, too: this process may
  // have been stopped for a while.
  bool IsSuperseded();

 private:
  explicit Runtime(Options options);
  // What `look` sees in the core.
  template <typename F>
  std::invoke_result_t<const F&, const Core&> Look(const F& look) const {
    return loop_.Ask([&] {
      loop_.AssertHeld();
      return look(core_);
    });
  }
  void Close(bool dismiss);
  MethodTable Methods();
  template <typename Request>
  Handler AnsweredOnLoop(void (Runtime::*answer)(std::shared_ptr<ServerCall>, Request));
  // A call of a daemon that the core answers, as an event of type E.
  template <typename E, typename Request>
  void AskCore(std::shared_ptr<ServerCall> call, Request request);
  void AnswerStatus(std::shared_ptr<ServerCall> call, pb::GetStatusRequest);
  void Answer(CallId id, const absl::Status& status, const google::protobuf::Message& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);

  // The core is told, and what it wants is done.
  void Step(Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void PostStep(Event event);
  // Whether there was more than answers and single results.
  bool Execute(Actions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::AnswerRegister& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::AnswerHeartbeat& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::AnswerLeave& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::MemberJoined& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::MemberLost& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Install& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::MakePlan& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::ScanFiles& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::FileCounts& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::ScanDone& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Scheduled& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Start& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::StopRun& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Deliver& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::KeepResult& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::DeliverKept& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::CommitRound& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Finish& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::GroupFailed& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::LoadView& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::DropView& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::ViewUnused& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::CancelOnWorkers& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::FenceServers& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Cancelled& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::InterruptServers& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Paused& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Restore& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Serving& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::TaskDone& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Configure& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Assign& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::LookAtFiles& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::CheckpointBad& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Load& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::UseRouting&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Save& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::WriteManifest& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Committed& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Aborted& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Do(action::Note& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);

  void Deliver(FunctionId function, const pb::StepResult& step, FunctionResult::Step values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);

  // Files that workers look through for a caller.
  struct Scan {
    std::shared_ptr<const pb::DatasetProto> dataset;
    std::set<std::shared_ptr<WorkerLink>> installed;            // that have the dataset
    std::vector<std::pair<uint32_t, pb::ScanFileReply>> found;  // and not taken by the caller yet
    std::map<uint64_t, std::shared_ptr<ClientCall>> calls;      // under way, by their numbers
    uint64_t last_call = 0;
    bool done = false;
    absl::Status status;
  };
  template <typename Reply, typename Request>
  void CallForScan(const action::ScanFiles& part, const std::shared_ptr<WorkerLink>& link,
                   const char* method, const Request& request, absl::Duration timeout,
                   std::function<void(absl::StatusOr<Reply>&)> done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  // Asks the worker for this file.
  void ScanFile(const action::ScanFiles& part, const std::shared_ptr<WorkerLink>& link,
                uint32_t file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  // The stream to a worker. Replies are parsed on the transport's threads.
  struct Arrived {
    pb::RunReply reply;
    std::vector<StepOutcome> outcomes;
    std::vector<FunctionResult::Step> values;
    std::string unreadable;           // what is wrong with it
    std::optional<absl::Status> end;  // of the run
  };
  void OpenFeed(const std::shared_ptr<WorkerLink>& link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void OnFeedReply(const std::weak_ptr<WorkerLink>& link, const pb::FeedReply& reply);
  void OnFeedEnded(const std::shared_ptr<WorkerLink>& link, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Take(WorkerLink& link, Arrived* arrived) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void OnRunEnded(const StartRun& start, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  // The end of a run that no message tells of, after what is being done.
  void PostRunEnded(const StartRun& start, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void PostEnd(const StartRun& start, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void OnCancelled(WorkerId worker, Incarnation incarnation, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Drop(const std::shared_ptr<WorkerLink>& link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  // A call to all servers that gives them all that was created until now, in this generation.
  absl::StatusOr<ServerApi::Call> NewRoutingCall(Generation generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  // One to servers in this generation.
  ServerApi::Call NewCall(Generation generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  // From whichever thread: it has ended, with this.
  void EndCall(const ServerApi::Call& call, Event event);
  // On a thread that may block.
  CallError RestoreFrom(const ServerApi::Call& call, const std::string& folder,
                        std::shared_ptr<const pb::TakenValuesProto> take,
                        const std::vector<bool>& keep, std::vector<uint64_t>* updates);
  absl::Status SaveFiles(const ServerApi::Call& call, TaskState* state);
  // The position and the user's state. Of one moment: a call that is scheduled with a state is in
  // both or in neither.
  void AddPosition(pb::CheckpointProto* manifest) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void StepCatalogChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  absl::Time Alarm() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void OnAlarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  pb::RequestContext ContextNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  // Those who wait for the same wait in turns.
  enum Turn : Loop::Turn { kSchedule, kJoin, kRepeats, kCancelled, kGroups };
  // Of a group, for kSchedule and kJoin: it waits for no other group.
  static Loop::Turn TurnOf(GroupId group, Turn turn);
  // Makes the attempt on the loop, again while it waits for functions that are repeated. Its error.
  absl::Status AfterRepeats(const std::function<Permission()>& attempt);
  absl::StatusOr<uint64_t> EnsureReady(bool after_repeats);
  bool TryJoin(GroupId group, absl::Status* result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  void Want(ServerTask task, const std::shared_ptr<TaskState>& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  absl::Status EndOf(const std::shared_ptr<TaskState>& state);  // waits for it
  absl::Status PrepareResumeNow(TaskState* state, std::vector<ResumePoint::Data> data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  pb::GetStatusReply StatusNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);
  RuntimeCounts CountsNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_);

  const Options options_;
  const absl::Time started_;
  const RuntimeCounters counters_;

  // Makes and frees plans of epochs, which takes long if there are many blocks. Outlives them.
  JobThread plans_;
  mutable Loop loop_;
  ExpectedJobs expected_{&loop_};  // of calls and streams to workers
  Core core_ ABSL_GUARDED_BY(loop_);
  Catalog catalog_ ABSL_GUARDED_BY(loop_);
  std::map<FunctionId, std::shared_ptr<FunctionState>> states_ ABSL_GUARDED_BY(loop_);
  std::map<WorkerId, std::shared_ptr<WorkerLink>> links_ ABSL_GUARDED_BY(loop_);
  UnseenErrors<PendingError> errors_ ABSL_GUARDED_BY(loop_);
  std::map<ViewId, std::shared_ptr<const ViewFiles>> views_ ABSL_GUARDED_BY(loop_);
  GroupId last_group_ ABSL_GUARDED_BY(loop_);
  std::function<void(const Member&)> on_silent_ ABSL_GUARDED_BY(loop_);
  std::string user_state_ ABSL_GUARDED_BY(loop_);
  std::map<TaskId, std::shared_ptr<TaskState>> tasks_ ABSL_GUARDED_BY(loop_);
  TaskId last_task_ ABSL_GUARDED_BY(loop_);
  std::map<ScanId, std::shared_ptr<Scan>> scans_ ABSL_GUARDED_BY(loop_);
  ScanId last_scan_ ABSL_GUARDED_BY(loop_);
  std::shared_ptr<TaskState> saving_ ABSL_GUARDED_BY(loop_);  // the checkpoint under way
  std::shared_ptr<PsCallGroup> save_ ABSL_GUARDED_BY(loop_);  // its calls
  std::set<std::shared_ptr<PsCallGroup>> calls_to_servers_ ABSL_GUARDED_BY(loop_);

  std::deque<Event> events_ ABSL_GUARDED_BY(loop_);  // that the core has not been told of
  bool stepping_ ABSL_GUARDED_BY(loop_) = false;
  // Of the Step under way: what its actions refer to.
  pb::ScanFileReply* scanned_ ABSL_GUARDED_BY(loop_) = nullptr;
  struct Scheduling {
    std::string name;
    std::shared_ptr<FunctionState> state;
    FunctionId id;
  } * scheduling_ ABSL_GUARDED_BY(loop_) = nullptr;
  Arrived* arrived_ ABSL_GUARDED_BY(loop_) = nullptr;
  // Of steps whose synchronous round is not committed yet.
  std::map<FunctionId, std::pair<pb::StepResult, FunctionResult::Step>> kept_results_
      ABSL_GUARDED_BY(loop_);
  CallId next_call_ ABSL_GUARDED_BY(loop_);
  std::map<CallId, std::shared_ptr<ServerCall>> calls_ ABSL_GUARDED_BY(loop_);  // of daemons
  absl::Time next_beat_ ABSL_GUARDED_BY(loop_);

  std::string phase_ ABSL_GUARDED_BY(loop_) = "starting";
  absl::Time phase_began_ ABSL_GUARDED_BY(loop_) = started_;
  RuntimeStats stats_ ABSL_GUARDED_BY(loop_);  // without the failures; see CountsNow
  PublishedCounts published_;
  uint64_t last_feed_ ABSL_GUARDED_BY(loop_) = 0;  // FeedHello.stream
  FunctionSpans spans_ ABSL_GUARDED_BY(loop_);
  uint64_t saving_ns_ ABSL_GUARDED_BY(loop_) = 0;  // when the checkpoint under way began
  // Of `stats_`, what other coordinators of the job have done. Unsigned: what is taken from it is
  // right.
  uint64_t resumed_steps_ ABSL_GUARDED_BY(loop_) = 0;
  uint64_t resumed_samples_ ABSL_GUARDED_BY(loop_) = 0;
  // When this coordinator's first function was scheduled.
  absl::Time first_scheduled_ ABSL_GUARDED_BY(loop_) = absl::InfiniteFuture();
  mutable double rolled_back_shown_ ABSL_GUARDED_BY(loop_) = 0;
  double last_checkpoint_seconds_ ABSL_GUARDED_BY(loop_) = 0;  // since 1970; 0: none
  double last_checkpoint_bytes_ ABSL_GUARDED_BY(loop_) = 0;
  uint64_t paused_ns_ ABSL_GUARDED_BY(loop_) = 0;  // when servers began to be recovered

  std::atomic<bool> synchronous_ = false;

  std::unique_ptr<RpcServer> server_;
  EpochWatcher epochs_;
  JobThread fences_;    // a server that hangs is waited for here
  JobThread recovery_;  // rounds of restores
  JobThread work_;      // tasks and checkpoints: their calls and files
  JobThread work_on_views_;
  JobThread silences_;     // on_silent_
  JobThread feed_writer_;  // makes and writes what streams say
};

}  // namespace mu
