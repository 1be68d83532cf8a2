// What happened in a window of time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/scale/host.h"

namespace mu::scale {

struct Measured {
  uint64_t begin_ns = 0, end_ns = 0;
  double functions_per_second = 0;
  double cpu_seconds = 0;       // of this process
  std::vector<double> gaps_ms;  // on the workers, sorted
  double worker_seconds = 0;    // the time that workers were up, of all of them

  double seconds() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
  double cpu_us_each() const { return 1e6 * cpu_seconds / (functions_per_second * seconds()); }
  double GapAt(double share) const {
    if (gaps_ms.empty()) return 0;
    return gaps_ms[std::min(gaps_ms.size() - 1,
                            static_cast<size_t>(share * static_cast<double>(gaps_ms.size())))];
  }
  // Of the time in which workers were up, that in which they ran steps, in percent.
  double Efficiency(uint32_t steps, double step_ms) const {
    const double busy = functions_per_second * seconds() * steps * step_ms * 1e-3;
    return worker_seconds > 0 ? 100 * busy / worker_seconds : 0;
  }

  // What the workers saw in this window.
  void Add(const HostLog& log) {
    for (const HostLog::Interval& gap : log.gaps) {
      if (gap.until_ns < begin_ns || gap.until_ns >= end_ns) continue;
      gaps_ms.push_back(static_cast<double>(gap.until_ns - gap.from_ns) * 1e-6);
    }
    std::sort(gaps_ms.begin(), gaps_ms.end());
    for (const HostLog::Interval& up : log.up) {
      const uint64_t from = std::max(up.from_ns, begin_ns);
      const uint64_t until = std::min(up.until_ns, end_ns);
      if (until > from) worker_seconds += static_cast<double>(until - from) * 1e-9;
    }
  }
};

}  // namespace mu::scale
