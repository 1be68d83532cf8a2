#include "coordinator/core/own_leases.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "coordinator/core/permutation.h"

namespace mu {
namespace {

// How many blocks fill their batches best, within kBatchesOfLengthened of them; `of_block`: records
// of a block, less than a batch.
uint64_t BlocksOfWholeBatches(double batch, double of_block) {
  double best = 0, best_filled = 0;
  for (uint64_t batches = 1; batches <= kBatchesOfLengthened; ++batches) {
    const double records = static_cast<double>(batches) * batch;
    const double blocks = std::floor(records / of_block), filled = blocks * of_block / records;
    if (blocks * of_block < batch || filled <= best_filled) continue;
    best = blocks;
    best_filled = filled;
  }
  return static_cast<uint64_t>(best);
}

}  // namespace

BlockIndex::BlockIndex(DataLayout data) : data_(std::move(data)) {
  const uint64_t block_records = data_.dataset.block_records();
  first_of_file_.push_back(0);
  for (const FileLayout& file : *data_.files) {
    first_of_file_.push_back(first_of_file_.back() +
                             (file.records + block_records - 1) / block_records);
  }
  const uint64_t selected = SelectedRecords(data_.dataset.records(), 0, block_records);
  blocks_of_lease_ =
      std::max<uint64_t>(1, LeaseRecords(data_.dataset) / std::max<uint64_t>(1, selected));
  // As in a plan, a lease holds a batch. Blocks come in any order, so those that are shorter, at
  // the ends of files, count by the mean.
  double records = 0;
  for (const FileLayout& file : *data_.files) {
    records += static_cast<double>(SelectedRecords(data_.dataset.records(), 0, file.records));
  }
  if (records == 0) return;  // such data is refused
  const double batch = data_.dataset.batch_size();
  const double of_block = records / static_cast<double>(blocks());
  if (static_cast<double>(blocks_of_lease_) * of_block >= batch) return;
  blocks_of_lease_ = records <= batch ? blocks() : BlocksOfWholeBatches(batch, of_block);
}

pb::BlockProto BlockIndex::Block(uint64_t number, uint64_t* selected) const {
  const auto after = std::upper_bound(first_of_file_.begin(), first_of_file_.end(), number);
  const auto file = static_cast<uint32_t>(after - first_of_file_.begin() - 1);
  const uint64_t first = (number - first_of_file_[file]) * data_.dataset.block_records();
  const uint64_t count =
      std::min<uint64_t>(data_.dataset.block_records(), (*data_.files)[file].records - first);
  *selected = SelectedRecords(data_.dataset.records(), first, count);
  return BlockOf(data_, file, first, count);
}

OwnLeases::OwnLeases(std::shared_ptr<const BlockIndex> blocks, uint64_t seed, Place at)
    : blocks_(std::move(blocks)), seed_(seed), at_(at), next_batch_(at.next_batch) {}

OwnLeases::Made OwnLeases::Make(Place of) const {
  const pb::DatasetProto& dataset = blocks_->data().dataset;
  const uint64_t blocks = blocks_->blocks();
  // Each epoch has records, or the dataset would have been refused; so this ends within one.
  for (uint64_t looked_at = 0; looked_at <= blocks_->leases(); ++looked_at) {
    if (of.lease == blocks_->leases()) of = {of.epoch + 1, 0, 0};
    if (dataset.epochs() > 0 && of.epoch >= dataset.epochs()) break;
    const uint64_t epoch_seed = HashCombine(HashCombine(seed_, 0x6f776e), of.epoch);
    const Permutation order(blocks, epoch_seed);
    auto lease = std::make_shared<pb::LeaseProto>();
    lease->set_dataset(dataset.id());
    lease->set_epoch(of.epoch);
    lease->set_index(of.lease);
    if (dataset.shuffle_records() > 0)
      lease->set_permutation(HashCombine(epoch_seed, of.lease) | 1);  // 0: none
    uint64_t records = 0;
    const uint64_t first = of.lease * blocks_->blocks_of_lease();
    for (uint64_t i = first; i < std::min(blocks, first + blocks_->blocks_of_lease()); ++i) {
      uint64_t selected = 0;
      pb::BlockProto block =
          blocks_->Block(dataset.shuffle_records() > 0 ? order(i) : i, &selected);
      if (selected == 0) continue;
      records += selected;
      *lease->add_blocks() = std::move(block);
    }
    if (records > 0) {
      const uint64_t batch = dataset.batch_size();
      return {of, std::move(lease), static_cast<uint32_t>((records + batch - 1) / batch)};
    }
    ++of.lease;
  }
  return {of, nullptr, 0};
}

std::vector<BatchRange> OwnLeases::Take(uint32_t steps) {
  std::vector<BatchRange> taken;
  while (steps > 0) {
    if (!current_.has_value()) {
      current_ = next_.has_value() ? *std::exchange(next_, std::nullopt) : Make(at_);
      at_ = current_->of;
    }
    if (current_->lease == nullptr) break;
    const uint32_t count = std::min(steps, current_->batches - next_batch_);
    if (count > 0) taken.push_back({current_->lease, next_batch_, count});
    next_batch_ += count;
    steps -= count;
    if (next_batch_ < current_->batches) continue;
    at_ = {at_.epoch, at_.lease + 1, 0};
    next_batch_ = 0;
    current_.reset();
  }
  return taken;
}

std::shared_ptr<const pb::LeaseProto> OwnLeases::Upcoming() {
  if (current_.has_value() && current_->lease == nullptr) return nullptr;
  // Worth reading ahead only when the worker is well into the lease that it has.
  if (current_.has_value() && (current_->batches - next_batch_) * 2 > current_->batches)
    return nullptr;
  if (!next_.has_value()) {
    next_ = Make(current_.has_value() ? Place{at_.epoch, at_.lease + 1, 0} : at_);
  }
  return next_->lease;
}

}  // namespace mu
