// Whether a server's calls that touch files, or make and drop partitions, move: heartbeats tell the
// coordinator, which replaces a server whose disk hangs.
//
// Thread safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace mu {

class WorkProgress {
 public:
  // The calling thread executes such a call while this lives. Not for waits for other calls.
  class Scope {
   public:
    explicit Scope(WorkProgress* progress)
        : progress_(progress), outer_(std::exchange(current_, progress)) {
      progress_->executing_.fetch_add(1);
      Moved(1);  // no two calls are taken for one that stalls
    }
    Scope(const Scope&) = delete;
    ~Scope() {
      progress_->executing_.fetch_sub(1);
      current_ = outer_;
    }

   private:
    WorkProgress* const progress_;
    WorkProgress* const outer_;
  };

  // The calling thread has read, written, synced or filled so much, or has taken one more step that
  // may take seconds. Counts in its innermost Scope; nothing without one.
  static void Moved(uint64_t bytes) {
    if (current_ != nullptr) current_->moved_.fetch_add(bytes, std::memory_order_relaxed);
  }

  bool busy() const { return executing_.load() > 0; }
  uint64_t moved() const { return moved_.load(std::memory_order_relaxed); }

 private:
  static inline thread_local WorkProgress* current_ = nullptr;
  std::atomic<int> executing_{0};
  std::atomic<uint64_t> moved_{0};
};

}  // namespace mu
