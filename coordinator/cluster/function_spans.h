// Functions in the trace: one span for each from Schedule to its end, one for each attempt to run
// it on a worker. They overlap, so they are no thread's. Records nothing while tracing is off. Not
// synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/obs/telemetry.h"
#include "coordinator/core/function_queue.h"

namespace mu {

class FunctionSpans {
 public:
  explicit FunctionSpans(Telemetry* telemetry) : telemetry_(telemetry) {}

  // `name` is the user's; ids are told in the details.
  void Scheduled(FunctionId id, const std::string& name);
  void Started(const StartRun& start, const std::string& name);
  void Ended(const StartRun& start, const absl::Status& status);
  void Finished(FunctionId id, const absl::Status& status);

 private:
  struct Open {
    std::string name;
    uint64_t start_ns = 0;
  };
  Telemetry* const telemetry_;
  std::map<FunctionId, Open> functions_;
  std::map<RunId, Open> runs_;
};

}  // namespace mu
