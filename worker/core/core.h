// All that a worker decides: whose requests it answers, what of its state a new epoch ends, which
// routing it uses, which run is executed and from which step on, in which generation a step reads
// and pushes, what a failed pull or push means, which runs a cancellation ends and when it is
// answered, when results are sent, how a worker drains. It composes the state machines of this
// folder. Pure: requests and events in, answers and actions out; no clock, thread, lock, call or
// file. WorkerServer and the simulation are two shells around it.
//
// Graphs, kernels, data and calls are the shell's. A call is named by a CallId. Not synchronised.
//
// The executing run: RunStep asks for a step; the shell brackets each of the step's pulls and
// pushes with BeginCall and RepeatCall, and reports the step's end with StepEnded.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/coordinator.pb.h"
#include "worker/core/action.h"
#include "worker/core/feed_gate.h"
#include "worker/core/request_gate.h"
#include "worker/core/result_group.h"
#include "worker/core/route.h"
#include "worker/core/run_queue.h"

namespace mu {

class WorkerCore {
 public:
  struct Options {
    bool registers = false;  // requests wait for Registered(); else the first one decides to which
                             // job the worker belongs
    // A registration's answer comes within milliseconds, or is asked for again after some seconds.
    absl::Duration registration_patience = absl::Seconds(20);
    absl::Duration result_interval = absl::Milliseconds(2);  // see ResultGroup
  };
  // The epoch for which something is being installed, which takes a while.
  using InstallToken = uint64_t;
  struct RunRequest {
    WorkerRun run;
    Fingerprint function;
    uint64_t dataset = 0;  // that the function reads; 0: none
    absl::Status inputs;   // what is wrong with them, if the function is installed
  };
  struct CallContext {
    Generation generation;
    FunctionId low_water;
  };

  explicit WorkerCore(const Options& options);
  WorkerCore(const WorkerCore&) = delete;
  WorkerCore& operator=(const WorkerCore&) = delete;

  // The coordinator has taken this worker. Errors as RequestGate::Register.
  absl::Status Registered(const pb::RequestContext& context, WorkerActions* actions);
  // For how long a request that came at `arrived` has to wait for the registration's answer, if
  // that does not come; 0: it can be answered now. A Run does not wait: whoever sends it has
  // installed its function before.
  absl::Duration HoldBack(absl::Time now, absl::Time arrived) const;

  // Requests. Errors as RequestGate::Admit and those that are named.
  //
  // `sane`: what is wrong with the routing, which is the answer if it is news. UseRouting: it is
  // the one to use.
  absl::Status Configure(const pb::RequestContext& context, WorkerRouting routing,
                         const absl::Status& sane, WorkerActions* actions);
  // A function or a dataset is being prepared for use, at the end of which comes Installed.
  absl::StatusOr<InstallToken> BeginInstall(const pb::RequestContext& context,
                                            WorkerActions* actions);
  // FAILED_PRECONDITION (ERROR_STALE): a newer coordinator took over meanwhile.
  absl::Status FunctionInstalled(InstallToken token, Fingerprint function);
  absl::Status DatasetInstalled(InstallToken token, uint64_t dataset);
  // A file of the dataset is looked at. FAILED_PRECONDITION (ERROR_NOT_INSTALLED).
  absl::Status Look(const pb::RequestContext& context, uint64_t dataset) const;
  // A connection of the coordinator's stream. True: the stream is a new one; the runs of the one
  // before have lost their caller. Errors of FeedGate::Open.
  absl::StatusOr<bool> OpenFeed(const pb::RequestContext& context,
                                const FeedGate::Connection& connection, WorkerActions* actions);
  // OK: EndRun comes in time, or now. FAILED_PRECONDITION (ERROR_STALE or ERROR_NOT_INSTALLED) if
  // generation, function or dataset are not those that are here; errors of RunQueue::Add.
  absl::Status Run(absl::Time now, const pb::RequestContext& context, RunRequest request,
                   WorkerActions* actions);
  // OK: Cancelled comes in time, or now. One of an older generation than the newest routing ends
  // nothing: the servers have gone back since, and refuse what is left of the runs that it means;
  // those of now are repeats of them.
  absl::Status CancelRuns(const pb::RequestContext& context, FunctionId below, CallId call,
                          WorkerActions* actions);

  // Events.
  void CallerGone(CallId run, WorkerActions* actions);
  // The running step is the last; what is left of all functions is handed back, and so is all of
  // new ones. What the running step waits for is given up after `patience`.
  void Drain(absl::Time now, absl::Duration patience, WorkerActions* actions);
  // For a process that ends after Drain: the running step outlasts the patience. Its run is handed
  // back, and whatever it still computes changes nothing, since its push is refused. Does nothing
  // before the patience has ended, while the step talks to servers, and once its push has: then the
  // step ends soon.
  void LeaveStep(WorkerActions* actions);
  bool may_leave_step() const {
    return patience_over_ && !idle() && !left_step_ && !call_.has_value() && !pushed_;
  }
  // Every run ends UNAVAILABLE. Requests that wait for the registration are refused.
  void Shutdown(WorkerActions* actions);
  void Tick(absl::Time now, WorkerActions* actions);
  // When Tick is wanted.
  absl::Time alarm() const;
  // The worker has lost what was installed on it; also part of what a new epoch brings.
  void Forget(WorkerActions* actions);

  // The step that RunStep asked for. An error is the run's, unless the run was stopped; after a
  // refusal because its gradients were too late (IsTooLate) the step runs again.
  void StepEnded(absl::Time now, const absl::Status& status, WorkerActions* actions);
  // The step is about to pull or push. A pull is given up when its run is stopped; a push that has
  // begun is not, so that none is on its way when the run has ended. Errors end the step.
  absl::StatusOr<CallContext> BeginCall(bool push);
  // It has ended. True: the servers have moved, it has to be made again with another BeginCall.
  // That is harmless, since servers remember what they applied.
  bool RepeatCall(const absl::Status& status);

  // What is.
  bool idle() const { return queue_.running() == nullptr; }
  bool left_step() const { return left_step_; }
  bool draining() const { return queue_.draining(); }
  bool shut_down() const { return queue_.shut_down(); }
  bool has_function(Fingerprint function) const { return functions_.contains(function); }
  size_t active() const { return queue_.active(); }
  Generation generation() const { return route_.generation(); }
  uint64_t epoch() const { return gate_.epoch(); }

 private:
  struct Call {
    bool push = false;
    uint64_t servers_version = 0;
  };

  absl::Status Admit(const pb::RequestContext& context, WorkerActions* actions);
  // What the gate's answer to this context brings with it.
  absl::Status Admitted(const absl::StatusOr<RequestGate::Verdict>& verdict,
                        const pb::RequestContext& context, WorkerActions* actions);
  absl::Status Check(const RunRequest& request) const;
  absl::Status CheckToken(InstallToken token, const char* doing) const;
  void StartNext(absl::Time now, WorkerActions* actions);
  // The running run's next step, or its end.
  void Continue(absl::Time now, WorkerActions* actions);
  void EndRunning(absl::Time now, const absl::Status& status, WorkerActions* actions);
  // Its results and its end go to its caller.
  void SayEnd(const absl::Status& status, WorkerActions* actions);
  void InterruptIfAborted(WorkerActions* actions);

  const Options options_;
  RequestGate gate_;
  FeedGate feeds_;
  WorkerRoute route_;
  absl::flat_hash_set<Fingerprint> functions_;
  std::set<uint64_t> datasets_;
  InstallToken installs_ = 0;  // grows when what was installed is forgotten
  RunQueue queue_;
  ResultGroup results_;
  std::optional<Call> call_;    // under way
  bool pushed_ = false;         // the running step, all that it does
  Generation step_generation_;  // of the running step
  absl::Time drain_until_ = absl::InfiniteFuture();
  bool patience_over_ = false;  // of the drain
  bool left_step_ = false;      // the running run has ended for its caller
};

}  // namespace mu
