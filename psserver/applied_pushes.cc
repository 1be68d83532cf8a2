#include "psserver/applied_pushes.h"

#include <utility>

namespace mu {

Ledger::Answer AppliedPushes::Begin(const PushId& push, Waiter waiter) {
  MutexLock lock(&mutex_);
  const Ledger::Answer answer = ledger_.Begin(push);
  if (answer == Ledger::Answer::kInProgress) waiters_[push].push_back(std::move(waiter));
  return answer;
}

std::vector<AppliedPushes::Waiter> AppliedPushes::Finish(const PushId& push, bool remember) {
  std::vector<Waiter> waiters;
  MutexLock lock(&mutex_);
  ledger_.Finish(push, remember);
  if (const auto it = waiters_.find(push); it != waiters_.end()) {
    waiters = std::move(it->second);
    waiters_.erase(it);
  }
  finished_.SignalAll();
  return waiters;
}

void AppliedPushes::Raise(uint64_t function) {
  ledger_.RaiseLowWater(function);
  if (inherited_ == nullptr || ledger_.low_water() < prune_at_) return;
  auto pruned = std::make_shared<InheritedMemory>(*inherited_);
  pruned->RaiseLowWater(ledger_.low_water());
  prune_at_ = pruned->MiddleFunction();
  inherited_ = pruned->empty() ? nullptr : std::move(pruned);
}

void AppliedPushes::RaiseLowWater(uint64_t function) {
  MutexLock lock(&mutex_);
  Raise(function);
}

void AppliedPushes::Fence(uint64_t function) {
  MutexLock lock(&mutex_);
  Raise(function);
  while (ledger_.InProgressBelow(function)) finished_.Wait(&mutex_);
}

uint64_t AppliedPushes::low_water() const {
  MutexLock lock(&mutex_);
  return ledger_.low_water();
}

uint64_t AppliedPushes::remembered_steps() const {
  MutexLock lock(&mutex_);
  return ledger_.remembered_steps();
}

AppliedPushes::Usage AppliedPushes::usage() const {
  MutexLock lock(&mutex_);
  return {ledger_.entries() * AppliedSteps::kEntryBytes,
          ledger_.most() * AppliedSteps::kEntryBytes};
}

void AppliedPushes::Reset(uint64_t low_water, InheritedMemory inherited) {
  MutexLock lock(&mutex_);
  ledger_.Clear();
  prune_at_ = 0;
  inherited_ = std::make_shared<const InheritedMemory>(std::move(inherited));
  Raise(low_water);
}

std::vector<AppliedSteps::Range> AppliedPushes::Applied() const {
  MutexLock lock(&mutex_);
  return ledger_.applied().Ranges();
}

std::shared_ptr<const InheritedMemory> AppliedPushes::inherited() const {
  MutexLock lock(&mutex_);
  return inherited_;
}

}  // namespace mu
