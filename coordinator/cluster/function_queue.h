// Which function runs where: the queue of scheduled functions and what is in flight to each worker. A pure state machine:
// events in, actions out; no clock, thread or socket.
//
// A function is bound to its batches when it is dispatched for the first time and keeps them for good; when its worker is
// lost it goes back to the queue in its old place and resumes, anywhere, at the first step whose result has not arrived.
//
// Functions that change state are kept after they have finished, until a checkpoint covers them: when the servers go back
// to a checkpoint (RollBack), all that it does not cover run again from their first step, with the same ids and batches;
// each server ignores the steps that its state contains. Results are delivered once, however often a step runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "proto/dataset.pb.h"
#include "proto/tensor.pb.h"

namespace mu {

// One attempt to run a function on a worker; results of an attempt that is no longer the current one are ignored.
using RunId = StrongId<struct RunIdTag, uint64_t>;

struct FunctionWork {
  Fingerprint fingerprint;
  uint32_t steps = 1;
  uint64_t dataset = 0;        // 0: reads none
  uint64_t needs_version = 0;  // of the catalog that a worker must have installed
  bool updates = false;        // it changes variables or tables: it is repeated after a RollBack
  std::shared_ptr<const std::vector<pb::TensorProto>> args;  // scalars; null: none
};

struct StartRun {
  FunctionId function;
  RunId run;
  WorkerId worker;
  uint32_t first_step = 0;
  uint32_t steps = 0;
};

class FunctionQueue {
 public:
  // Binds up to `steps` batches of a dataset for a function that goes to a worker.
  using Binder = std::function<std::vector<pb::BatchRangeProto>(uint64_t dataset, WorkerId, uint32_t steps)>;

  struct Function {
    FunctionWork work;
    bool bound = false;
    uint32_t steps = 0;      // once bound
    uint32_t next_step = 0;  // the first that this attempt has to run, or its result has not arrived
    uint32_t delivered = 0;  // steps whose results were delivered, in this attempt or an earlier one
    std::vector<pb::BatchRangeProto> batches;
    std::optional<WorkerId> worker;  // where it runs
    RunId run;
    uint32_t attempts = 0;
  };

  FunctionQueue(int in_flight_per_worker, Binder binder)
      : in_flight_(in_flight_per_worker), binder_(std::move(binder)) {}

  FunctionId Schedule(FunctionWork work);
  // The worker has installed everything up to `version`; also when it grows.
  void WorkerReady(WorkerId worker, uint64_t version);
  // From now on functions run only on workers that have installed this version or a later one: the servers have moved.
  void RequireVersion(uint64_t version) { least_version_ = version; }
  // Its functions go back to the queue; returns how many steps were bound but unfinished in them.
  uint64_t WorkerLost(WorkerId worker);

  // What to start now. Functions for which no data is left complete with fewer or no steps: those with none are returned
  // in `*completed` at once. With `only_started`, nothing that has not run yet.
  std::vector<StartRun> Dispatch(std::vector<FunctionId>* completed, bool only_started = false);
  // Nothing runs and nothing has run in part: the servers' state is that of whole functions.
  bool Quiescent() const;

  // True if the result is to be delivered; false for one of an older run, or one that was delivered before.
  bool StepDone(FunctionId function, RunId run, uint32_t step);

  enum class Ended { kCompleted, kRequeued, kIgnored };
  // The stream of a run has ended. Completed if every step has its result, else the function is requeued.
  Ended RunEnded(FunctionId function, RunId run);

  // Removes a function that failed; false if the run is not the current one.
  bool Remove(FunctionId function, RunId run);
  // Removes everything; returns what was removed. Runs under way are no longer current.
  std::vector<FunctionId> CancelAll();

  // Functions that the cuts of a checkpoint may contain in part or not at all; those that had finished before are whole
  // in every cut.
  struct Position {
    FunctionId next_id;
    std::map<FunctionId, Function> unfinished;  // those that change state
  };
  // A checkpoint is begun: every server takes its cut after this.
  Position CheckpointPosition() const;
  // Every server has taken its cut. What was bound to batches meanwhile may be in some cuts and not in others, so it runs
  // again with the same id and batches, as what was unfinished at the beginning does: this is the position that a
  // coordinator resumes from, together with the data's position of this moment. Functions that are not bound are left
  // out, no cut knows them and they take their records from the position of the data.
  Position AfterCuts(const Position& begun) const;
  // A checkpoint that was begun at this position is complete: what had finished by then need never run again.
  void CheckpointCommitted(const Position& begun);
  struct RolledBack {
    uint64_t functions = 0;
    uint64_t steps = 0;    // whose results had arrived and that run again
  };
  // The servers go back to the last committed checkpoint, or to the beginning: everything that changes state and is not
  // covered runs again. Runs under way are no longer current.
  RolledBack RollBack();
  // Continues after a checkpoint's position, in a coordinator that has scheduled nothing yet.
  void Resume(const Position& position);

  // Every function below it has finished and will not be repeated.
  FunctionId low_water() const;
  FunctionId next_id() const { return next_id_; }
  const Function* Find(FunctionId id) const;
  size_t queued() const { return queued_; }
  size_t running() const { return functions_.size() - queued_; }
  size_t unfinished() const { return functions_.size(); }
  size_t kept() const { return kept_.size(); }
  size_t InFlight(WorkerId worker) const;

 private:
  struct Worker {
    uint64_t version = 0;
    size_t in_flight = 0;
  };
  void Requeue(Function& function);
  void Complete(std::map<FunctionId, Function>::iterator function);
  std::optional<WorkerId> PickWorker(uint64_t needs_version) const;

  const size_t in_flight_;
  const Binder binder_;
  FunctionId next_id_{1};
  RunId next_run_{1};
  std::map<FunctionId, Function> functions_;  // unfinished ones, oldest first
  std::map<FunctionId, Function> kept_;       // finished since the last checkpoint's position
  size_t queued_ = 0;
  std::map<WorkerId, Worker> workers_;
  uint64_t least_version_ = 0;
};

}  // namespace mu
