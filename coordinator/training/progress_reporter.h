// Calls a run's progress callback a few times a second from a thread of its own. Thread safe.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/training/train_job.h"

namespace mu {

class ProgressReporter {
 public:
  ProgressReporter(Coordinator* coordinator, int workers, int ps,
                   std::function<void(const Progress&)> callback);
  ~ProgressReporter();

  // A new phase with so many steps (0: not known).
  void Begin(const std::string& phase, uint64_t total_steps, uint32_t epochs = 0);
  // `total_steps` of the phase, as it is known by now.
  void Update(uint32_t epoch, uint64_t steps, uint64_t total_steps, uint64_t samples, double loss);
  // So many steps are still to run again, since servers were lost.
  void Repeating(uint64_t steps);

 private:
  void Run();
  Progress Now() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Coordinator* const coordinator_;
  const std::function<void(const Progress&)> callback_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  absl::Time phase_began_ ABSL_GUARDED_BY(mutex_);
  struct Point {
    absl::Time time;
    uint64_t steps;
    uint64_t samples;
  };
  std::deque<Point> recent_ ABSL_GUARDED_BY(mutex_);  // of the last seconds, for the rate
  std::thread thread_;
};

}  // namespace mu
