#include "coordinator/core/per_worker_leases.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace mu {

DataLeases& PerWorkerLeases::Of(WorkerId worker) {
  const auto known = leases_.find(worker);
  if (known != leases_.end()) return known->second;
  pb::DatasetProto own = dataset_;
  own.set_seed(HashCombine(dataset_.seed(), uint64_t{worker.value()} + 1));
  DataLeases& leases = leases_.try_emplace(worker, std::move(own), files_).first->second;
  if (first_epoch_ > 0) leases.StartEpoch(first_epoch_);
  if (const auto left = left_at_.find(worker); left != left_at_.end()) {
    MU_CHECK(leases.Resume(left->second).ok());  // of the same data
    left_at_.erase(left);
  }
  return leases;
}

void PerWorkerLeases::Forget(WorkerId worker) {
  const auto it = leases_.find(worker);
  if (it == leases_.end()) return;
  left_at_[worker] = it->second.Position();
  leases_.erase(it);
  gone_.push_back(worker);
  if (gone_.size() <= kMostGone) return;
  const WorkerId oldest = gone_.front();
  gone_.pop_front();
  // It may have come back and left again since.
  if (std::find(gone_.begin(), gone_.end(), oldest) == gone_.end()) left_at_.erase(oldest);
}

void PerWorkerLeases::StartEpoch(uint64_t epoch) {
  first_epoch_ = epoch;
  leases_.clear();
  left_at_.clear();
  gone_.clear();
}

}  // namespace mu
