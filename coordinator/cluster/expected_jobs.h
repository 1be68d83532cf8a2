// Jobs that callbacks will bring to a loop, however late. Whoever ends waits until there are none:
// a callback uses what would be gone.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "common/base/mutex.h"
#include "coordinator/cluster/loop.h"

namespace mu {

class ExpectedJobs {
 public:
  // What a callback holds. Thread safe.
  class Token {
   public:
    explicit Token(ExpectedJobs* all) : all_(all) {}
    // Nobody calls the callback any more: there will be no job.
    ~Token() { Post(nullptr); }
    Token(const Token&) = delete;
    Token& operator=(const Token&) = delete;

    // Brings the job, which is expected no longer when it runs. Once.
    void Post(Loop::Job job) {
      ExpectedJobs* const all = all_.exchange(nullptr);
      if (all == nullptr) return;
      all->loop_.Post([all, job = std::move(job)] {
        all->loop_.AssertHeld();
        --all->count_;
        all->loop_.LookAgain();
        if (job != nullptr) job();
      });
    }

   private:
    std::atomic<ExpectedJobs*> all_;  // null: it has been brought
  };

  explicit ExpectedJobs(Loop* loop) : loop_(*loop) {}

  // From a job.
  std::shared_ptr<Token> Expect() {
    loop_.AssertHeld();
    ++count_;
    return std::make_shared<Token>(this);
  }
  bool none() const {
    loop_.AssertHeld();
    return count_ == 0;
  }

 private:
  Loop& loop_;
  int count_ ABSL_GUARDED_BY(loop_) = 0;
};

}  // namespace mu
