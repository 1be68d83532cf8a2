// The shell around the worker's core: one mutex, the calls and functions that the core's handles
// name, and the way to the parameter servers. It carries the core's actions out and decides
// nothing.
//
// Thread safe. The mutex is held for decisions only, never while something is compiled, read, sent
// or executed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/client/ps_client.h"
#include "common/rpc/transport.h"
#include "proto/worker.pb.h"
#include "worker/core/core.h"
#include "worker/dataset_store.h"
#include "worker/function_run.h"
#include "worker/worker_function.h"

namespace mu {

class CoreShell {
 public:
  // `datasets` outlives every call but CallerGone.
  CoreShell(const WorkerCore::Options& options, Transport* transport, RetryPolicy servers,
            DatasetStore* datasets);

  // Requests, see WorkerCore.
  void AwaitRegistration();
  absl::Status Registered(const pb::RequestContext& context);
  absl::Status Configure(const pb::ConfigureWorkerRequest& request);
  struct Installing {
    WorkerCore::InstallToken token = 0;
    std::shared_ptr<const Routing> routing;  // null: none has been given
    bool installed = false;                  // the function is there already
  };
  absl::StatusOr<Installing> BeginInstall(const pb::RequestContext& context,
                                          Fingerprint function = Fingerprint());
  absl::Status Installed(WorkerCore::InstallToken token, Fingerprint fingerprint,
                         std::shared_ptr<WorkerFunction> function);
  absl::Status Installed(WorkerCore::InstallToken token, std::shared_ptr<DatasetReader> dataset);
  absl::StatusOr<std::shared_ptr<DatasetReader>> Look(const pb::RequestContext& context,
                                                      uint64_t dataset);
  // True: it is a new stream, whose coordinator waits for nothing of the one before.
  absl::StatusOr<bool> OpenFeed(const pb::FeedHello& hello);
  // Finishes the call in any case. Null if the run was refused.
  std::shared_ptr<FunctionRun> StartRun(pb::RunRequest request, RunLeases leases,
                                        std::shared_ptr<ServerCall> call);
  void CallerGone(CallId run);
  void CancelRuns(const pb::CancelRunsRequest& request, std::shared_ptr<ServerCall> call);
  // Returns when nothing runs and nothing is left to be sent; and, after `patience`, when no push
  // is under way: a step that computes or reads goes on then, but its run is handed back. After
  // `most` in any case.
  void Drain(absl::Duration patience, absl::Duration most);
  void Shutdown();

  // For the thread that executes runs.
  struct Step {
    std::shared_ptr<FunctionRun> run;
    uint32_t step = 0;
  };
  // Waits for a run to execute. Nothing: there will be none any more.
  std::optional<Step> NextRun();
  // The step has ended; the next one of the run, unless it is over.
  std::optional<uint32_t> StepEnded(FunctionRun* run, const absl::Status& status,
                                    pb::StepResult result);
  // A pull or a push. `session` is of client(), and is given its context.
  absl::Status BeginCall(bool push, PsSession* session, PsSessionOptions options, uint32_t step);
  bool RepeatCall(const absl::Status& status);
  std::shared_ptr<PsClient> client() const;

  // Runs that it has, and functions that are installed.
  size_t runs() const;
  size_t functions() const;

 private:
  // What is to be sent without the lock.
  struct Outgoing {
    enum class Kind { kResults, kEnd, kCancelled } kind;
    std::shared_ptr<FunctionRun> run;
    std::shared_ptr<ServerCall> call;
    absl::Status status;
    bool handed_back = false;
    muster::RunReply held;  // what the run held
  };
  using Outbox = absl::InlinedVector<Outgoing, 2>;

  // Has the core decide, and carries out what follows.
  template <typename Decision>
  auto Decide(const Decision& decide) ABSL_LOCKS_EXCLUDED(mutex_);
  // Does what has to be done under the lock and returns the rest.
  Outbox Apply(const WorkerActions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(Outbox outbox) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for a change, the core's alarm or `until`. False, at once, if one of these is due.
  bool WaitForAlarm(absl::Time until = absl::InfiniteFuture())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WorkerCore::RunRequest Resolve(const pb::RunRequest& request, const RunLeases& leases,
                                 RunInputs* inputs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<PsClient> NewClient() const;

  Transport* const transport_;
  const RetryPolicy policy_;
  DatasetStore* const datasets_;

  mutable Mutex mutex_;
  CondVar changed_;
  WorkerCore core_ ABSL_GUARDED_BY(mutex_);
  CallId last_call_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<CallId, std::shared_ptr<FunctionRun>> runs_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<CallId, std::shared_ptr<ServerCall>> cancels_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Fingerprint, std::shared_ptr<WorkerFunction>> functions_
      ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<PsClient> client_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Routing> routing_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Routing> offered_ ABSL_GUARDED_BY(mutex_);  // by the Configure of now
  PsSession* session_ ABSL_GUARDED_BY(mutex_) = nullptr;  // whose pull or push is under way
  std::optional<worker_action::RunStep> next_ ABSL_GUARDED_BY(mutex_);
  int sending_ ABSL_GUARDED_BY(mutex_) = 0;  // results and ends of runs, by threads of their own
};

}  // namespace mu
