// The ledger of applied pushes with its lock and those who wait: repeats that arrive while the first is being applied,
// and fences.
//
// Thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "psserver/store/ledger.h"

namespace mu {

class AppliedPushes {
 public:
  // Called once with how the first push of that id ended.
  using Waiter = std::function<void(absl::Status)>;

  // The ledger's answer. For kInProgress, `waiter` is kept and called when the first ends (from Finish); otherwise it is
  // not called.
  Ledger::Answer Begin(const PushId& push, Waiter waiter);
  // Ends a kFirst: it was applied (OK) or refused.
  void Finish(const PushId& push, const absl::Status& status);

  void RaiseLowWater(uint64_t function);
  // The same; returns when no push below the mark is in progress.
  void Fence(uint64_t function);
  uint64_t low_water() const;
  uint64_t remembered_steps() const;
  // Forgets everything. No push is in progress.
  void Clear();

 private:
  mutable Mutex mutex_;
  CondVar finished_;
  Ledger ledger_ ABSL_GUARDED_BY(mutex_);
  std::map<PushId, std::vector<Waiter>> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
