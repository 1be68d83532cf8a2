#include "worker/run_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/clock.h"
#include "common/env/deadline.h"
#include "worker/result_stream.h"

namespace mu {
namespace {

absl::Status Cancelled(uint64_t function) {
  return absl::CancelledError(absl::StrCat("function ", function, " was cancelled"));
}

// More than a worker ever has in flight.
constexpr size_t kRemembered = 1024;

void HandBack(FunctionRun& run) {
  run.HandBack();
  ResultStream(run.call()).HandBack();
  run.call()->Finish(absl::OkStatus());
}

}  // namespace

RunQueue::RunQueue(std::function<void(FunctionRun&)> execute, absl::Duration patience)
    : execute_(std::move(execute)),
      patience_ns_(absl::ToInt64Nanoseconds(patience)),
      thread_([this] { Loop(); }) {}

RunQueue::~RunQueue() { Shutdown(); }

void RunQueue::Add(std::shared_ptr<FunctionRun> run) {
  absl::Status refusal;
  bool draining;
  {
    MutexLock lock(&mutex_);
    draining = draining_;
    const uint64_t order = run->request().run();
    NoteArrival(order);
    if (!refusal_.ok()) {
      refusal = refusal_;
    } else if (run->id() < cancelled_below_) {
      refusal = Cancelled(run->id());
    } else if (!draining) {
      auto place = queue_.end();
      while (order != 0 && place != queue_.begin() &&
             std::prev(place)->run->request().run() > order)
        --place;
      queue_.insert(place, {next_arrival_++, run, Clock::Real()->Now() + patience_ns_});
    }
  }
  if (!refusal.ok()) {
    run->call()->Finish(refusal);
  } else if (draining) {
    HandBack(*run);
  }
}

void RunQueue::Refused(uint64_t run) {
  MutexLock lock(&mutex_);
  NoteArrival(run);
}

void RunQueue::NoteArrival(uint64_t run) {
  if (run != 0) arrived_.insert(run);
  if (arrived_.size() > kRemembered) arrived_.erase(arrived_.begin());
  changed_.SignalAll();
}

bool RunQueue::FirstIsDue(absl::Duration* wait) const {
  *wait = absl::InfiniteDuration();
  if (queue_.empty()) return false;
  const Entry& first = queue_.front();
  const uint64_t after = first.run->request().after();
  if (after == 0 || arrived_.contains(after)) return true;
  *wait = absl::Nanoseconds(first.patient_until_ns - Clock::Real()->Now());
  return *wait <= absl::ZeroDuration();
}

void RunQueue::CancelBelow(uint64_t below, std::function<void()> done) {
  {
    MutexLock lock(&mutex_);
    cancelled_below_ = std::max(cancelled_below_, below);
  }
  StopIf([below](const FunctionRun& run) { return run.id() < below; },
         absl::CancelledError("the function was cancelled"));
  std::vector<std::function<void()>> ready;
  {
    MutexLock lock(&mutex_);
    waiters_.push_back({below, next_arrival_, std::move(done)});
    ready = TakeDone();
  }
  for (const auto& call : ready) call();
}

void RunQueue::ForgetCancelled() {
  MutexLock lock(&mutex_);
  cancelled_below_ = 0;
}

void RunQueue::Reset(const absl::Status& why) {
  {
    MutexLock lock(&mutex_);
    cancelled_below_ = 0;
    arrived_.clear();
  }
  StopIf([](const FunctionRun&) { return true; }, why);
}

void RunQueue::Drain(absl::Duration patience) {
  std::deque<Entry> waiting;
  std::shared_ptr<FunctionRun> running;
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    waiting.swap(queue_);
    running = running_.run;
  }
  if (running != nullptr) running->HandBack();
  for (const Entry& entry : waiting) HandBack(*entry.run);
  const int64_t give_up_ns = DeadlineNs(*Clock::Real(), patience);
  MutexLock lock(&mutex_);
  while (running_.run != nullptr) {
    const int64_t left_ns = give_up_ns - Clock::Real()->Now();
    if (left_ns > 0) {
      changed_.WaitFor(&mutex_, absl::Nanoseconds(left_ns));
    } else {
      running_.run->Stop(absl::OkStatus());
      changed_.Wait(&mutex_);
    }
  }
}

void RunQueue::Shutdown() {
  const absl::Status why = absl::UnavailableError("the worker is shutting down");
  {
    MutexLock lock(&mutex_);
    if (refusal_.ok()) refusal_ = why;
  }
  StopIf([](const FunctionRun&) { return true; }, why);
  {
    MutexLock lock(&mutex_);
    shutdown_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

size_t RunQueue::active() const {
  MutexLock lock(&mutex_);
  return queue_.size() + (running_.run != nullptr ? 1 : 0);
}

void RunQueue::StopIf(const std::function<bool(const FunctionRun&)>& stop,
                      const absl::Status& why) {
  std::vector<std::shared_ptr<FunctionRun>> ended;
  std::shared_ptr<FunctionRun> running;
  {
    MutexLock lock(&mutex_);
    std::deque<Entry> left;
    for (Entry& entry : queue_) {
      if (stop(*entry.run)) {
        ended.push_back(std::move(entry.run));
      } else {
        left.push_back(std::move(entry));
      }
    }
    queue_.swap(left);
    if (running_.run != nullptr && stop(*running_.run)) running = running_.run;
  }
  if (running != nullptr) running->Stop(why);
  for (const auto& run : ended) {
    run->Stop(why);
    run->call()->Finish(why);
  }
}

std::vector<std::function<void()>> RunQueue::TakeDone() {
  // Only the run in execution can hold a waiter up: those that waited were taken out when it came.
  std::vector<std::function<void()>> done;
  auto keep = waiters_.begin();
  for (Waiter& waiter : waiters_) {
    const bool waits = running_.run != nullptr && running_.arrival < waiter.arrival &&
                       running_.run->id() < waiter.below;
    if (!waits) {
      done.push_back(std::move(waiter.done));
    } else {
      if (&*keep != &waiter) *keep = std::move(waiter);
      ++keep;
    }
  }
  waiters_.erase(keep, waiters_.end());
  return done;
}

void RunQueue::Loop() {
  while (true) {
    std::shared_ptr<FunctionRun> run;
    {
      MutexLock lock(&mutex_);
      absl::Duration wait;
      while (!FirstIsDue(&wait) && !shutdown_) {
        if (wait == absl::InfiniteDuration()) {
          changed_.Wait(&mutex_);
        } else {
          changed_.WaitFor(&mutex_, wait);
        }
      }
      if (queue_.empty()) return;
      running_ = std::move(queue_.front());
      queue_.pop_front();
      run = running_.run;
    }
    execute_(*run);
    std::vector<std::function<void()>> done;
    {
      MutexLock lock(&mutex_);
      running_ = {};
      done = TakeDone();
      changed_.SignalAll();
    }
    for (const auto& call : done) call();
  }
}

}  // namespace mu
