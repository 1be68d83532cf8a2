// One save at a time: who asks for another one waits in line, who asks for the same one (a repeat
// after a lost reply) gets the result of the first. A newer coordinator's save, and a restore, end
// the one that runs.
//
// Thread safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "proto/psserver.pb.h"

namespace mu {

class Saves {
 public:
  using Result = absl::StatusOr<muster::SaveReply>;

  // A save under way, as the one who runs it sees it.
  class Job {
   public:
    // ABORTED once the save has been cancelled.
    absl::Status GoOn() const;
    // Runs `read`, unless the save has been cancelled (ABORTED). Whoever cancels waits for it, so
    // it must not wait for a disk.
    absl::Status Read(const std::function<void()>& read);
    // `end` lets the store go. Runs once: at EndReading or when the save is cancelled, after the
    // last Read; at once if it is cancelled already.
    void OnEndOfReading(std::function<void()> end);
    // No Read follows. Returns when `end` has run.
    void EndReading();

   private:
    friend class Saves;
    Job(Saves* saves, uint64_t attempt, uint64_t epoch)
        : saves_(saves), attempt_(attempt), epoch_(epoch) {}

    absl::Status Cancelled() const;  // with saves_->mutex_ held

    Saves* const saves_;
    const uint64_t attempt_;
    const uint64_t epoch_;
    // Guarded by saves_->mutex_.
    std::string cancelled_;
    bool reading_ = false;  // Read or `end_` runs
    std::function<void()> end_;
    bool done_ = false;
    Result result_ = absl::UnknownError("the save has not ended");
  };

  // Runs `save` on this thread when its turn has come, or waits for the one with the same attempt
  // (0: has none).
  Result Run(uint64_t attempt, uint64_t epoch, const std::function<Result(Job*)>& save);
  // Ends the save that runs, if one does; `why` is what it reports.
  void Cancel(const std::string& why);
  // The same, and waits until it does not read the store any more. It may go on to wait for its
  // disk.
  void CancelAndWait(const std::string& why);

 private:
  // Waits for a Read, then runs the job's `end_` if that has not been done.
  void End(Job* job);

  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Job> running_ ABSL_GUARDED_BY(mutex_);
  // The latest that ended well: a copy of a request that comes late must not write over the file of
  // an older checkpoint.
  std::deque<std::shared_ptr<Job>> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
