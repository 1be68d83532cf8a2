// A function that is installed on this worker.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/exec/executor.h"
#include "proto/graph.pb.h"
#include "proto/table.pb.h"

namespace mu {

struct WorkerFunction {
  WorkerFunction(muster::FunctionProto graph, std::shared_ptr<const CompiledFunction> compiled,
                 Telemetry* telemetry);
  const muster::FunctionProto graph;
  const bool read_only;  // changes no variable or table, so it creates no rows either
  Executor executor;     // for the thread that executes runs
};

// The parts of a step are timed into `telemetry`, which outlives the function. INVALID_ARGUMENT,
// with op and file:line, for a graph that does not verify, or if `fingerprint` is not that of
// `graph`.
absl::StatusOr<std::shared_ptr<WorkerFunction>> CompileWorkerFunction(
    const muster::FunctionProto& graph, Fingerprint fingerprint,
    const muster::RoutingProto& routing, Telemetry* telemetry);

}  // namespace mu
