#include "coordinator/core/dataset_leases.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace mu {

DatasetLeases::DatasetLeases(DataLayout data, DataLeases::Plan first) : data_(std::move(data)) {
  if (data_.dataset.visitation() != pb::VISITATION_NONE) {
    shared_ = std::make_unique<DataLeases>(data_, 0, std::move(first));
  } else {
    blocks_ = std::make_shared<const BlockIndex>(data_);
  }
}

OwnLeases& DatasetLeases::Own(WorkerId worker) {
  const auto known = own_.find(worker);
  if (known != own_.end()) return known->second;
  const uint64_t seed = HashCombine(data_.dataset.seed(), uint64_t{worker.value()} + 1);
  const auto left = left_at_.extract(worker);
  const OwnLeases::Place at = left.empty() ? OwnLeases::Place{first_epoch_} : left.mapped();
  return own_.try_emplace(worker, blocks_, seed, at).first->second;
}

std::optional<std::vector<BatchRange>> DatasetLeases::Take(WorkerId worker, uint32_t steps) {
  if (shared_ != nullptr) return shared_->Take(worker, steps);
  std::vector<BatchRange> batches = Own(worker).Take(steps);
  for (const BatchRange& range : batches) steps_taken_ += range.batches;
  return batches;
}

void DatasetLeases::SetStepsTaken(uint64_t steps) {
  if (shared_ == nullptr) steps_taken_ = steps;
}

std::shared_ptr<const pb::LeaseProto> DatasetLeases::Upcoming(WorkerId worker) {
  return shared_ != nullptr ? shared_->Upcoming(worker) : Own(worker).Upcoming();
}

std::optional<uint64_t> DatasetLeases::AskForPlan(uint32_t steps) {
  return shared_ != nullptr ? shared_->AskForPlan(steps) : std::nullopt;
}

void DatasetLeases::Bring(DataLeases::Plan plan) {
  if (shared_ != nullptr) shared_->Bring(std::move(plan));
}

void DatasetLeases::Forget(WorkerId worker) {
  if (shared_ != nullptr) return shared_->Forget(worker);
  const auto it = own_.find(worker);
  if (it == own_.end()) return;
  left_at_[worker] = it->second.place();
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
  steps_taken_ = 0;
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
