#include "worker/step_plan.h"

#include <algorithm>

namespace mu {

StepPlan::StepPlan(const std::vector<LeasedBatches>& ranges) : ranges_(ranges) {
  uint64_t end = 0;
  ends_.reserve(ranges.size());
  for (const auto& range : ranges) ends_.push_back(end += range.batches);
}

StepPlan::Place StepPlan::At(uint32_t step) const {
  const auto it = std::upper_bound(ends_.begin(), ends_.end(), uint64_t{step});
  if (it == ends_.end()) return {};
  const LeasedBatches& range = ranges_[static_cast<size_t>(it - ends_.begin())];
  const uint64_t begin = *it - range.batches;
  return {range.lease.get(), range.first_batch + static_cast<uint32_t>(step - begin)};
}

std::vector<const muster::LeaseProto*> StepPlan::LeasesFrom(uint32_t first_step) const {
  std::vector<const muster::LeaseProto*> leases;
  for (size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] > first_step) leases.push_back(ranges_[i].lease.get());
  }
  return leases;
}

}  // namespace mu
