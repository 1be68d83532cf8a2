// What the kernel says of a process's times, for the benchmarks of restarts.
#pragma once

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace mu {

// Field `n` of /proc/PID/stat, counted from 1 as in proc(5), in seconds; the kernel counts in
// hundredths. 0: no process.
inline double StatSeconds(int64_t pid, int n) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  for (int i = 3; i <= n; ++i) fields >> field;
  return std::atof(field.c_str()) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

inline double SecondsSinceStart(int64_t pid) {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
         StatSeconds(pid, 22);
}

// Of all threads of this process, in the program and in the kernel.
inline double OwnCpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

}  // namespace mu
