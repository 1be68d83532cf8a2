#include "common/obs/chrome_trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/env/file.h"

namespace mu {
namespace {

using Json = nlohmann::json;

// Text of the user's may hold bytes that are no UTF-8; they are replaced rather than thrown over.
void Append(const Json& event, std::string* out) {
  if (out->back() != '[') *out += ",\n";
  *out += event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

double Microseconds(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

// One of no thread: the viewer finds room for those that overlap, on tracks of their own. `id` is
// of this span only.
void AppendAsync(const pb::SpanProto& span, int pid, int64_t start_ns, uint64_t id,
                 std::string* out) {
  Json event = {{"ph", "b"},  {"cat", "async"}, {"name", span.name()},
                {"pid", pid}, {"tid", 0},       {"id", std::to_string(id)}};
  event["ts"] = Microseconds(start_ns);
  if (!span.detail().empty()) event["args"] = {{"detail", span.detail()}};
  Append(event, out);
  event.erase("args");
  event["ph"] = "e";
  event["ts"] = Microseconds(start_ns + static_cast<int64_t>(span.duration_ns()));
  Append(event, out);
}

}  // namespace

std::string ChromeTraceJson(const std::vector<ProcessSpans>& processes) {
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const ProcessSpans& process : processes) {
    for (const pb::SpanProto& span : process.spans) {
      origin = std::min(origin, static_cast<int64_t>(span.start_ns()) + process.clock_offset_ns);
    }
  }
  uint64_t asyncs = 0;
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  for (size_t i = 0; i < processes.size(); ++i) {
    const ProcessSpans& process = processes[i];
    const int pid = static_cast<int>(i) + 1;
    std::string name = process.name;
    if (process.dropped_spans > 0)
      name += " (" + std::to_string(process.dropped_spans) + " spans lost)";
    Append({{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", name}}}}, &out);
    Append({{"ph", "M"},
            {"name", "process_sort_index"},
            {"pid", pid},
            {"args", {{"sort_index", pid}}}},
           &out);
    for (const pb::SpanProto& span : process.spans) {
      const int64_t start =
          static_cast<int64_t>(span.start_ns()) + process.clock_offset_ns - origin;
      if (span.thread() == 0) {
        AppendAsync(span, pid, start, ++asyncs, &out);
        continue;
      }
      Json event = {{"ph", "X"},
                    {"name", span.name()},
                    {"pid", pid},
                    {"tid", span.thread()},
                    {"ts", Microseconds(start)},
                    {"dur", Microseconds(static_cast<int64_t>(span.duration_ns()))}};
      if (!span.detail().empty()) event["args"] = {{"detail", span.detail()}};
      Append(event, &out);
    }
  }
  return out + "]}\n";
}

absl::Status WriteChromeTrace(const std::string& path, const std::vector<ProcessSpans>& processes) {
  return WriteFileAtomic(path, ChromeTraceJson(processes));
}

}  // namespace mu
