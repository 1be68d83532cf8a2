#include "coordinator/cluster/loop.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::Eventually;
using testing::WaitWhile;

// Of a thread of this process. Its state follows its name, which may hold anything.
bool IsAsleep(pid_t thread) {
  std::ifstream file(absl::StrCat("/proc/self/task/", thread, "/stat"));
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] == 'S';
}

class LoopTest : public ::testing::Test {
 protected:
  void Start() {
    loop_.Start([this] { return alarm_; },
                [this] {
                  loop_.AssertHeld();
                  ++alarms_;
                  alarm_ = absl::InfiniteFuture();
                  loop_.LookAgain();
                });
  }
  void Add(std::string what) {
    loop_.Post([this, what = std::move(what)] { done_.push_back(what); });
  }
  std::vector<std::string> Done() {
    return loop_.Ask([this] { return done_; });
  }
  // The loop's own thread may have its first turn; after it, it sleeps until something is posted.
  bool RunsOnThisThread() {
    return loop_.Ask([] { return std::this_thread::get_id(); }) == std::this_thread::get_id();
  }

  absl::Time alarm_ = absl::InfiniteFuture();  // the loop's, once it runs
  int alarms_ = 0;
  std::vector<std::string> done_;
  Loop loop_;
};

TEST_F(LoopTest, JobsRunInTheOrderInWhichTheyWerePosted) {
  Start();
  for (const char* what : {"a", "b", "c"}) Add(what);
  EXPECT_EQ(Done(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(LoopTest, JobsThatAJobPostsRunAfterIt) {
  Start();
  loop_.Post([this] {
    Add("second");
    done_.push_back("first");
  });
  Done();
  EXPECT_EQ(Done(), (std::vector<std::string>{"first", "second"}));
}

// Nothing else would wake it: the alarm is far away.
TEST_F(LoopTest, WhatIsPostedWakesALoopThatSleeps) {
  std::atomic<pid_t> thread{0};
  std::atomic<int> passes{0};
  loop_.Start(
      [&] {
        thread = static_cast<pid_t>(::syscall(SYS_gettid));
        ++passes;
        return absl::InfiniteFuture();
      },
      [] {});
  for (int i = 1; i <= 3; ++i) {
    // What is asked before it waits does not count: it would look into its mailbox anyway.
    WaitWhile([&] { return passes < i || !IsAsleep(thread); });
    std::atomic<bool> done{false};
    loop_.Post([&] { done = true; });
    ASSERT_TRUE(Eventually([&] { return done.load(); }, absl::Seconds(10))) << i;
  }
}

TEST_F(LoopTest, AnAttemptIsMadeAgainWhenSomethingChangesUntilItSucceeds) {
  Start();
  Notification attempted;
  std::thread waiter([&] {
    EXPECT_TRUE(loop_.Await([&] {
      if (!attempted.HasBeenNotified()) attempted.Notify();
      return done_.size() == 2;
    }));
  });
  attempted.Wait();
  loop_.Ask([&] {
    loop_.AssertHeld();
    done_ = {"one", "two"};
    loop_.LookAgain();
  });
  waiter.join();
}

TEST_F(LoopTest, OneThatSucceedsMayLetAnotherSucceed) {
  Start();
  bool first = false, second = false;
  std::thread waiting([&] {
    loop_.Await([&] {
      loop_.AssertHeld();
      second = first;
      return second;
    });
  });
  loop_.Await([&] {
    loop_.AssertHeld();
    first = true;
    loop_.LookAgain();
    return true;
  });
  waiting.join();
  EXPECT_TRUE(second);
}

TEST_F(LoopTest, WhoWaitsForTheSameSucceedsInTurnAndCostsTheOthersNoAttempts) {
  constexpr int kWaiters = 20;
  Start();
  int room = 0, attempts = 0;
  std::vector<int> served;
  std::vector<std::thread> waiters;
  for (int i = 0; i < kWaiters; ++i) {
    waiters.emplace_back([&, i] {
      EXPECT_TRUE(loop_.AwaitTurn(1, [&, i] {
        loop_.AssertHeld();
        ++attempts;
        if (room == 0) return false;
        --room;
        served.push_back(i);
        return true;
      }));
    });
    // The first one makes an attempt, all others only wait behind it: so they have come.
    const int come = i + 1;
    WaitWhile([&] {
      return loop_.Ask([&] {
        loop_.AssertHeld();
        return static_cast<int>(loop_.waiting(1));
      }) < come;
    });
  }
  EXPECT_EQ(loop_.Ask([&] { return attempts; }), 1);
  for (int i = 0; i < kWaiters; ++i) {
    loop_.Ask([&] {
      loop_.AssertHeld();
      attempts = 0;
      room = 1;
      loop_.LookAgain();
    });
    loop_.Ask([&] {
      EXPECT_EQ(attempts, i + 1 < kWaiters ? 2 : 1) << "of who is served, and of the next";
      EXPECT_EQ(served.size(), static_cast<size_t>(i + 1));
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  for (int i = 0; i < kWaiters; ++i) EXPECT_EQ(served[static_cast<size_t>(i)], i);
}

TEST_F(LoopTest, WhoWaitsForItsTurnIsToldOfTheEnd) {
  Start();
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&] { EXPECT_FALSE(loop_.AwaitTurn(1, [] { return false; })); });
  }
  WaitWhile([&] {
    return loop_.Ask([&] {
      loop_.AssertHeld();
      return loop_.waiting(1);
    }) < 3;
  });
  loop_.Stop();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_FALSE(loop_.AwaitTurn(1, [] { return false; }));
  EXPECT_TRUE(loop_.AwaitTurn(1, [] { return true; }));
}

TEST_F(LoopTest, AnAttemptEndsAtItsTime) {
  Start();
  EXPECT_FALSE(loop_.Await([] { return false; }, SteadyNow() + absl::Milliseconds(5)));
  EXPECT_TRUE(loop_.Await([] { return true; }, SteadyNow() - absl::Seconds(1))) << "one is made";
}

TEST_F(LoopTest, TheAlarmComesWhenItIsDueAndOnce) {
  alarm_ = SteadyNow();
  Start();
  EXPECT_TRUE(loop_.Await([this] { return alarms_ > 0; }, SteadyNow() + absl::Seconds(30)));
  Done();
  EXPECT_EQ(loop_.Ask([this] { return alarms_; }), 1);
}

TEST_F(LoopTest, WhoAsksALoopThatSleepsNeedsNoOtherThread) {
  Start();
  EXPECT_TRUE(Eventually([this] { return RunsOnThisThread(); }));
  // Whatever is posted runs on the loop's own thread, so it never holds up who posts.
  Notification ran;
  std::thread::id runner;
  loop_.Post([&] {
    runner = std::this_thread::get_id();
    ran.Notify();
  });
  ran.Wait();
  EXPECT_NE(runner, std::this_thread::get_id());
}

TEST_F(LoopTest, WhatIsPostedDuringACallersJobRunsAfterItOnTheLoopsThread) {
  Start();
  ASSERT_TRUE(Eventually([this] { return RunsOnThisThread(); }));
  Notification ran;
  std::thread::id asked, posted;
  loop_.Ask([&] {
    asked = std::this_thread::get_id();
    loop_.Post([&] {
      posted = std::this_thread::get_id();
      ran.Notify();
    });
    EXPECT_FALSE(ran.HasBeenNotified());
  });
  ran.Wait();
  EXPECT_EQ(asked, std::this_thread::get_id());
  EXPECT_NE(posted, asked);
}

TEST_F(LoopTest, WhatACallersJobLeavesIsDoneByTheCallerWhenTheLoopIsFree) {
  Start();
  ASSERT_TRUE(Eventually([this] { return RunsOnThisThread(); }));
  std::vector<int> done;
  loop_.Bring([&] {
    EXPECT_TRUE(loop_.AfterCallersJob([&] {
      EXPECT_TRUE(RunsOnThisThread()) << "the loop must be free";
      done.push_back(2);
    }));
    done.push_back(1);
  });
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
  EXPECT_FALSE(loop_.AfterCallersJob([] {})) << "this is no job";
  Notification ran;
  loop_.Post([&] {
    EXPECT_FALSE(loop_.AfterCallersJob([] {})) << "the loop's own thread";
    ran.Notify();
  });
  ran.Wait();
}

TEST_F(LoopTest, ACallersJobMayBringTheAlarmForward) {
  Start();
  Done();
  loop_.Ask([this] { alarm_ = SteadyNow() + absl::Milliseconds(5); });
  EXPECT_TRUE(loop_.Await([this] { return alarms_ > 0; }, SteadyNow() + absl::Seconds(30)));
}

TEST_F(LoopTest, ManyThreadsAskAndPostAndNothingRunsAtTheSameTime) {
  constexpr int kThreads = 4, kJobs = 2000;
  Start();
  int64_t sum = 0;  // without a lock
  std::atomic<int> inside = 0;
  const auto job = [&] {
    EXPECT_EQ(inside.fetch_add(1), 0);
    ++sum;
    inside.fetch_sub(1);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < kJobs; ++n) {
        if ((n + i) % 3 == 0) {
          loop_.Post(job);
        } else if ((n + i) % 3 == 1) {
          loop_.Bring(job);
        } else {
          loop_.Ask(job);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loop_.Ask([&] { return sum; }), kThreads * kJobs);
}

TEST_F(LoopTest, WhatWasPostedBeforeTheEndIsDone) {
  Start();
  for (int i = 0; i < 100; ++i) Add("a");
  loop_.Stop();
  EXPECT_EQ(done_.size(), 100u);
}

TEST_F(LoopTest, AfterTheEndJobsRunWhereTheyComeFrom) {
  Start();
  loop_.Stop();
  Add("a");
  EXPECT_EQ(Done(), (std::vector<std::string>{"a"}));
  EXPECT_FALSE(loop_.Await([] { return false; })) << "nobody would tell it of a change";
  EXPECT_TRUE(loop_.Await([] { return true; }));
}

TEST_F(LoopTest, WhoStillWaitsAtTheEndIsLetGo) {
  Start();
  std::thread waiter([&] { EXPECT_FALSE(loop_.Await([] { return false; })); });
  loop_.Stop();
  waiter.join();
}

TEST_F(LoopTest, OnlyAJobMayTouchWhatIsTheLoops) {
  Start();
  EXPECT_DEATH(loop_.AssertHeld(), "check failed");
  loop_.Ask([this] { loop_.AssertHeld(); });
}

}  // namespace
}  // namespace mu
