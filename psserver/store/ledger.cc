#include "psserver/store/ledger.h"

namespace mu {

Ledger::Answer Ledger::Begin(const PushId& push) {
  if (push.function < low_water_) return Answer::kStale;
  if (in_progress_.count(push) > 0) return Answer::kInProgress;
  const auto it = applied_.find({push.function, push.part});
  if (it != applied_.end() && (push.step < it->second.below || it->second.above.count(push.step) > 0)) {
    return Answer::kRepeat;
  }
  if (entries_ + in_progress_.size() >= most_) return Answer::kFull;
  in_progress_.insert(push);
  return Answer::kFirst;
}

void Ledger::Finish(const PushId& push, bool applied) {
  if (in_progress_.erase(push) == 0 || !applied || push.function < low_water_) return;
  const auto [it, created] = applied_.try_emplace({push.function, push.part});
  Steps& steps = it->second;
  const size_t before = steps.above.size();
  if (push.step == steps.below) {
    ++steps.below;
    while (!steps.above.empty() && *steps.above.begin() == steps.below) {
      steps.above.erase(steps.above.begin());
      ++steps.below;
    }
  } else {
    steps.above.insert(push.step);
  }
  ++remembered_steps_;
  entries_ += (created ? 1 : 0) + steps.above.size() - before;
}

void Ledger::RaiseLowWater(uint64_t function) {
  if (function <= low_water_) return;
  low_water_ = function;
  const auto end = applied_.lower_bound({function, 0});
  for (auto it = applied_.begin(); it != end; ++it) {
    remembered_steps_ -= it->second.size();
    entries_ -= 1 + it->second.above.size();
  }
  applied_.erase(applied_.begin(), end);
}

bool Ledger::InProgressBelow(uint64_t function) const {
  return !in_progress_.empty() && in_progress_.begin()->function < function;
}

void Ledger::Clear() {
  applied_.clear();
  entries_ = 0;
  remembered_steps_ = 0;
  low_water_ = 0;
}

}  // namespace mu
