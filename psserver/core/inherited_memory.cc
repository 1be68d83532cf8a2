#include "psserver/core/inherited_memory.h"

#include <algorithm>
#include <utility>

namespace mu {

size_t InheritedMemory::Add(AppliedSteps steps) {
  steps.ForgetBelow(low_water_);
  memories_.push_back(std::move(steps));
  return memories_.size() - 1;
}

void InheritedMemory::Inherit(const PartitionKey& partition, size_t memory) {
  inherited_[partition].insert(memory);
}

bool InheritedMemory::Contains(const PartitionKey& partition, const PushId& push) const {
  const auto it = inherited_.find(partition);
  if (it == inherited_.end()) return false;
  return std::any_of(it->second.begin(), it->second.end(),
                     [&](size_t memory) { return memories_[memory].Contains(push); });
}

bool InheritedMemory::Knows(const PushId& push) const {
  return std::any_of(memories_.begin(), memories_.end(),
                     [&](const AppliedSteps& steps) { return steps.Contains(push); });
}

void InheritedMemory::RaiseLowWater(uint64_t function) {
  if (function <= low_water_) return;
  low_water_ = function;
  for (AppliedSteps& steps : memories_) steps.ForgetBelow(function);
  if (!empty()) return;
  memories_.clear();
  inherited_.clear();
}

uint64_t InheritedMemory::MiddleFunction() const {
  const AppliedSteps* largest = nullptr;
  for (const AppliedSteps& steps : memories_) {
    if (largest == nullptr || steps.entries() > largest->entries()) largest = &steps;
  }
  // One more, so that raising the mark to it makes progress with a single function too.
  return largest == nullptr || largest->empty() ? 0 : largest->MiddleFunction() + 1;
}

size_t InheritedMemory::entries() const {
  size_t entries = 0;
  for (const AppliedSteps& steps : memories_) entries += steps.entries();
  return entries;
}

std::vector<size_t> InheritedMemory::MemoriesOf(const PartitionKey& partition) const {
  const auto it = inherited_.find(partition);
  if (it == inherited_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

}  // namespace mu
