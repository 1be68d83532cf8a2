// The ledger of applied pushes with its lock and those who wait: repeats that arrive while the
// first is being applied, and fences.
//
// Thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "psserver/store/inherited_memory.h"
#include "psserver/store/ledger.h"

namespace mu {

class AppliedPushes {
 public:
  // `most`: entries of the ledger.
  explicit AppliedPushes(size_t most) : ledger_(most) {}

  // Called once with how the first push of that id ended.
  using Waiter = std::function<void(absl::Status)>;

  // The ledger's answer. For kInProgress, `waiter` is kept and called when the first ends (from
  // Finish); otherwise it is not called.
  Ledger::Answer Begin(const PushId& push, Waiter waiter);
  // Ends a kFirst: it is to be remembered, or may come again. Returns those who wait for it: call
  // them without locks.
  std::vector<Waiter> Finish(const PushId& push, bool remember);

  void RaiseLowWater(uint64_t function);
  // The same; returns when no push below the mark is in progress.
  void Fence(uint64_t function);
  uint64_t low_water() const;
  uint64_t remembered_steps() const;
  struct Usage {
    uint64_t bytes = 0;
    uint64_t most_bytes = 0;
  };
  // Without what is inherited: files bound that.
  Usage usage() const;
  // For a state that knows only what `inherited` says. No push is in progress.
  void Reset(uint64_t low_water, InheritedMemory inherited);

  // What this server applied since then.
  std::vector<AppliedSteps::Range> Applied() const;
  // What the state knew before; nullptr: nothing that still matters.
  std::shared_ptr<const InheritedMemory> inherited() const;

 private:
  void Raise(uint64_t function) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar finished_;
  Ledger ledger_ ABSL_GUARDED_BY(mutex_);
  std::map<PushId, std::vector<Waiter>> waiters_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const InheritedMemory> inherited_ ABSL_GUARDED_BY(mutex_);
  uint64_t prune_at_ ABSL_GUARDED_BY(mutex_) = 0;  // the low-water mark that makes it worth while
};

}  // namespace mu
