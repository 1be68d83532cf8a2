// One run of a function on this worker, from its arrival until its end: what the core's decisions
// about it are carried out with.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/rpc/transport.h"
#include "common/tensor/tensor.h"
#include "proto/worker.pb.h"
#include "worker/core/action.h"
#include "worker/step_plan.h"

namespace mu {

class DatasetReader;
struct WorkerFunction;

// The leases that a request names by their ids.
struct RunLeases {
  std::vector<LeasedBatches> batches;  // as RunRequest.batches
  std::vector<std::shared_ptr<const muster::LeaseProto>> upcoming;
};

// What a run needs beside its request.
struct RunInputs {
  std::shared_ptr<WorkerFunction> function;
  std::shared_ptr<DatasetReader> dataset;  // null if the function reads none
  std::vector<Tensor> args;
};

// Constant, but for what is held, which the shell's mutex guards.
struct FunctionRun {
  FunctionRun(CallId id, muster::RunRequest request, RunLeases leases,
              std::shared_ptr<ServerCall> call, RunInputs inputs)
      : id(id),
        request(std::move(request)),
        leases(std::move(leases)),
        call(std::move(call)),
        inputs(std::move(inputs)) {}

  const CallId id;
  const muster::RunRequest request;
  const RunLeases leases;
  const std::shared_ptr<ServerCall> call;  // gets RunReplies; the last one with Finish
  const RunInputs inputs;
  muster::RunReply held;  // results that have not been sent
};

}  // namespace mu
