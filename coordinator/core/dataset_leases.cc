#include "coordinator/core/dataset_leases.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace mu {

DatasetLeases::DatasetLeases(DataLayout data, DataLeases::Plan first) : data_(std::move(data)) {
  if (data_.dataset.visitation() != pb::VISITATION_NONE)
    shared_ = std::make_unique<DataLeases>(data_, 0, std::move(first));
}

DataLeases& DatasetLeases::Own(WorkerId worker) {
  const auto known = own_.find(worker);
  if (known != own_.end()) return known->second;
  DataLayout own = data_;
  own.dataset.set_seed(HashCombine(data_.dataset.seed(), uint64_t{worker.value()} + 1));
  const auto left = left_at_.find(worker);
  const uint64_t epoch = left == left_at_.end() ? first_epoch_ : left->second.epoch();
  return own_.try_emplace(worker, std::move(own), epoch, nullptr).first->second;
}

void DatasetLeases::Bring(WorkerId worker, DataLeases::Plan plan) {
  if (shared_ != nullptr) return shared_->Bring(std::move(plan));
  const auto own = own_.find(worker);
  if (own == own_.end()) return;  // it has left
  const bool first = own->second.plan() == nullptr;
  own->second.Bring(std::move(plan));
  const auto left = left_at_.find(worker);
  if (!first || own->second.plan() == nullptr || left == left_at_.end()) return;
  MU_CHECK(own->second.Resume(left->second).ok());  // of the same data
  left_at_.erase(left);
}

void DatasetLeases::Forget(WorkerId worker) {
  if (shared_ != nullptr) return shared_->Forget(worker);
  const auto it = own_.find(worker);
  if (it == own_.end()) return;
  if (it->second.plan() != nullptr) left_at_[worker] = it->second.Position();
  own_.erase(it);
  gone_.push_back(worker);
  if (gone_.size() <= kMostGone) return;
  const WorkerId oldest = gone_.front();
  gone_.pop_front();
  // It may have come back and left again since.
  if (std::find(gone_.begin(), gone_.end(), oldest) == gone_.end()) left_at_.erase(oldest);
}

void DatasetLeases::StartEpoch(uint64_t epoch, DataLeases::Plan plan) {
  if (shared_ != nullptr) shared_ = std::make_unique<DataLeases>(data_, epoch, std::move(plan));
  first_epoch_ = epoch;
  own_.clear();
  left_at_.clear();
  gone_.clear();
}

absl::Status DatasetLeases::Fits(const pb::DatasetPositionProto& position,
                                 const DataLeases::Plan& plan) const {
  return DataLeases(data_, plan->epoch(), plan).Resume(position);
}

void DatasetLeases::Resume(const pb::DatasetPositionProto& position, const DataLeases::Plan& plan) {
  StartEpoch(plan->epoch(), plan);
  if (shared_ != nullptr) MU_CHECK(shared_->Resume(position).ok());
}

}  // namespace mu
