// One of the processes whose worker services bench/scale drives: hundreds of them, each with an
// address of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mu::scale {

struct HostOptions {
  // "join": workers that register with `coordinator` when SIGUSR1 comes. "serve": workers that
  // belong to whoever calls first; those that come back tell `coordinator` (DirectWorkers::Listen).
  // "echo": services that answer /bench/Echo with one message. "server": parameter servers that
  // register at once.
  std::string kind;
  std::string coordinator;
  int workers = 0;     // or other services
  double step_ms = 0;  // that each step waits
  // "join" and "serve", from SIGUSR1 on: workers that end and come back each second.
  double churn = 0;
  std::string log;    // what the workers saw, written on SIGTERM
  int ready_fd = -1;  // gets the addresses, with spaces between them
  int parent_fd = -1;
};

// Until SIGTERM. The exit code.
int RunHost(const HostOptions& options);

// What workers saw, by the steady clock of the machine.
struct HostLog {
  struct Interval {
    uint64_t from_ns = 0;
    uint64_t until_ns = 0;
  };
  std::vector<Interval> gaps;  // between the end of a function and the start of the next
  std::vector<Interval> up;    // from the registration of a worker to its end; open: until 2^64 - 1
  uint64_t steps = 0;          // that workers have run, repeated ones too
};
// NOT_FOUND if the host wrote none. Adds to `log`.
absl::Status ReadHostLog(const std::string& file, HostLog* log);

}  // namespace mu::scale
