// Stops a process so that it does nothing more once this has returned.
#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/wait.h"

namespace mu::testing {

// Whether no thread of it runs. A thread's state follows its name, which may hold anything.
inline bool IsSuspended(pid_t pid) {
  std::error_code error;
  for (const auto& thread :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), error)) {
    std::ifstream file(thread.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const size_t name_end = stat.rfind(") ");
    if (name_end == std::string::npos || stat[name_end + 2] != 'T') return false;
  }
  return !error;
}

// SIGSTOP takes effect when one of its threads next runs, the others go on until then: kill()
// returns earlier on a machine that is busy. False: there is no such process, or it cannot be
// stopped.
inline bool Suspend(pid_t pid) {
  return ::kill(pid, SIGSTOP) == 0 && Eventually([&] { return IsSuspended(pid); });
}

}  // namespace mu::testing
