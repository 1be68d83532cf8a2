#include "psserver/core/push_memory.h"

#include <utility>

#include "psserver/core/protections.h"

namespace mu {

PushCounts PushMemory::Count(const PushId& push, const PushPartitions& partitions,
                             std::shared_ptr<const InheritedMemory>* inherited) const {
  PushCounts counts{partitions.count, 0};
  if (inherited_ == nullptr || MU_SERVER_BROKEN(inheritance) || !inherited_->Knows(push))
    return counts;
  partitions.for_each([&](const PartitionKey& partition) {
    if (inherited_->Contains(partition, push)) ++counts.inherited;
  });
  counts.updates -= counts.inherited;
  if (counts.inherited > 0) *inherited = inherited_;
  return counts;
}

Ledger::Answer PushMemory::Begin(const PushId& push, const Waiter& waiter) {
  const Ledger::Answer answer = ledger_.Begin(push);
  if (answer == Ledger::Answer::kInProgress) waiters_[push].push_back(waiter);
  return answer;
}

std::vector<PushMemory::Waiter> PushMemory::Finish(const PushId& push, bool remember) {
  ledger_.Finish(push, remember);
  std::vector<Waiter> waiters;
  if (const auto it = waiters_.find(push); it != waiters_.end()) {
    waiters = std::move(it->second);
    waiters_.erase(it);
  }
  return waiters;
}

void PushMemory::RaiseLowWater(uint64_t function) {
  ledger_.RaiseLowWater(function);
  if (inherited_ == nullptr || ledger_.low_water() < prune_at_) return;
  auto pruned = std::make_shared<InheritedMemory>(*inherited_);
  pruned->RaiseLowWater(ledger_.low_water());
  prune_at_ = pruned->MiddleFunction();
  inherited_ = pruned->empty() ? nullptr : std::move(pruned);
}

void PushMemory::Reset(uint64_t low_water, InheritedMemory inherited) {
  ledger_.Clear();
  prune_at_ = 0;
  inherited_ = std::make_shared<const InheritedMemory>(std::move(inherited));
  RaiseLowWater(low_water);
}

}  // namespace mu
