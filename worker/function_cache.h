// The functions that are installed on this worker, by fingerprint.
//
// Thread safe.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
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

class FunctionCache {
 public:
  // The parts of a step are timed into `telemetry`, which outlives this.
  explicit FunctionCache(Telemetry* telemetry = nullptr) : telemetry_(telemetry) {}

  // Compiles and keeps the function; nothing is done if it is there. INVALID_ARGUMENT, with op and
  // file:line, for a graph that does not verify, or if `fingerprint` is not that of `graph`;
  // ABORTED if there was a Clear since `clears`.
  absl::Status Install(const muster::FunctionProto& graph, Fingerprint fingerprint,
                       const muster::RoutingProto& routing, uint64_t clears);

  // FAILED_PRECONDITION (ERROR_NOT_INSTALLED) if it is not there.
  absl::StatusOr<std::shared_ptr<WorkerFunction>> Find(Fingerprint fingerprint) const;

  // Of another epoch: its variables may have other ids. Runs under way keep what they have.
  void Clear();
  uint64_t clears() const;  // how many there were

 private:
  Telemetry* const telemetry_;
  mutable Mutex mutex_;
  uint64_t clears_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<Fingerprint, std::shared_ptr<WorkerFunction>> functions_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
