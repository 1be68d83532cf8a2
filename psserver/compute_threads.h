// Threads for what takes a server long to compute. The transport has few threads (gRPC's callbacks
// have half as many as there are cores, two at least): they bring heartbeats, and the pings by
// which others see that the server is there, so none of them may compute for seconds.
//
// Thread safe.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/rpc/thread_pool.h"

namespace mu {

class ComputeThreads {
 public:
  // 0: as many as the machine has cores, 16 at most. `at_piece` is called before each piece of
  // ForEach, on its thread.
  explicit ComputeThreads(int threads, std::function<void()> at_piece = nullptr);
  // Waits for what is queued: it runs first.
  ~ComputeThreads() = default;

  // Tasks begin in order, as many at a time as there are threads.
  void Post(std::function<void()> task) { pool_.Post(std::move(task)); }

  // Calls `piece` for 0 ... count - 1, each once, on this thread and on those of the threads that
  // have no task. Returns when all calls have returned. What a call computes must not depend on
  // which thread makes it, nor on the others.
  void ForEach(size_t count, absl::FunctionRef<void(size_t)> piece);

 private:
  struct Job;
  const int threads_;
  const std::function<void()> at_piece_;
  ThreadPool pool_;
};

}  // namespace mu
