// The spans of several processes as one Chrome trace (chrome://tracing, ui.perfetto.dev), on one
// clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status.h"
#include "proto/telemetry.pb.h"

namespace mu {

struct ProcessSpans {
  std::string name;             // "worker 0"
  int64_t clock_offset_ns = 0;  // added to its times gives the reader's clock
  std::vector<pb::SpanProto> spans;
  uint64_t dropped_spans = 0;  // said in the trace
};

// JSON in the "JSON object format" of the trace viewer; times begin at the first span.
std::string ChromeTraceJson(const std::vector<ProcessSpans>& processes);
// Errors as of common/env/file.h.
absl::Status WriteChromeTrace(const std::string& path, const std::vector<ProcessSpans>& processes);

}  // namespace mu
