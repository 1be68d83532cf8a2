// Which function runs where: the queue of scheduled functions and what is in flight to each worker. A pure state machine:
// events in, actions out; no clock, thread or socket.
//
// A function is bound to its batches when it is dispatched for the first time and keeps them for good; when its worker is
// lost it goes back to the queue in its old place and resumes, anywhere, at the first step whose result has not arrived.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "proto/dataset.pb.h"

namespace mu {

// One attempt to run a function on a worker; results of an attempt that is no longer the current one are ignored.
using RunId = StrongId<struct RunIdTag, uint64_t>;

struct FunctionWork {
  Fingerprint fingerprint;
  uint32_t steps = 1;
  uint64_t dataset = 0;        // 0: reads none
  uint64_t needs_version = 0;  // of the catalog that a worker must have installed
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
    uint32_t next_step = 0;  // the first without a result
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
  // Its functions go back to the queue; returns how many steps were bound but unfinished in them.
  uint64_t WorkerLost(WorkerId worker);

  // What to start now. Functions for which no data is left complete with fewer or no steps: those with none are returned
  // in `*completed` at once.
  std::vector<StartRun> Dispatch(std::vector<FunctionId>* completed);

  // False if the result is not wanted: of an older run, or one that is there already.
  bool StepDone(FunctionId function, RunId run, uint32_t step);

  enum class Ended { kCompleted, kRequeued, kIgnored };
  // The stream of a run has ended. Completed if every step has its result, else the function is requeued.
  Ended RunEnded(FunctionId function, RunId run);

  // Removes a function that failed; false if the run is not the current one.
  bool Remove(FunctionId function, RunId run);
  // Removes everything; returns what was removed. Runs under way are no longer current.
  std::vector<FunctionId> CancelAll();

  // Every function below it has finished.
  FunctionId low_water() const;
  FunctionId next_id() const { return next_id_; }
  const Function* Find(FunctionId id) const;
  size_t queued() const { return queued_; }
  size_t running() const { return functions_.size() - queued_; }
  size_t unfinished() const { return functions_.size(); }
  size_t InFlight(WorkerId worker) const;

 private:
  struct Worker {
    uint64_t version = 0;
    size_t in_flight = 0;
  };
  void Requeue(Function& function);
  std::optional<WorkerId> PickWorker(uint64_t needs_version) const;

  const size_t in_flight_;
  const Binder binder_;
  FunctionId next_id_{1};
  RunId next_run_{1};
  std::map<FunctionId, Function> functions_;  // unfinished ones, oldest first
  size_t queued_ = 0;
  std::map<WorkerId, Worker> workers_;
};

}  // namespace mu
