// Where the coordinator decides, and its mailbox. Whoever has news posts it; whoever wants to know
// something asks. State that belongs to the loop is ABSL_GUARDED_BY(loop) and needs no lock: jobs
// run one after the other, in the order in which they were posted.
//
// They run on a thread of the loop's own. A job whose caller waits for it runs on the caller's
// thread instead if nothing else runs or waits at that moment: two changes of threads less, and a
// program schedules each function so.
//
// Jobs must not block and must not Ask or Await. Lambdas that run as jobs begin with
// loop.AssertHeld(), which also tells the thread-safety analysis where they run.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace mu {

class ABSL_LOCKABLE Loop {
 public:
  using Job = std::function<void()>;
  ~Loop() { Stop(); }

  // `on_alarm` runs on the loop whenever alarm() is due, after all that had been posted by then.
  void Start(std::function<absl::Time()> alarm, Job on_alarm);
  // Runs what has been posted; then the thread has ended. From then on jobs run on the thread that
  // brings them, one at a time.
  void Stop();

  // Never blocks. Thread safe, also from a job while the loop runs.
  void Post(Job job);
  // For a thread that brings news and has time to have them handled: runs the job on this thread if
  // nothing else runs or waits, else posts it. Not from a job, nor with a lock that a job may want.
  void Bring(Job job);
  // From a job: `work` is done when the job is over and the loop free for others, by the thread on
  // which the job runs, if that is a caller's. False, and nothing happens: it is not.
  bool AfterCallersJob(Job work);
  // Runs `f` on the loop and waits for what it returns.
  template <typename F>
  std::invoke_result_t<F&> Ask(F&& f) {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      RunAndWait([&f] { f(); });
    } else {
      std::optional<std::invoke_result_t<F&>> result;
      RunAndWait([&f, &result] { result.emplace(f()); });
      return *std::move(result);
    }
  }
  // Runs `attempt` on the loop, again after each LookAgain, until it returns true; false if it has
  // not by `until`. After Stop: one attempt.
  bool Await(std::function<bool()> attempt, absl::Time until = absl::InfiniteFuture());
  // The same for many who wait for the same: they succeed in the order in which they came, and an
  // attempt is made only if nobody waits before it. So one who succeeds costs no attempts of the
  // others. `turn`: which queue. False after Stop, if the attempt fails then.
  using Turn = int;
  bool AwaitTurn(Turn turn, std::function<bool()> attempt);
  // How many wait for this turn.
  size_t waiting(Turn turn) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    const auto it = turns_.find(turn);
    return it == turns_.end() ? 0 : it->second.size();
  }
  // What attempts wait for may have changed; they are made again after the current job. An attempt
  // that fails must not say so.
  void LookAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) { look_again_ = true; }

  // Fails if this thread does not run a job.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK();

 private:
  struct Waiter {
    std::function<bool()> attempt;
    absl::Time until;
    bool succeeded = false;
    Notification done;
  };
  using Waiters = std::list<std::shared_ptr<Waiter>>;
  enum class Where { kHere, kPosted, kEnded };

  void Run();
  // Waits until the thread has something to do and nobody else runs. False: this is the end.
  bool BeginTurn(std::vector<Job>* jobs);
  void RunOne(const Job& job);
  // kHere: it has run on this thread. kEnded: the loop has ended, and nothing has happened.
  Where RunOrPost(const Job& job);
  void RunOnCaller(const Job& job);
  // Whom to wake; null: nobody.
  std::shared_ptr<CondVar> Put(Job job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunAndWait(const Job& job);
  bool Wait(const std::shared_ptr<Waiter>& waiter, std::optional<Turn> turn);
  // Made again: whether it has succeeded, and its thread been woken.
  static bool Succeeds(Waiter& waiter);
  // On this thread, since the loop has ended.
  void RunHere(const Job& job);
  void MakeAttempts();
  void EndWaitersUntil(absl::Time now);
  // When there is something to do even if nothing comes.
  absl::Time Next() const;

  std::function<absl::Time()> alarm_;
  Job on_alarm_;
  std::thread thread_;
  std::atomic<std::thread::id> runner_{};  // of the job under way

  Mutex mutex_;
  // Shared with who signals it: the loop may be gone as soon as its last job is posted.
  const std::shared_ptr<CondVar> wake_ = std::make_shared<CondVar>();
  std::vector<Job> mailbox_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;  // jobs run, on the thread or on a caller's
  // The thread has something to do, and waits for the end of a caller's job.
  bool due_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // Next(), after the last job
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = true;
  Mutex here_;  // held by RunHere

  // The loop's own.
  bool look_again_ = false;
  bool on_caller_ = false;         // the job under way runs on a caller's thread
  std::vector<Job> after_;         // AfterCallersJob
  Waiters waiters_;                // each for itself
  std::map<Turn, Waiters> turns_;  // in the order in which they came
};

}  // namespace mu
