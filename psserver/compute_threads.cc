#include "psserver/compute_threads.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "common/base/mutex.h"

namespace mu {
namespace {

int CountOf(int threads) {
  if (threads > 0) return threads;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
}

}  // namespace

// Shared with helpers, which may come when ForEach has returned.
struct ComputeThreads::Job {
  Job(size_t count, absl::FunctionRef<void(size_t)> piece, const std::function<void()>& at_piece)
      : count(count), piece(piece), at_piece(at_piece) {}

  const size_t count;
  const absl::FunctionRef<void(size_t)> piece;  // alive until `closed`
  const std::function<void()>& at_piece;        // the same
  std::atomic<size_t> next{0};

  Mutex mutex;
  CondVar left;
  int inside ABSL_GUARDED_BY(mutex) = 0;  // helpers
  bool closed ABSL_GUARDED_BY(mutex) = false;

  void Run() {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      if (at_piece) at_piece();
      piece(i);
    }
  }
  void Help() {
    {
      MutexLock lock(&mutex);
      if (closed) return;
      ++inside;
    }
    Run();
    MutexLock lock(&mutex);
    if (--inside == 0) left.SignalAll();
  }
  void Close() {
    MutexLock lock(&mutex);
    closed = true;
    while (inside > 0) left.Wait(&mutex);
  }
};

ComputeThreads::ComputeThreads(int threads, std::function<void()> at_piece)
    : threads_(CountOf(threads)), at_piece_(std::move(at_piece)), pool_(threads_) {}

void ComputeThreads::ForEach(size_t count, absl::FunctionRef<void(size_t)> piece) {
  const auto job = std::make_shared<Job>(count, piece, at_piece_);
  // Behind the tasks that wait: a thread comes to help only if it has nothing else to do. This one
  // waits for none that has not come.
  const size_t helpers = std::min(count, static_cast<size_t>(threads_));
  for (size_t h = 1; h < helpers; ++h) pool_.Post([job] { job->Help(); });
  job->Run();
  job->Close();
}

}  // namespace mu
