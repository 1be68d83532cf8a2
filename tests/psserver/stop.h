// Stops the calls of a server that come to a moment (PsServerOptions::at).
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/mutex.h"

namespace mu::testing {

class Stop {
 public:
  void Hold(const std::string& moment) {
    MutexLock lock(&mutex_);
    held_ = moment;
  }
  void Release() {
    MutexLock lock(&mutex_);
    held_.clear();
    changed_.SignalAll();
  }
  void At(absl::string_view moment) {
    MutexLock lock(&mutex_);
    ++came_[std::string(moment)];
    changed_.SignalAll();
    while (held_ == moment) changed_.Wait(&mutex_);
  }
  void AwaitCalls(const std::string& moment, int count) {
    MutexLock lock(&mutex_);
    while (came_[moment] < count) changed_.Wait(&mutex_);
  }
  int calls(const std::string& moment) {
    MutexLock lock(&mutex_);
    return came_[moment];
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::string held_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> came_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu::testing
