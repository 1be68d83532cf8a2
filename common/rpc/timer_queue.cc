#include "common/rpc/timer_queue.h"

#include "common/base/steady_now.h"

namespace mu {

TimerQueue::TimerQueue() : thread_([this] { Run(); }) {}

TimerQueue::~TimerQueue() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

TimerQueue& TimerQueue::Process() {
  static TimerQueue* queue = new TimerQueue;
  return *queue;
}

uint64_t TimerQueue::CallAt(absl::Time when, std::function<void()> task) {
  MutexLock lock(&mutex_);
  const uint64_t id = next_id_++;
  tasks_.emplace(std::make_pair(when, id), std::move(task));
  times_.emplace(id, when);
  if (tasks_.begin()->first.second == id) changed_.SignalAll();
  return id;
}

uint64_t TimerQueue::CallAfter(absl::Duration delay, std::function<void()> task) {
  return CallAt(SteadyNow() + delay, std::move(task));
}

bool TimerQueue::Cancel(uint64_t id) {
  std::function<void()> dropped;  // destroyed without the lock
  MutexLock lock(&mutex_);
  const auto time = times_.find(id);
  if (time == times_.end()) return false;
  const auto task = tasks_.find({time->second, id});
  dropped.swap(task->second);
  tasks_.erase(task);
  times_.erase(time);
  return true;
}

void TimerQueue::Run() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (!stopping_) {
        const absl::Duration wait =
            tasks_.empty() ? absl::Hours(1) : tasks_.begin()->first.first - SteadyNow();
        if (wait <= absl::ZeroDuration()) break;
        changed_.WaitFor(&mutex_, std::min(wait, absl::Hours(1)));
      }
      if (stopping_) return;
      task = std::move(tasks_.begin()->second);
      times_.erase(tasks_.begin()->first.second);
      tasks_.erase(tasks_.begin());
    }
    task();
  }
}

}  // namespace mu
