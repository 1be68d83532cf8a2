#include "common/base/mutex.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

namespace mu {
namespace {

TEST(Mutex, Excludes) {
  Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) {
        MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40000);
}

TEST(CondVar, HandsOverItems) {
  Mutex mutex;
  CondVar changed;
  std::deque<int> queue;
  int sum = 0;
  std::thread consumer([&] {
    for (int i = 0; i < 1000; ++i) {
      MutexLock lock(&mutex);
      while (queue.empty()) changed.Wait(&mutex);
      sum += queue.front();
      queue.pop_front();
    }
  });
  for (int i = 0; i < 1000; ++i) {
    MutexLock lock(&mutex);
    queue.push_back(i);
    changed.Signal();
  }
  consumer.join();
  EXPECT_EQ(sum, 499500);
}

TEST(CondVar, WaitForTellsExpiryFromSignal) {
  Mutex mutex;
  CondVar changed;
  MutexLock lock(&mutex);
  EXPECT_TRUE(changed.WaitFor(&mutex, absl::Milliseconds(1)));
  bool ready = false;
  std::thread other([&] {
    MutexLock inner(&mutex);
    ready = true;
    changed.SignalAll();
  });
  bool expired = false;
  while (!ready && !expired) expired = changed.WaitFor(&mutex, absl::Seconds(30));
  EXPECT_TRUE(ready);
  mutex.Unlock();
  other.join();
  mutex.Lock();
}

TEST(Notification, WakesAllAndStays) {
  Notification notification;
  EXPECT_FALSE(notification.HasBeenNotified());
  EXPECT_FALSE(notification.WaitFor(absl::Milliseconds(1)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { notification.Wait(); });
  notification.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(notification.HasBeenNotified());
  EXPECT_TRUE(notification.WaitFor(absl::InfiniteDuration()));
  notification.Wait();
}

}  // namespace
}  // namespace mu
