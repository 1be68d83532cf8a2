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
    // The store is read no longer: what follows disturbs no restore.
    void DoneReading();

   private:
    friend class Saves;
    Job(Saves* saves, uint64_t attempt, uint64_t epoch)
        : saves_(saves), attempt_(attempt), epoch_(epoch) {}

    Saves* const saves_;
    const uint64_t attempt_;
    const uint64_t epoch_;
    // Guarded by saves_->mutex_.
    std::string cancelled_;
    bool reading_ = true;
    bool done_ = false;
    Result result_ = absl::UnknownError("the save has not ended");
  };

  // Runs `save` on this thread when its turn has come, or waits for the one with the same attempt
  // (0: has none).
  Result Run(uint64_t attempt, uint64_t epoch, const std::function<Result(Job*)>& save);
  // Ends the save that runs, if one does; `why` is what it reports.
  void Cancel(const std::string& why);
  // The same, and waits until it does not read the store any more.
  void CancelAndWait(const std::string& why);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Job> running_ ABSL_GUARDED_BY(mutex_);
  // The latest that ended well: a copy of a request that comes late must not write over the file of
  // an older checkpoint.
  std::deque<std::shared_ptr<Job>> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
