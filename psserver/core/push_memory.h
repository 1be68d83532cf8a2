// What a server knows of pushes: the ledger of those that it applied, what its restored state
// contained before, and the calls that wait for a push in progress.
//
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "psserver/core/inherited_memory.h"
#include "psserver/core/ledger.h"
#include "psserver/core/push.h"

namespace mu {

class PushMemory {
 public:
  // `most`: entries of the ledger.
  explicit PushMemory(size_t most) : ledger_(most) {}

  struct Waiter {
    PsCallId call;
    PushCounts counts;
  };

  // The counts of a push of these partitions, and the memory that says so (AdmittedPush).
  PushCounts Count(const PushId& push, const PushPartitions& partitions,
                   std::shared_ptr<const InheritedMemory>* inherited) const;
  // The ledger's answer. For kInProgress, `waiter` is kept until Finish.
  Ledger::Answer Begin(const PushId& push, const Waiter& waiter);
  // Ends a kFirst: it is to be remembered, or may come again. Returns those who wait for it.
  std::vector<Waiter> Finish(const PushId& push, bool remember);

  void RaiseLowWater(uint64_t function);
  bool InProgressBelow(uint64_t function) const { return ledger_.InProgressBelow(function); }
  // For a state that knows only what `inherited` says.
  void Reset(uint64_t low_water, InheritedMemory inherited);

  const Ledger& ledger() const { return ledger_; }
  // What the state knew before; nullptr: nothing that still matters.
  const std::shared_ptr<const InheritedMemory>& inherited() const { return inherited_; }

 private:
  Ledger ledger_;
  std::map<PushId, std::vector<Waiter>> waiters_;
  std::shared_ptr<const InheritedMemory> inherited_;
  uint64_t prune_at_ = 0;  // the low-water mark that makes it worth while
};

}  // namespace mu
