// Notices a step that stands still, see step_watch.h.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "worker/step_watch.h"

namespace mu {

class StuckWatcher {
 public:
  // Calls `on_stuck`, once and on a thread of its own, when the place has not moved for `timeout`;
  // what it is given is what the step does there. Never if `timeout` is 0.
  StuckWatcher(std::function<StepWatch::Place()> place, absl::Duration timeout,
               std::function<void(const std::string& doing)> on_stuck)
      : place_(std::move(place)), on_stuck_(std::move(on_stuck)) {
    if (timeout > absl::ZeroDuration()) thread_ = std::thread([this, timeout] { Watch(timeout); });
  }
  ~StuckWatcher() {
    stop_.Notify();
    if (thread_.joinable()) thread_.join();
  }
  StuckWatcher(const StuckWatcher&) = delete;
  StuckWatcher& operator=(const StuckWatcher&) = delete;

  bool stuck() const { return stuck_; }

 private:
  void Watch(absl::Duration timeout) {
    constexpr int kLooks = 20;
    StuckDetector detector(kLooks);
    while (!stop_.WaitFor(timeout / kLooks)) {
      const StepWatch::Place place = place_();
      if (!detector.Look(place)) continue;
      stuck_ = true;
      return on_stuck_(place.doing);
    }
  }

  const std::function<StepWatch::Place()> place_;
  const std::function<void(const std::string& doing)> on_stuck_;
  std::atomic<bool> stuck_ = false;
  Notification stop_;
  std::thread thread_;
};

}  // namespace mu
