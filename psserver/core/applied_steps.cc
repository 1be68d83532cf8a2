#include "psserver/core/applied_steps.h"

#include <algorithm>
#include <iterator>

namespace mu {

bool AppliedSteps::Add(const PushId& push) {
  Steps& steps = functions_[{push.function, push.part}];
  const uint64_t step = push.step;
  const auto next = steps.upper_bound(step);
  const auto before = next == steps.begin() ? steps.end() : std::prev(next);
  if (before != steps.end() && step < before->second) return false;
  ++steps_;
  const bool joins_next = next != steps.end() && next->first == step + 1;
  if (before != steps.end() && before->second == step) {
    before->second = joins_next ? next->second : step + 1;
    if (joins_next) {
      steps.erase(next);
      --entries_;
    }
    return true;
  }
  const uint64_t end = joins_next ? next->second : step + 1;
  if (joins_next) {
    steps.erase(next);
    --entries_;
  }
  steps.emplace(step, end);
  ++entries_;
  return true;
}

void AppliedSteps::AddRange(const Range& range) {
  if (range.begin >= range.end) return;
  Steps& steps = functions_[{range.function, range.part}];
  uint64_t begin = range.begin, end = range.end;
  // Swallows all that it meets or touches.
  auto it = steps.upper_bound(begin);
  if (it != steps.begin() && std::prev(it)->second >= begin) --it;
  while (it != steps.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    steps_ -= it->second - it->first;
    --entries_;
    it = steps.erase(it);
  }
  steps.emplace(begin, end);
  steps_ += end - begin;
  ++entries_;
}

bool AppliedSteps::Contains(const PushId& push) const {
  const auto it = functions_.find({push.function, push.part});
  if (it == functions_.end()) return false;
  const auto next = it->second.upper_bound(push.step);
  return next != it->second.begin() && push.step < std::prev(next)->second;
}

void AppliedSteps::ForgetBelow(uint64_t function) {
  const auto end = functions_.lower_bound({function, 0});
  for (auto it = functions_.begin(); it != end; ++it) {
    entries_ -= it->second.size();
    for (const auto& [first, last] : it->second) steps_ -= last - first;
  }
  functions_.erase(functions_.begin(), end);
}

void AppliedSteps::Clear() {
  functions_.clear();
  entries_ = 0;
  steps_ = 0;
}

std::vector<AppliedSteps::Range> AppliedSteps::Ranges() const {
  std::vector<Range> ranges;
  ranges.reserve(entries_);
  for (const auto& [key, steps] : functions_) {
    for (const auto& [begin, end] : steps) ranges.push_back({key.first, key.second, begin, end});
  }
  return ranges;
}

uint64_t AppliedSteps::MiddleFunction() const {
  if (functions_.empty()) return 0;
  return std::next(functions_.begin(), static_cast<std::ptrdiff_t>(functions_.size() / 2))
      ->first.first;
}

}  // namespace mu
