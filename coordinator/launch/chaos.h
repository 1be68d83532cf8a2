// Carries out a ChaosPlan on local daemons: for users to see what preemptions do to their own job,
// and for bench/chaos.
//
// It signals processes and nothing else: the cluster does not know that its losses are made. Thread
// safe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "coordinator/launch/chaos_plan.h"

namespace mu {

class Chaos {
 public:
  struct Target {
    std::string name;  // "worker-0"
    pid_t pid = 0;
    bool worker = false;
  };
  // `targets` tells which daemons are up; `send` sends one of them a signal, and returns false if
  // it has ended meanwhile. Both are called on the chaos' thread, `send` also by the destructor.
  // What they look at must live until this object ends.
  Chaos(ChaosPlan plan, std::function<std::vector<Target>()> targets,
        std::function<bool(pid_t pid, int signal)> send);
  ~Chaos();  // wakes what hangs

 private:
  void Run(ChaosPlan plan);
  // False: no daemon of its kind is up, or it ended just now.
  bool Do(const ChaosEvent& event) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until `at`, waking those whose hang ends before. False: the end has come.
  bool WaitUntil(absl::Time at) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<std::vector<Target>()> targets_;
  const std::function<bool(pid_t pid, int signal)> send_;
  const absl::Time begin_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::multimap<absl::Time, Target>
      hanging_;  // by the time of their waking; the thread's own until it has ended
  std::thread thread_;
};

}  // namespace mu
