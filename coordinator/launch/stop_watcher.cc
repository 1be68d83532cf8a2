#include "coordinator/launch/stop_watcher.h"

#include "absl/time/time.h"

namespace mu {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(50);

}  // namespace

StopWatcher::StopWatcher(Runtime* runtime, const std::atomic<int>* stop)
    : runtime_(runtime), stop_(stop) {
  if (stop_ != nullptr) thread_ = std::thread([this] { Watch(); });
}

StopWatcher::~StopWatcher() {
  {
    MutexLock lock(&mutex_);
    ended_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void StopWatcher::Watch() {
  while (stop_->load() == 0) {
    MutexLock lock(&mutex_);
    if (!ended_) changed_.WaitFor(&mutex_, kInterval);
    if (ended_) return;
  }
  runtime_->Fail(absl::CancelledError("stopped"));
}

}  // namespace mu
