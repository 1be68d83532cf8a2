#include "common/obs/parts_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

namespace mu {

void AddTimers(const pb::TelemetryReply& reply, TimerSums* sums) {
  for (const pb::TimerProto& timer : reply.timers()) {
    TimerSum& sum = (*sums)[timer.name()];
    sum.count += timer.count();
    sum.total_ns += timer.total_ns();
  }
}

std::string PartsTable(const TimerSums& sums) {
  std::vector<std::pair<std::string, TimerSum>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.total_ns > b.second.total_ns;
  });
  size_t width = 4;
  for (const auto& [name, sum] : rows) width = std::max(width, name.size());
  std::string out = absl::StrFormat("%-*s %10s %12s %12s\n", static_cast<int>(width), "part",
                                    "seconds", "times", "us each");
  for (const auto& [name, sum] : rows) {
    const double each =
        sum.count == 0 ? 0
                       : static_cast<double>(sum.total_ns) / 1e3 / static_cast<double>(sum.count);
    absl::StrAppendFormat(&out, "%-*s %10.3f %12d %12.1f\n", static_cast<int>(width), name,
                          static_cast<double>(sum.total_ns) / 1e9, sum.count, each);
  }
  return out;
}

}  // namespace mu
