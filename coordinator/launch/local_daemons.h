// Real `worker` and `psserver` processes on this machine, supervised as a cluster manager would:
// one that ends is started again, with growing delay; one that the coordinator has declared silent
// and that does not come back is killed first. Thread safe. No daemon outlives this process,
// however it ends (parent pipe).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/env/subprocess.h"
#include "coordinator/launch/restart_policy.h"

namespace mu {

struct LocalDaemonsOptions {
  std::string binary_dir;  // where `worker` and `psserver` are
  bool http = false;       // each serves metrics at a free port of loopback
  std::string log_format = "text";
  int workers = 1;
  int ps = 1;
  std::string coordinator;  // address
  std::string log_dir;
  std::string cache_dir;
  bool restart_workers = true;
  bool restart_servers = true;
  // A daemon's process has ended; `message` says how, with its last lines. On a thread of the
  // supervisor, before another process takes its place.
  std::function<void(int64_t pid, const std::string& message)> died;
  // Whether the process belongs to the cluster (again).
  std::function<bool(int64_t pid)> is_member;
  // That a silent worker is given; its work is done elsewhere meanwhile
  absl::Duration wake_up = absl::Seconds(5);
  // A daemon ended before it ever served: the cluster will not come up.
  std::function<void(absl::Status)> cannot_start;
};

class LocalDaemons {
 public:
  // NOT_FOUND if a binary is missing.
  static absl::StatusOr<std::unique_ptr<LocalDaemons>> Start(LocalDaemonsOptions options);
  ~LocalDaemons();  // SIGTERM, then SIGKILL for who does not end within five seconds

  struct Process {
    std::string name;  // "worker-0", "psserver-1"
    pid_t pid;
  };
  // Those that run; not one that has ended and waits to be started again.
  std::vector<Process> Processes() const;
  // Sends a signal. False: no such process of ours runs any more; nobody else gets it.
  bool Signal(pid_t pid, int signal);

  // The coordinator has not heard of this process for too long. A server, which everybody waits
  // for, is killed at once, a worker unless it is a member again in time; both are started again
  // then. Nothing for a process that is not ours.
  void Silent(int64_t pid);

 private:
  struct Daemon {
    std::string name;
    std::string binary;
    std::string log_file;
    int index = 0;
    bool is_worker = false;
    std::unique_ptr<Subprocess> process;
    absl::Time started;
    absl::Time restart_at = absl::InfiniteFuture();
    absl::Time kill_at = absl::InfiniteFuture();
    std::unique_ptr<RestartPolicy> restarts;
    bool ever_served = false;
    bool exited = false;
    bool killed = false;  // by Signal; its end may not have been seen yet
    std::string exit_text;
  };
  explicit LocalDaemons(LocalDaemonsOptions options) : options_(std::move(options)) {}
  absl::Status StartDaemon(Daemon& daemon) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Supervise();
  void KillSilent();
  void HandleExit(Daemon& daemon, std::vector<std::function<void()>>* calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LocalDaemonsOptions options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<Daemon>> daemons_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread supervisor_;
};

// The last `lines` lines of a file; empty if it cannot be read.
std::string LastLinesOf(const std::string& path, int lines);

}  // namespace mu
