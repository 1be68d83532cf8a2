// Where the time went: timers of several processes summed by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/status.h"
#include "proto/telemetry.pb.h"

namespace mu {

struct TimerSum {
  uint64_t count = 0;
  uint64_t total_ns = 0;
};
using TimerSums = std::map<std::string, TimerSum>;

void AddTimers(const pb::TelemetryReply& reply, TimerSums* sums);

// A table as text, the longest first: part, seconds, times, microseconds each.
std::string PartsTable(const TimerSums& sums);

}  // namespace mu
