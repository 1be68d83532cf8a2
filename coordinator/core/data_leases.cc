#include "coordinator/core/data_leases.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/core/data_contents.h"

namespace mu {

DataLeases::DataLeases(DataLayout data, uint64_t epoch, Plan plan)
    : data_(std::move(data)),
      fingerprint_(data_.Fingerprint()),
      contents_(ContentsOf(data_)),
      epoch_(epoch) {
  if (plan != nullptr) Bring(std::move(plan));
}

void DataLeases::BeginEpoch() {
  next_batch_.assign(plan()->leases().size(), 0);
  next_lease_ = 0;
  orphans_.clear();
  held_.clear();
  left_of_held_.clear();
  left_ = plan()->batches();
}

bool DataLeases::Plans(uint64_t epoch) const {
  return plans_.empty() || data_.dataset.epochs() == 0 || epoch < data_.dataset.epochs();
}

uint64_t DataLeases::Known() const {
  uint64_t batches = left_;
  for (size_t i = 1; i < plans_.size(); ++i) batches += plans_[i]->batches();
  return batches;
}

bool DataLeases::Exhausted() const {
  return plans_.size() == 1 && left_ == 0 && !Plans(epoch_ + 1);
}

std::optional<uint64_t> DataLeases::AskForPlan(uint32_t steps) {
  const uint64_t next = epoch_ + plans_.size();
  if (asked_ || !Plans(next)) return std::nullopt;
  // Early enough for it to be there when the first function needs it.
  const bool far = !plans_.empty() && left_ > plan()->batches() / 8;
  if (Known() >= steps && (far || plans_.size() > 1)) return std::nullopt;
  asked_ = true;
  return next;
}

void DataLeases::Bring(Plan plan) {
  if (plan->epoch() != epoch_ + plans_.size()) return;
  asked_ = false;
  plans_.push_back(std::move(plan));
  if (plans_.size() == 1) BeginEpoch();
}

uint32_t DataLeases::Left(size_t lease) const {
  return plan()->leases()[lease].batches - next_batch_[lease];
}

bool DataLeases::TakeFrom(size_t lease, uint32_t* steps, std::vector<BatchRange>* out) {
  const uint32_t taken = std::min(*steps, Left(lease));
  if (taken == 0) return false;
  out->push_back({plan()->leases()[lease].lease, next_batch_[lease], taken});
  next_batch_[lease] += taken;
  *steps -= taken;
  left_ -= taken;
  return true;
}

std::optional<std::vector<BatchRange>> DataLeases::Take(WorkerId worker, uint32_t steps) {
  if (Known() < steps && Plans(epoch_ + plans_.size())) return std::nullopt;
  std::vector<BatchRange> out;
  while (steps > 0) {
    if (left_ == 0) {
      if (plans_.size() == 1) break;
      plans_.pop_front();
      ++epoch_;
      BeginEpoch();
    }
    if (const auto held = held_.find(worker); held != held_.end()) {
      if (TakeFromHeld(held, &steps, &out)) continue;
      LetGo(held);
    }
    if (!orphans_.empty()) {
      Hold(worker, orphans_.back());
      orphans_.pop_back();
      continue;
    }
    if (next_lease_ < next_batch_.size()) {
      Hold(worker, next_lease_++);
      continue;
    }
    // Nothing is left to begin: help where most is left, without making it one's own.
    if (left_of_held_.empty() || left_of_held_.begin()->first == 0)
      break;  // unreachable while left_ > 0
    TakeFromHeld(held_.find(left_of_held_.begin()->second), &steps, &out);
  }
  return out;
}

bool DataLeases::TakeFromHeld(Held::iterator held, uint32_t* steps, std::vector<BatchRange>* out) {
  left_of_held_.erase({Left(held->second), held->first});
  const bool taken = TakeFrom(held->second, steps, out);
  left_of_held_.insert({Left(held->second), held->first});
  return taken;
}

void DataLeases::Hold(WorkerId worker, size_t lease) {
  held_[worker] = lease;
  left_of_held_.insert({Left(lease), worker});
}

void DataLeases::LetGo(Held::iterator held) {
  left_of_held_.erase({Left(held->second), held->first});
  held_.erase(held);
}

std::shared_ptr<const pb::LeaseProto> DataLeases::Upcoming(WorkerId worker) const {
  if (next_lease_ >= next_batch_.size()) return nullptr;
  // Worth reading ahead only when the worker is well into the lease that it has.
  const auto held = held_.find(worker);
  const auto& leases = plan()->leases();
  if (held != held_.end() && Left(held->second) * 2 > leases[held->second].batches) return nullptr;
  return leases[next_lease_].lease;
}

void DataLeases::Forget(WorkerId worker) {
  const auto held = held_.find(worker);
  if (held == held_.end()) return;
  if (Left(held->second) > 0) orphans_.push_back(held->second);
  LetGo(held);
}

uint64_t DataLeases::FingerprintOfPlan() const {
  if (plan() == nullptr || !plan()->lengthened()) return fingerprint_;
  return FingerprintOfLengthened(fingerprint_);
}

pb::DatasetPositionProto DataLeases::Position() const {
  pb::DatasetPositionProto position;
  position.set_name(data_.dataset.name());
  position.set_epoch(epoch_);
  position.set_next_lease(next_lease_);
  for (size_t lease = 0; lease < next_lease_; ++lease) {
    if (Left(lease) == 0) continue;
    pb::LeaseCursorProto& begun = *position.add_begun();
    begun.set_lease(lease);
    begun.set_next_batch(next_batch_[lease]);
  }
  position.set_fingerprint(FingerprintOfPlan());
  for (const uint64_t contents : contents_) position.add_contents(contents);
  return position;
}

absl::Status DataLeases::Resume(const pb::DatasetPositionProto& position) {
  MU_RETURN_IF_ERROR(CheckSameData(data_, position, data_.dataset));
  // Where no lease was begun it does not matter how they were cut.
  if (position.next_lease() > 0 && position.fingerprint() != FingerprintOfPlan()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset '", data_.dataset.name(),
        "': the checkpoint is of an earlier version, which cut these data into batches smaller "
        "than the batch size, and it stopped within an epoch; continue it with that version, or "
        "begin anew with its values (warm start)"));
  }
  const absl::Status beyond = absl::InvalidArgumentError("the position is beyond the data");
  const auto& leases = plan()->leases();
  if (position.epoch() != epoch_ || position.next_lease() > leases.size()) return beyond;
  next_lease_ = position.next_lease();
  for (size_t lease = 0; lease < next_lease_; ++lease) next_batch_[lease] = leases[lease].batches;
  for (const pb::LeaseCursorProto& begun : position.begun()) {
    if (begun.lease() >= next_lease_ || begun.next_batch() > leases[begun.lease()].batches)
      return beyond;
    next_batch_[begun.lease()] = begun.next_batch();
    orphans_.push_back(begun.lease());
  }
  left_ = 0;
  for (size_t lease = 0; lease < leases.size(); ++lease) left_ += Left(lease);
  return absl::OkStatus();
}

}  // namespace mu
