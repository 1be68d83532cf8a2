#include "coordinator/training/stop_patience.h"

namespace mu {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);

}  // namespace

StopPatience::StopPatience(Coordinator* coordinator, const std::atomic<int>* stop,
                           absl::Duration patience)
    : coordinator_(coordinator), stop_(stop), nobody_left_(coordinator, patience) {
  if (stop_ != nullptr) thread_ = std::thread([this] { Watch(); });
}

StopPatience::~StopPatience() {
  {
    MutexLock lock(&mutex_);
    ended_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void StopPatience::Watch() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (!ended_) changed_.WaitFor(&mutex_, kLook);
      if (ended_) return;
    }
    if (stop_->load() == 0) continue;
    over_ = nobody_left_.ForLong();
    if (!over_) continue;
    coordinator_->runtime().GiveUpTasks(
        absl::CancelledError("stopped, and machines that are needed are gone"));
  }
}

}  // namespace mu
