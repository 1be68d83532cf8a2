// How long a job that was asked to stop waits for machines that are gone. Where all of it gets
// SIGTERM at once, none of them comes back.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_now.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

inline bool AskedToStop(const std::atomic<int>* stop) {
  return stop != nullptr && stop->load() > 0;
}

// Whether for long now nobody is there who could finish what runs: no worker, or a server is gone.
// Not thread safe.
class NobodyLeft {
 public:
  // The coordinator must outlive it.
  NobodyLeft(Coordinator* coordinator, absl::Duration patience)
      : coordinator_(coordinator), patience_(patience) {}

  // The time counts from the first call that finds it so.
  bool ForLong() {
    const RuntimeCounts counts = coordinator_->Counts();
    if (counts.workers_ready > 0 && counts.servers >= coordinator_->runtime().options().servers) {
      since_ = absl::InfiniteFuture();
      return false;
    }
    since_ = std::min(since_, SteadyNow());
    return SteadyNow() - since_ >= patience_;
  }

 private:
  Coordinator* const coordinator_;
  const absl::Duration patience_;
  absl::Time since_ = absl::InfiniteFuture();
};

// For as long as it lives: once `*stop` is above 0 and for `patience` nobody was left, whatever
// waits for servers to take a checkpoint, to load one or to serve fails with CANCELLED.
class StopPatience {
 public:
  // Both outlive it; without `stop` it does nothing.
  StopPatience(Coordinator* coordinator, const std::atomic<int>* stop, absl::Duration patience);
  ~StopPatience();
  StopPatience(const StopPatience&) = delete;
  StopPatience& operator=(const StopPatience&) = delete;

  // Of those who wait for something else. On any thread.
  bool over() const { return over_; }

 private:
  void Watch();

  Coordinator* const coordinator_;
  const std::atomic<int>* const stop_;
  NobodyLeft nobody_left_;  // the thread's
  std::atomic<bool> over_{false};
  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mu
