#include "psserver/core/ledger.h"

namespace mu {

Ledger::Answer Ledger::Begin(const PushId& push) {
  if (push.function < low_water_) return Answer::kStale;
  if (in_progress_.count(push) > 0) return Answer::kInProgress;
  if (applied_.Contains(push)) return Answer::kRepeat;
  if (!HasRoomFor(push)) return Answer::kFull;
  in_progress_.insert(push);
  return Answer::kFirst;
}

bool Ledger::HasRoomFor(const PushId& push) const {
  if (entries() + in_progress_.size() < most_) return true;
  // The next step of a function takes no entry of its own.
  if (push.step > 0 && applied_.Contains({push.function, push.step - 1, push.part})) return true;
  // The low-water mark waits for the oldest function: if that had no room, there never would be.
  return applied_.empty() || push.function <= applied_.oldest_function();
}

void Ledger::Finish(const PushId& push, bool applied) {
  if (in_progress_.erase(push) == 0 || !applied || push.function < low_water_) return;
  applied_.Add(push);
}

void Ledger::RaiseLowWater(uint64_t function) {
  if (function <= low_water_) return;
  low_water_ = function;
  applied_.ForgetBelow(function);
}

bool Ledger::InProgressBelow(uint64_t function) const {
  return !in_progress_.empty() && in_progress_.begin()->function < function;
}

void Ledger::Clear() {
  applied_.Clear();
  low_water_ = 0;
}

}  // namespace mu
