#include "psserver/compute_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace mu {
namespace {

TEST(ComputeThreadsTest, MakesEachPieceOnce) {
  for (const int threads : {0, 1, 2, 5}) {
    std::atomic<int> began = 0;
    ComputeThreads compute(threads, [&] { ++began; });
    for (const size_t count : {0, 1, 2, 3, 1000}) {
      began = 0;
      std::vector<int> made(count);
      compute.ForEach(count, [&](size_t i) { ++made[i]; });
      EXPECT_EQ(made, std::vector<int>(count, 1));
      EXPECT_EQ(began, static_cast<int>(count));
    }
  }
}

TEST(ComputeThreadsTest, PiecesAreMadeAtTheSameTime) {
  ComputeThreads compute(3);
  Notification came[3];
  compute.ForEach(3, [&](size_t i) {
    came[i].Notify();
    for (const Notification& other : came) EXPECT_TRUE(other.WaitFor(absl::Minutes(1)));
  });
}

// Whoever asks does not wait for threads that have something else to do.
TEST(ComputeThreadsTest, WithoutIdleThreadsTheCallerMakesAllPieces) {
  Notification go_on, came[2];
  ComputeThreads compute(2);
  for (Notification& task : came) {
    compute.Post([&] {
      task.Notify();
      go_on.Wait();
    });
  }
  for (const Notification& task : came) task.Wait();
  std::set<std::thread::id> threads;
  compute.ForEach(100, [&](size_t) { threads.insert(std::this_thread::get_id()); });
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
  go_on.Notify();
}

TEST(ComputeThreadsTest, TasksShareTheThreads) {
  std::atomic<int> made = 0;
  {
    ComputeThreads compute(2);
    for (int task = 0; task < 20; ++task) {
      compute.Post([&] { compute.ForEach(50, [&](size_t) { ++made; }); });
    }
  }
  EXPECT_EQ(made, 20 * 50) << "the end waits for what is queued";
}

}  // namespace
}  // namespace mu
