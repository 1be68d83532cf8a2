// The method by which every daemon tells its counters, timers and spans.
#pragma once

#include <string>

#include "common/obs/telemetry.h"
#include "common/rpc/typed.h"

namespace mu {

// Adds "/SERVICE/GetTelemetry", e.g. of "muster.Worker". `telemetry` must outlive the server.
inline void AddTelemetryMethod(MethodTable& methods, const std::string& service,
                               Telemetry* telemetry = &Telemetry::Process()) {
  methods.AddUnary(
      "/" + service + "/GetTelemetry", RunOn::kOwnThread,
      TypedHandler<pb::TelemetryRequest>(
          [telemetry](const pb::TelemetryRequest& request) -> absl::StatusOr<pb::TelemetryReply> {
            return telemetry->ToReply(request);
          }));
}

}  // namespace mu
