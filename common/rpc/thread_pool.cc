#include "common/rpc/thread_pool.h"

#include <deque>
#include <thread>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/signal_stack.h"
#include "common/base/steady_now.h"

namespace mu {

// Shared with the threads: the pool may be destroyed by one of its own, which then finishes alone.
struct ThreadPool::Core {
  Core(int max_threads, absl::Duration idle) : max_threads(max_threads), idle_time(idle) {}

  const int max_threads;
  const absl::Duration idle_time;
  Mutex mutex;
  CondVar work;   // a task, or the end
  CondVar ended;  // a thread
  std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mutex);
  int threads ABSL_GUARDED_BY(mutex) = 0;
  int idle ABSL_GUARDED_BY(mutex) = 0;
  bool stopping ABSL_GUARDED_BY(mutex) = false;

  // Waits for a task; an empty function means that the thread may end.
  std::function<void()> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const absl::Time until = SteadyNow() + idle_time;
    ++idle;
    while (tasks.empty() && !stopping) {
      const absl::Duration left = until - SteadyNow();
      if (left <= absl::ZeroDuration()) break;
      work.WaitFor(&mutex, left);
    }
    --idle;
    if (tasks.empty()) return nullptr;
    std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    return task;
  }

  void Run() {
    while (true) {
      std::function<void()> task;
      {
        MutexLock lock(&mutex);
        task = Next();
        if (!task) {
          --threads;
          ended.SignalAll();
          return;
        }
      }
      task();
    }
  }
};

namespace {
thread_local const void* current_pool = nullptr;
}  // namespace

ThreadPool::ThreadPool(int max_threads, absl::Duration idle)
    : core_(std::make_shared<Core>(max_threads, idle)) {}

ThreadPool::~ThreadPool() {
  const int self = current_pool == core_.get() ? 1 : 0;
  MutexLock lock(&core_->mutex);
  core_->stopping = true;
  core_->work.SignalAll();
  while (core_->threads > self) core_->ended.Wait(&core_->mutex);
}

void ThreadPool::Post(std::function<void()> task) {
  const std::shared_ptr<Core> core = core_;  // the task may destroy the pool
  bool grow = false;
  {
    MutexLock lock(&core->mutex);
    core->tasks.push_back(std::move(task));
    // Threads that were woken for earlier tasks still count as idle until they run: compare with
    // all tasks.
    if (static_cast<size_t>(core->idle) < core->tasks.size() && core->threads < core->max_threads) {
      ++core->threads;
      grow = true;
    }
  }
  core->work.Signal();
  if (!grow) return;
  std::thread([core] {
    const SignalStack signal_stack;
    current_pool = core.get();
    core->Run();
  }).detach();
}

}  // namespace mu
