#include "coordinator/cluster/loop.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/steady_now.h"

namespace mu {

void Loop::Start(std::function<absl::Time()> alarm, Job on_alarm) {
  alarm_ = std::move(alarm);
  on_alarm_ = std::move(on_alarm);
  {
    MutexLock lock(&mutex_);
    stopped_ = false;
  }
  thread_ = std::thread([this] { Run(); });
}

void Loop::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    posted_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Loop::AssertHeld() const { MU_CHECK(runner_.load() == std::this_thread::get_id()); }

void Loop::Post(Job job) {
  {
    MutexLock lock(&mutex_);
    if (!stopped_) {
      mailbox_.push_back(std::move(job));
      if (mailbox_.size() == 1) posted_.SignalAll();
      return;
    }
  }
  RunHere(job);
}

bool Loop::RunAndWait(const Job& job) {
  MU_CHECK(runner_.load() != std::this_thread::get_id());
  Notification done;
  bool posted = false;
  {
    MutexLock lock(&mutex_);
    if (!stopped_) {
      posted = true;
      mailbox_.push_back([&] {
        job();
        done.Notify();
      });
      if (mailbox_.size() == 1) posted_.SignalAll();
    }
  }
  if (posted) {
    done.Wait();
  } else {
    RunHere(job);
  }
  return posted;
}

bool Loop::Await(std::function<bool()> attempt, absl::Time until) {
  auto waiter = std::make_shared<Waiter>();
  waiter->attempt = std::move(attempt);
  waiter->until = until;
  return Wait(waiter, std::nullopt);
}

bool Loop::AwaitTurn(Turn turn, std::function<bool()> attempt) {
  auto waiter = std::make_shared<Waiter>();
  waiter->attempt = std::move(attempt);
  waiter->until = absl::InfiniteFuture();
  return Wait(waiter, turn);
}

bool Loop::Wait(const std::shared_ptr<Waiter>& waiter, std::optional<Turn> turn) {
  const bool on_loop = RunAndWait([&] {
    const bool is_loop = std::this_thread::get_id() == loop_id_;
    Waiters& waiters = turn.has_value() && is_loop ? turns_[*turn] : waiters_;
    const bool its_turn = !turn.has_value() || !is_loop || waiters.empty();
    waiter->succeeded = its_turn && waiter->attempt();
    if (waiter->succeeded || SteadyNow() >= waiter->until) {
      waiter->done.Notify();
    } else if (is_loop) {
      waiters.push_back(waiter);
    }
  });
  if (on_loop) waiter->done.Wait();
  return waiter->succeeded;
}

void Loop::RunHere(const Job& job) {
  MutexLock lock(&here_);
  runner_.store(std::this_thread::get_id());
  job();
  runner_.store({});
}

void Loop::RunOne(const Job& job) {
  job();
  MakeAttempts();
}

bool Loop::Succeeds(Waiter& waiter) {
  if (!waiter.attempt()) return false;
  waiter.succeeded = true;
  waiter.done.Notify();
  return true;
}

void Loop::MakeAttempts() {
  while (std::exchange(look_again_, false)) {
    // An attempt may change what others wait for; none adds or removes a waiter.
    waiters_.remove_if([](const auto& waiter) { return Succeeds(*waiter); });
    for (auto& [turn, waiters] : turns_) {
      while (!waiters.empty() && Succeeds(*waiters.front())) waiters.pop_front();
    }
  }
}

void Loop::EndWaitersUntil(absl::Time now) {
  const auto end = [now](Waiters& waiters) {
    waiters.remove_if([now](const std::shared_ptr<Waiter>& waiter) {
      if (waiter->until > now) return false;
      waiter->done.Notify();
      return true;
    });
  };
  end(waiters_);
  if (now < absl::InfiniteFuture()) return;  // who waits for a turn waits for ever
  for (auto& [turn, waiters] : turns_) end(waiters);
}

void Loop::Run() {
  loop_id_ = std::this_thread::get_id();
  runner_.store(std::this_thread::get_id());
  while (true) {
    absl::Time next = alarm_();
    for (const auto& waiter : waiters_) next = std::min(next, waiter->until);
    std::vector<Job> jobs;
    bool ends = false;
    {
      MutexLock lock(&mutex_);
      while (mailbox_.empty() && !stopping_) {
        const absl::Duration left = next - SteadyNow();
        if (left <= absl::ZeroDuration()) break;
        if (next == absl::InfiniteFuture()) {
          posted_.Wait(&mutex_);
        } else {
          posted_.WaitFor(&mutex_, left);
        }
      }
      jobs.swap(mailbox_);
      ends = stopping_ && jobs.empty();
      if (ends) {
        // Nobody brings news any more. From here on jobs run where they come from.
        EndWaitersUntil(absl::InfiniteFuture());
        runner_.store({});
        stopped_ = true;
      }
    }
    if (ends) return;
    for (const Job& job : jobs) RunOne(job);
    if (SteadyNow() >= alarm_()) RunOne(on_alarm_);
    EndWaitersUntil(SteadyNow());
  }
}

}  // namespace mu
