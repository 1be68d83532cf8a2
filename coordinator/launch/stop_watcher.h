// Ends what a coordinator waits for once its user has asked to stop. A signal's handler can do no
// more than count, so somebody has to look at the count.
#pragma once

#include <atomic>
#include <thread>

#include "common/base/mutex.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

// For as long as it lives, `*stop` above 0 makes every call of the runtime fail with CANCELLED,
// those that wait too: for the time before anything is trained, when there is nothing to finish.
class StopWatcher {
 public:
  // Both outlive it; without `stop` it does nothing.
  StopWatcher(Runtime* runtime, const std::atomic<int>* stop);
  ~StopWatcher();
  StopWatcher(const StopWatcher&) = delete;

 private:
  void Watch();

  Runtime* const runtime_;
  const std::atomic<int>* const stop_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mu
