#include "common/base/shared_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

TEST(SharedMutex, ReadersHoldItTogether) {
  SharedMutex mutex;
  Notification reads[2];
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      ReaderMutexLock lock(&mutex);
      reads[t].Notify();
      EXPECT_TRUE(reads[1 - t].WaitFor(testing::kPatience)) << "the other one has to wait";
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedMutex, AWriterHoldsItAlone) {
  SharedMutex mutex;
  int first = 0, second = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        {
          WriterMutexLock lock(&mutex);
          ++first;
          ++second;
        }
        ReaderMutexLock lock(&mutex);
        EXPECT_EQ(first, second);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first, 4000);
}

// Two readers hand it over again and again, each letting go when the other one has it, too: or, if
// a writer goes first, after a while.
TEST(SharedMutex, AWriterThatWaitsGoesBeforeNewReaders) {
  constexpr size_t kMost = 20000;
  SharedMutex mutex;
  std::vector<Notification> held(kMost);
  std::atomic<bool> written{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    held[0].Wait();
    WriterMutexLock lock(&mutex);
    written = true;
  });
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (size_t k = t; k < kMost; k += 2) {
        while (k > 0 && !held[k - 1].WaitFor(absl::Milliseconds(100))) {
          if (written) return;
        }
        if (written) return;
        ReaderMutexLock lock(&mutex);
        held[k].Notify();
        if (k + 1 < kMost) (void)held[k + 1].WaitFor(absl::Milliseconds(100));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(held[kMost - 1].HasBeenNotified()) << "it has waited for all of them";
}

}  // namespace
}  // namespace mu
