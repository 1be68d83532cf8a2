// How a save reads the store: piece by piece, so that whoever ends the save waits for a piece and
// never for the disk.
//
// Thread safe.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace mu {

class SaveReading {
 public:
  // `goes_on`: not OK once the save has been ended. Not called with a lock held.
  explicit SaveReading(std::function<absl::Status()> goes_on) : goes_on_(std::move(goes_on)) {}

  absl::Status GoOn() const { return goes_on_(); }
  // Runs `read`, unless the save has been ended. Whoever ends it waits for `read`, so it must not
  // wait for a disk.
  absl::Status Read(const std::function<void()>& read);
  // `end` lets the store go. Runs once: at End, after the last Read; at once if the save has been
  // ended already.
  void OnEnd(std::function<void()> end);
  // No Read follows: the writer is done, or the save has been ended. Returns when `end` has run.
  void End();

 private:
  const std::function<absl::Status()> goes_on_;
  Mutex mutex_;
  CondVar changed_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;  // Read or `end_` runs
  std::function<void()> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
