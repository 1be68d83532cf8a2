#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/version.h"
#include "common/env/file.h"
#include "common/obs/metrics.h"
#include "common/obs/telemetry.h"

namespace mu {
namespace {

// The field of /proc/self/stat that proc(5) gives this number; names may hold spaces, so the second
// one's ")" is where counting begins.
double StatField(const std::string& stat, size_t number) {
  const size_t end = stat.rfind(") ");
  if (end == std::string::npos) return 0;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(end + 2), ' ');
  double value = 0;
  if (number - 3 >= fields.size() || !absl::SimpleAtod(fields[number - 3], &value)) return 0;
  return value;
}

// When the process began, in seconds since 1970: the machine's start plus field 22.
double StartTime(const std::string& stat) {
  std::ifstream uptime("/proc/uptime");
  double up = 0;
  if (!(uptime >> up)) return 0;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(absl::ToUnixMillis(absl::Now())) / 1000 - up +
         StatField(stat, 22) / ticks;
}

std::string FirstLine(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

void AddProcessMetrics(MetricList* list) {
  const std::string stat = FirstLine("/proc/self/stat");
  static const double start = StartTime(stat);
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  list->Counter("process_cpu_seconds_total", "User and system time of the process, in seconds",
                seconds(usage.ru_utime) + seconds(usage.ru_stime));
  list->Gauge("process_start_time_seconds", "Start of the process, in seconds since 1970", start);
  list->Gauge("process_resident_memory_bytes", "Memory that the process holds in RAM, in bytes",
              static_cast<double>(ResidentBytes()));
  list->Gauge("process_virtual_memory_bytes", "Virtual memory of the process, in bytes",
              StatField(stat, 23));
  list->Gauge("process_threads", "Threads of the process", StatField(stat, 20));
  if (const auto open = ListDirectory("/proc/self/fd"); open.ok()) {
    list->Gauge("process_open_fds", "Open file descriptors", static_cast<double>(open->size()));
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    list->Gauge("process_max_fds", "Most file descriptors that may be open",
                static_cast<double>(limit.rlim_cur));
  }
  list->Gauge("muster_build_info", "1, with the release and the protocol of this process as labels",
              1, {{"version", Version()}, {"protocol", std::to_string(kProtocol)}});
}

}  // namespace mu
