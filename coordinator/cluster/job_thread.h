// One thread that runs what it is given, in order: calls that block. Thread safe.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "common/base/mutex.h"

namespace mu {

class JobThread {
 public:
  ~JobThread() { Stop(); }
  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  // Not run after Stop.
  void Add(std::function<void()> job) {
    std::shared_ptr<CondVar> changed;
    {
      MutexLock lock(&mutex_);
      jobs_.push_back(std::move(job));
      if (jobs_.size() > 1) return;  // it was told of the one before
      changed = changed_;
    }
    changed->SignalAll();
  }
  // Waits for the job under way.
  void Stop() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_->SignalAll();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    while (true) {
      std::function<void()> job;
      {
        MutexLock lock(&mutex_);
        while (jobs_.empty() && !stopping_) changed_->Wait(&mutex_);
        if (stopping_) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job();
    }
  }

  Mutex mutex_;
  // Shared with who signals it: the thread may be gone as soon as its last job is added.
  const std::shared_ptr<CondVar> changed_ = std::make_shared<CondVar>();
  std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mu
