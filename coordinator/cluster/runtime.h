// The cluster as the coordinator sees it: threads and calls around the pure state machines of this folder.
//
// Daemons register with it. Each worker gets a thread that installs what the worker lacks; functions are dispatched from
// whatever thread brought the news (a result, a registration, Schedule). A monitor thread expires heartbeats and, after
// an error, sees to it that nothing is left running before the error is reported. Thread safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/rpc/transport.h"
#include "coordinator/cluster/catalog.h"
#include "coordinator/cluster/data_leases.h"
#include "coordinator/cluster/function_queue.h"
#include "coordinator/cluster/membership.h"
#include "coordinator/cluster/remote_value.h"
#include "coordinator/cluster/worker_link.h"
#include "proto/psserver.pb.h"
#include "proto/worker.pb.h"

namespace mu {

// What happened to a daemon, for the report.
struct MemberFailure {
  pb::Role role;
  uint32_t index;
  std::string kind;  // died, unreachable, silent, replaced, left
  double at_seconds;
  std::string message;
  double recovered_seconds = -1;  // until work went on without it or with its replacement; negative: not (yet)
  uint64_t steps_repeated = 0;
};

struct RuntimeStats {
  uint64_t functions = 0;  // finished
  uint64_t steps = 0;
  uint64_t samples = 0;
  uint64_t bad_records = 0;
  std::string first_bad_record;
  size_t workers_ready = 0;
  size_t servers = 0;
  size_t unfinished = 0;
  std::vector<MemberFailure> failures;
};

class Runtime {
 public:
  struct Options {
    Transport* transport = nullptr;  // outlives the runtime
    std::string listen = "127.0.0.1:0";
    std::string job_name;
    JobId job;
    CoordinatorEpoch epoch;
    uint32_t servers = 1;
    int in_flight = 2;          // functions per worker
    size_t queue_bound = 1000;  // functions that wait; Schedule blocks beyond it
    absl::Duration heartbeat = absl::Milliseconds(250);
    absl::Duration timeout = absl::Seconds(10);
  };
  // UNAVAILABLE if the address is in use.
  static absl::StatusOr<std::unique_ptr<Runtime>> Start(Options options);
  ~Runtime();  // Close(); all threads end
  // Everything unfinished ends CANCELLED; nothing is started any more, daemons may still take their leave.
  void Close();

  std::string address() const { return server_->address(); }
  const Options& options() const { return options_; }

  // DEADLINE_EXCEEDED with how many have come, or the error of a daemon that could not start.
  absl::Status WaitForServers(absl::Duration timeout);
  absl::Status WaitForWorkers(size_t count, absl::Duration timeout);
  std::vector<Member> Servers() const;

  // Runs `change` with the catalog under the lock; workers are then sent what is new.
  void ChangeCatalog(const std::function<void(Catalog&)>& change);
  pb::RequestContext Context() const;

  // Reads how many records each file of a dataset has, on the workers, in parallel.
  absl::StatusOr<std::vector<uint64_t>> ScanFiles(const pb::DatasetProto& dataset);
  void AddLeases(std::unique_ptr<DataLeases> leases);
  // Runs `look` with a dataset's leases under the lock; false if it has none.
  bool WithLeases(uint64_t dataset, const std::function<void(DataLeases&)>& look);

  RemoteValue Schedule(FunctionWork work, std::vector<std::string> return_names);
  // A call that cannot be made: its error is reported like a function's, by the value or by the next Join or Done.
  RemoteValue Refuse(absl::Status error);
  absl::Status Join();
  absl::StatusOr<bool> Done();
  // Cancels what is queued and running, as after an error, and waits until nothing is left.
  void CancelEverything();
  // The cluster cannot go on (a server is lost, a daemon cannot start): every call fails with `error` from now on.
  void Fail(absl::Status error);

  // Called, on a thread of the runtime, when a daemon has sent no heartbeat for the timeout; it may come back.
  void SetOnSilent(std::function<void(const Member&)> on_silent);
  bool IsMember(int64_t pid) const;
  // The process of a daemon is known to be dead; `message` (its last lines) goes into the errors.
  void DaemonDied(int64_t pid, const std::string& message);

  RuntimeStats Stats() const;
  pb::GetStatusReply Status() const;
  void SetPhase(std::string phase);
  std::vector<std::shared_ptr<WorkerLink>> Workers() const;
  std::shared_ptr<Channel> ChannelTo(const std::string& address) { return options_.transport->Connect(address); }

  // With a recovery, a lost server does not end the job: when all servers are there again, `recover` is called on the
  // monitor's thread to bring them to one state (OK: the state of the last committed checkpoint or the initial one), and
  // everything that state does not cover runs again. UNAVAILABLE from it: a server was lost meanwhile, it is called again.
  void SetRecovery(std::function<absl::Status()> recover);
  // The position that a checkpoint begun now has to carry, and the news that it is complete.
  FunctionQueue::Position CheckpointPosition();
  void CheckpointCommitted(const FunctionQueue::Position& position);
  // Lets what runs end and starts nothing new, until Continue. UNAVAILABLE if a server was lost meanwhile (then nothing is
  // held up). `*token` says whether a server was lost between this call and a later one of HeldSince.
  absl::Status HoldFunctions(uint64_t* token);
  bool HeldSince(uint64_t token) const;
  void Continue();
  // Waits while servers are being recovered; the error if there is no recovery from it.
  absl::Status WaitUntilServing();
  // Finished functions that a lost server would make run again.
  size_t uncovered_functions() const;

  // Called on the monitor's thread when an error ended everything: must make all servers refuse functions below the mark.
  void SetFence(std::function<absl::Status(FunctionId below)> fence);

 private:
  explicit Runtime(Options options);
  MethodTable Methods();
  absl::StatusOr<pb::RegisterReply> OnRegister(const pb::RegisterRequest& request);
  absl::StatusOr<pb::HeartbeatReply> OnHeartbeat(const pb::HeartbeatRequest& request);
  absl::StatusOr<pb::LeaveReply> OnLeave(const pb::LeaveRequest& request);

  void AddWorker(const Member& member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MemberLost(const Member& member, const std::string& kind, const std::string& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void InstallLoop(std::shared_ptr<WorkerLink> link);
  absl::Status InstallOn(WorkerLink& link, const Catalog::Delta& delta);
  template <typename Reply, typename Request>
  absl::Status InstallCall(WorkerLink& link, const char* method, const Request& request);

  void Dispatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartOn(const StartRun& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRunReply(const StartRun& start, const Buffer& message);
  void OnRunEnded(const StartRun& start, const absl::Status& status);
  void RunOver(const StartRun& start, const absl::Status& status, const std::shared_ptr<WorkerLink>& link)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishFunction(FunctionId id, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginCancel(absl::Status error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishCancel();  // on the monitor's thread
  void Monitor();
  void ServerLost(const Member& member, const std::string& kind, const std::string& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TryRecover();  // on the monitor's thread
  pb::RequestContext ContextLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits while an error is being dealt with; then the pending error, if nobody has seen it.
  std::shared_ptr<PendingError> UnseenError() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double SecondsUp() const;

  const Options options_;
  const absl::Time started_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  Membership membership_ ABSL_GUARDED_BY(mutex_);
  Catalog catalog_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::unique_ptr<DataLeases>> leases_ ABSL_GUARDED_BY(mutex_);
  FunctionQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::map<FunctionId, std::shared_ptr<FunctionState>> states_ ABSL_GUARDED_BY(mutex_);
  std::map<WorkerId, std::shared_ptr<WorkerLink>> links_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<WorkerLink>> old_links_ ABSL_GUARDED_BY(mutex_);  // threads to join
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;  // callbacks that will still come
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelling_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status cancel_error_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<PendingError> error_ ABSL_GUARDED_BY(mutex_);
  absl::Status fatal_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status(FunctionId)> fence_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const Member&)> on_silent_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status()> recover_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;        // only functions that have begun are dispatched
  bool recovering_ ABSL_GUARDED_BY(mutex_) = false;  // nothing is dispatched
  uint64_t servers_lost_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string phase_ ABSL_GUARDED_BY(mutex_) = "starting";
  RuntimeStats stats_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<RpcServer> server_;
  std::thread monitor_;
};

}  // namespace mu
