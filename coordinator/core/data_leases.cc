#include "coordinator/core/data_leases.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status.h"

namespace mu {

DataLeases::DataLeases(pb::DatasetProto dataset, std::vector<FileLayout> files)
    : dataset_(std::move(dataset)), files_(std::move(files)) {
  LoadEpoch();
}

void DataLeases::LoadEpoch() {
  auto plan = EpochPlan::Make(dataset_, files_, epoch_);
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

bool DataLeases::TakeFrom(size_t lease, uint32_t* steps, std::vector<BatchRange>* out) {
  const uint32_t taken = std::min(*steps, Left(lease));
  if (taken == 0) return false;
  out->push_back({plan_.leases()[lease].lease, cursors_[lease].next_batch, taken});
  cursors_[lease].next_batch += taken;
  *steps -= taken;
  left_ -= taken;
  return true;
}

std::vector<BatchRange> DataLeases::Take(WorkerId worker, uint32_t steps) {
  std::vector<BatchRange> out;
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
  if (held != held_.end() && Left(held->second) * 2 > plan_.leases()[held->second].batches)
    return {};
  if (next_lease_ >= plan_.leases().size()) return {};
  return {*plan_.leases()[next_lease_].lease};
}

void DataLeases::Forget(WorkerId worker) {
  const auto held = held_.find(worker);
  if (held == held_.end()) return;
  if (Left(held->second) > 0) orphans_.push_back(held->second);
  held_.erase(held);
}

// Paths do not matter, so that data may be moved; what is in the files, in which order and how it
// is cut does.
uint64_t DataLeases::DataFingerprint() const {
  pb::DatasetProto dataset = dataset_;
  dataset.clear_id();
  dataset.clear_files();
  dataset.clear_epochs();
  uint64_t hash = HashString(dataset.SerializeAsString());
  for (const FileLayout& file : files_) hash = HashCombine(hash, file.records);
  return hash;
}

pb::DatasetPositionProto DataLeases::Position() const {
  pb::DatasetPositionProto position;
  position.set_name(dataset_.name());
  position.set_epoch(epoch_);
  position.set_next_lease(next_lease_);
  for (size_t lease = 0; lease < next_lease_; ++lease) {
    if (Left(lease) == 0) continue;
    pb::LeaseCursorProto& begun = *position.add_begun();
    begun.set_lease(lease);
    begun.set_next_batch(cursors_[lease].next_batch);
  }
  position.set_fingerprint(DataFingerprint());
  return position;
}

absl::Status DataLeases::Resume(const pb::DatasetPositionProto& position) {
  if (position.fingerprint() != DataFingerprint()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset '", dataset_.name(),
        "' is not the one that the checkpoint stopped in: its files, the number of their "
        "records, the batch size, the seed or the shuffling differ"));
  }
  StartEpoch(position.epoch());
  MU_RETURN_IF_ERROR(status_);
  if (position.next_lease() > cursors_.size())
    return absl::InvalidArgumentError("the position is beyond the data");
  next_lease_ = position.next_lease();
  for (size_t lease = 0; lease < next_lease_; ++lease)
    cursors_[lease].next_batch = plan_.leases()[lease].batches;
  for (const pb::LeaseCursorProto& begun : position.begun()) {
    if (begun.lease() >= next_lease_ ||
        begun.next_batch() > plan_.leases()[begun.lease()].batches) {
      return absl::InvalidArgumentError("the position is beyond the data");
    }
    cursors_[begun.lease()].next_batch = begun.next_batch();
    orphans_.push_back(begun.lease());
  }
  left_ = 0;
  for (size_t lease = 0; lease < cursors_.size(); ++lease) left_ += Left(lease);
  return absl::OkStatus();
}

uint64_t DataLeases::BatchesInEpoch(uint64_t epoch) const {
  if (epoch == epoch_) return plan_.batches();
  return EpochPlan::CountBatches(dataset_, files_, epoch);
}

}  // namespace mu
