#include "psserver/applied_pushes.h"

#include <utility>

namespace mu {

Ledger::Answer AppliedPushes::Begin(const PushId& push, Waiter waiter) {
  MutexLock lock(&mutex_);
  const Ledger::Answer answer = ledger_.Begin(push);
  if (answer == Ledger::Answer::kInProgress) waiters_[push].push_back(std::move(waiter));
  return answer;
}

void AppliedPushes::Finish(const PushId& push, const absl::Status& status) {
  std::vector<Waiter> waiters;
  {
    MutexLock lock(&mutex_);
    ledger_.Finish(push, status.ok());
    if (const auto it = waiters_.find(push); it != waiters_.end()) {
      waiters = std::move(it->second);
      waiters_.erase(it);
    }
    finished_.SignalAll();
  }
  for (Waiter& waiter : waiters) waiter(status);
}

void AppliedPushes::RaiseLowWater(uint64_t function) {
  MutexLock lock(&mutex_);
  ledger_.RaiseLowWater(function);
}

void AppliedPushes::Fence(uint64_t function) {
  MutexLock lock(&mutex_);
  ledger_.RaiseLowWater(function);
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

void AppliedPushes::Clear() {
  MutexLock lock(&mutex_);
  ledger_.Clear();
}

}  // namespace mu
