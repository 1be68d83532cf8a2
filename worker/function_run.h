// One call of a function on this worker, from its arrival until its stream ends: what the core's
// decisions about it are carried out with.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/rpc/transport.h"
#include "common/tensor/tensor.h"
#include "proto/worker.pb.h"
#include "worker/core/action.h"

namespace mu {

class DatasetReader;
struct WorkerFunction;

// What a run needs beside its request.
struct RunInputs {
  std::shared_ptr<WorkerFunction> function;
  std::shared_ptr<DatasetReader> dataset;  // null if the function reads none
  std::vector<Tensor> args;
};

// Constant, but for what is held, which belongs to the thread that executes it.
struct FunctionRun {
  FunctionRun(CallId id, muster::RunRequest request, std::shared_ptr<ServerCall> call,
              RunInputs inputs)
      : id(id), request(std::move(request)), call(std::move(call)), inputs(std::move(inputs)) {}

  const CallId id;
  const muster::RunRequest request;
  const std::shared_ptr<ServerCall> call;
  const RunInputs inputs;
  muster::RunReply held;  // results that have not been sent
};

}  // namespace mu
