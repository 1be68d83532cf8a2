#include "coordinator/cluster/loop.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"
#include "common/base/signal_stack.h"
#include "common/base/steady_now.h"

namespace mu {

void Loop::Start(std::function<absl::Time()> alarm, Job on_alarm) {
  alarm_ = std::move(alarm);
  on_alarm_ = std::move(on_alarm);
  {
    MutexLock lock(&mutex_);
    stopped_ = false;
  }
  thread_ = std::thread([this] {
    const SignalStack signal_stack;
    Run();
  });
}

void Loop::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_->SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Loop::AssertHeld() const { MU_CHECK(runner_.load() == std::this_thread::get_id()); }

std::shared_ptr<CondVar> Loop::Put(Job job) {
  mailbox_.push_back(std::move(job));
  // Whoever runs looks for more at its end.
  return running_ || mailbox_.size() > 1 ? nullptr : wake_;
}

void Loop::Post(Job job) {
  std::shared_ptr<CondVar> wake;
  {
    MutexLock lock(&mutex_);
    if (!stopped_) {
      wake = Put(std::move(job));
      if (wake == nullptr) return;
    }
  }
  wake != nullptr ? wake->SignalAll() : RunHere(job);
}

Loop::Where Loop::RunOrPost(const Job& job) {
  MU_CHECK(runner_.load() != std::this_thread::get_id());
  bool free = false;
  std::shared_ptr<CondVar> wake;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return Where::kEnded;
    free = !running_ && !due_ && !stopping_ && mailbox_.empty();
    if (free) {
      running_ = true;
    } else {
      wake = Put(job);
    }
  }
  if (wake != nullptr) wake->SignalAll();
  if (!free) return Where::kPosted;
  RunOnCaller(job);
  return Where::kHere;
}

void Loop::RunOnCaller(const Job& job) {
  runner_.store(std::this_thread::get_id());
  on_caller_ = true;
  RunOne(job);
  on_caller_ = false;
  const std::vector<Job> after = std::exchange(after_, {});
  const absl::Time next = Next();
  runner_.store({});
  std::shared_ptr<CondVar> wake;
  {
    MutexLock lock(&mutex_);
    running_ = false;
    if (due_ || !mailbox_.empty() || next < next_) wake = wake_;
    next_ = next;
  }
  if (wake != nullptr) wake->SignalAll();
  for (const Job& work : after) work();
}

void Loop::Bring(Job job) {
  if (RunOrPost(job) == Where::kEnded) RunHere(job);
}

bool Loop::AfterCallersJob(Job work) {
  if (runner_.load() != std::this_thread::get_id() || !on_caller_) return false;
  after_.push_back(std::move(work));
  return true;
}

void Loop::RunAndWait(const Job& job) {
  Notification done;
  switch (RunOrPost([&] {
    job();
    done.Notify();
  })) {
    case Where::kHere:
      return;
    case Where::kPosted:
      return done.Wait();
    case Where::kEnded:
      return RunHere(job);
  }
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
  const Where where = RunOrPost([this, waiter, turn] {
    Waiters& waiters = turn.has_value() ? turns_[*turn] : waiters_;
    const bool its_turn = !turn.has_value() || waiters.empty();
    waiter->succeeded = its_turn && waiter->attempt();
    if (waiter->succeeded || SteadyNow() >= waiter->until) {
      waiter->done.Notify();
    } else {
      waiters.push_back(waiter);
    }
  });
  if (where == Where::kEnded) {
    RunHere([&waiter] { waiter->succeeded = waiter->attempt(); });
  } else {
    waiter->done.Wait();
  }
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
    for (auto it = turns_.begin(); it != turns_.end();) {
      Waiters& waiters = it->second;
      while (!waiters.empty() && Succeeds(*waiters.front())) waiters.pop_front();
      it = waiters.empty() ? turns_.erase(it) : std::next(it);  // groups of functions come and go
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

absl::Time Loop::Next() const {
  absl::Time next = alarm_();
  for (const auto& waiter : waiters_) next = std::min(next, waiter->until);
  return next;
}

bool Loop::BeginTurn(std::vector<Job>* jobs) {
  MutexLock lock(&mutex_);
  while (true) {
    const absl::Duration left = next_ - SteadyNow();
    due_ = !mailbox_.empty() || stopping_ || left <= absl::ZeroDuration();
    if (due_ && !running_) break;
    if (due_ || next_ == absl::InfiniteFuture()) {
      wake_->Wait(&mutex_);
    } else {
      wake_->WaitFor(&mutex_, left);
    }
  }
  due_ = false;
  running_ = true;
  runner_.store(std::this_thread::get_id());
  jobs->swap(mailbox_);
  if (!stopping_ || !jobs->empty()) return true;
  // Nobody brings news any more. From here on jobs run where they come from.
  EndWaitersUntil(absl::InfiniteFuture());
  runner_.store({});
  stopped_ = true;
  return false;
}

void Loop::Run() {
  std::vector<Job> jobs;
  while (BeginTurn(&jobs)) {
    for (const Job& job : jobs) RunOne(job);
    jobs.clear();
    if (SteadyNow() >= alarm_()) RunOne(on_alarm_);
    EndWaitersUntil(SteadyNow());
    const absl::Time next = Next();
    runner_.store({});
    MutexLock lock(&mutex_);
    running_ = false;
    next_ = next;
  }
}

}  // namespace mu
