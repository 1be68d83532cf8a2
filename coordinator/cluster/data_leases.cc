#include "coordinator/cluster/data_leases.h"

#include <algorithm>

namespace mu {

DataLeases::DataLeases(pb::DatasetProto dataset, std::vector<uint64_t> file_records)
    : dataset_(std::move(dataset)), file_records_(std::move(file_records)) {
  LoadEpoch();
}

void DataLeases::LoadEpoch() {
  auto plan = EpochPlan::Make(dataset_, file_records_, epoch_);
  status_ = plan.status();
  plan_ = plan.ok() ? *std::move(plan) : EpochPlan();
  cursors_.assign(plan_.leases().size(), Cursor());
  next_lease_ = 0;
  orphans_.clear();
  held_.clear();
  left_ = plan_.batches();
}

void DataLeases::StartEpoch(uint64_t epoch) {
  epoch_ = epoch;
  LoadEpoch();
}

uint32_t DataLeases::Left(size_t lease) const {
  return plan_.leases()[lease].batches - cursors_[lease].next_batch;
}

bool DataLeases::Exhausted() const {
  if (!status_.ok()) return true;
  const bool last_epoch = dataset_.epochs() > 0 && epoch_ + 1 >= dataset_.epochs();
  return left_ == 0 && last_epoch;
}

bool DataLeases::TakeFrom(size_t lease, uint32_t* steps, std::vector<pb::BatchRangeProto>* out) {
  const uint32_t taken = std::min(*steps, Left(lease));
  if (taken == 0) return false;
  pb::BatchRangeProto range;
  *range.mutable_lease() = plan_.leases()[lease].lease;
  range.set_first_batch(cursors_[lease].next_batch);
  range.set_batches(taken);
  out->push_back(std::move(range));
  cursors_[lease].next_batch += taken;
  *steps -= taken;
  left_ -= taken;
  return true;
}

std::vector<pb::BatchRangeProto> DataLeases::Take(WorkerId worker, uint32_t steps) {
  std::vector<pb::BatchRangeProto> out;
  while (steps > 0 && !Exhausted()) {
    if (left_ == 0) {
      ++epoch_;
      LoadEpoch();
      if (!status_.ok()) break;
    }
    if (const auto held = held_.find(worker); held != held_.end()) {
      if (TakeFrom(held->second, &steps, &out)) continue;
      held_.erase(held);
    }
    if (!orphans_.empty()) {
      held_[worker] = orphans_.back();
      orphans_.pop_back();
      continue;
    }
    if (next_lease_ < cursors_.size()) {
      held_[worker] = next_lease_++;
      continue;
    }
    // Nothing is left to begin: help where most is left, without making it one's own.
    size_t most = 0;
    uint32_t most_left = 0;
    for (const auto& [other, lease] : held_) {
      if (Left(lease) > most_left) {
        most = lease;
        most_left = Left(lease);
      }
    }
    if (most_left == 0) break;  // unreachable while left_ > 0
    TakeFrom(most, &steps, &out);
  }
  return out;
}

std::vector<pb::LeaseProto> DataLeases::Upcoming(WorkerId worker) const {
  const auto held = held_.find(worker);
  // Worth reading ahead only when the worker is well into the lease that it has.
  if (held != held_.end() && Left(held->second) * 2 > plan_.leases()[held->second].batches) return {};
  if (next_lease_ >= plan_.leases().size()) return {};
  return {plan_.leases()[next_lease_].lease};
}

void DataLeases::Forget(WorkerId worker) {
  const auto held = held_.find(worker);
  if (held == held_.end()) return;
  if (Left(held->second) > 0) orphans_.push_back(held->second);
  held_.erase(held);
}

uint64_t DataLeases::BatchesInEpoch(uint64_t epoch) const {
  if (epoch == epoch_) return plan_.batches();
  auto plan = EpochPlan::Make(dataset_, file_records_, epoch);
  return plan.ok() ? plan->batches() : 0;
}

}  // namespace mu
