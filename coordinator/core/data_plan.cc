#include "coordinator/core/data_plan.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace mu {
namespace {

constexpr uint64_t kMinBlockRecords = 256;
constexpr uint64_t kMaxBlockRecords = 65536;
// Without shuffling, leases are small enough to share work evenly and large enough to be worth a
// request.
constexpr uint64_t kOrderedLeaseRecords = 16384;

uint64_t LeaseRecords(const pb::DatasetProto& dataset) {
  return dataset.shuffle_records() > 0 ? dataset.shuffle_records() : kOrderedLeaseRecords;
}

uint64_t BatchesOf(const pb::DatasetProto& dataset, uint64_t records) {
  return (records + dataset.batch_size() - 1) / dataset.batch_size();
}

uint64_t EpochSeed(const pb::DatasetProto& dataset, uint64_t epoch) {
  return HashCombine(HashCombine(dataset.seed(), 0x6c65617365), epoch);
}

// In which order an epoch's leases take the blocks.
std::vector<size_t> OrderOf(const pb::DatasetProto& dataset, size_t blocks, uint64_t epoch) {
  std::vector<size_t> order(blocks);
  std::iota(order.begin(), order.end(), size_t{0});
  if (dataset.shuffle_records() > 0) {
    SplitMix random(EpochSeed(dataset, epoch));
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  }
  return order;
}

}  // namespace

uint64_t SelectedRecords(const pb::RecordSelectionProto& selection, uint64_t first,
                         uint64_t count) {
  const uint64_t modulo = selection.modulo();
  if (modulo == 0) return count;
  uint64_t selected = (count / modulo) * selection.keep_size();
  for (uint64_t i = first + count / modulo * modulo; i < first + count; ++i) {
    for (uint32_t keep : selection.keep()) selected += (i % modulo == keep) ? 1 : 0;
  }
  return selected;
}

uint32_t DefaultBlockRecords(const pb::DatasetProto& dataset) {
  const uint64_t batch = std::max<uint32_t>(1, dataset.batch_size());
  const uint64_t modulo = std::max<uint32_t>(1, dataset.records().modulo());
  const uint64_t block =
      batch * modulo * std::max<uint64_t>(1, kMinBlockRecords / (batch * modulo));
  return static_cast<uint32_t>(std::min(block, std::max(kMaxBlockRecords, batch)));
}

FileLayout::FileLayout(const pb::FileLayoutProto& proto)
    : records(proto.records()), bytes(proto.bytes()) {
  if (proto.offsets_size() != proto.lines_size()) return;
  for (int i = 0; i < proto.offsets_size(); ++i)
    marks.push_back({proto.offsets(i), proto.lines(i)});
}

uint64_t DataLayout::Fingerprint() const {
  pb::DatasetProto copy = dataset;
  copy.clear_id();
  copy.clear_files();
  copy.clear_epochs();
  uint64_t hash = HashString(copy.SerializeAsString());
  for (const FileLayout& file : *files) hash = HashCombine(hash, file.records);
  return hash;
}

absl::StatusOr<EpochPlan> EpochPlan::Make(const DataLayout& data, uint64_t epoch) {
  const pb::DatasetProto& dataset = data.dataset;
  const std::vector<FileLayout>& files = *data.files;
  const uint64_t block_records = dataset.block_records();
  std::vector<pb::BlockProto> blocks;
  std::vector<uint64_t> selected;
  for (size_t file = 0; file < files.size(); ++file) {
    const FileLayout& layout = files[file];
    for (uint64_t first = 0; first < layout.records; first += block_records) {
      const uint64_t count = std::min(block_records, layout.records - first);
      const uint64_t kept = SelectedRecords(dataset.records(), first, count);
      if (kept == 0) continue;
      pb::BlockProto block;
      block.set_file(static_cast<uint32_t>(file));
      block.set_first(first);
      block.set_count(static_cast<uint32_t>(count));
      if (const uint64_t i = first / block_records; i < layout.marks.size()) {
        const uint64_t end =
            i + 1 < layout.marks.size() ? layout.marks[i + 1].offset : layout.bytes;
        block.set_offset(layout.marks[i].offset);
        block.set_bytes(end - layout.marks[i].offset);
        block.set_line(layout.marks[i].line);
      }
      blocks.push_back(block);
      selected.push_back(kept);
    }
  }
  if (blocks.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("dataset '", dataset.name(),
                                                   "': no record is left of its ", files.size(),
                                                   " files; look at `files` and `records`"));
  }
  const std::vector<size_t> order = OrderOf(dataset, blocks.size(), epoch);
  const bool shuffle = dataset.shuffle_records() > 0;
  const uint64_t epoch_seed = EpochSeed(dataset, epoch), lease_records = LeaseRecords(dataset);
  EpochPlan plan;
  plan.epoch_ = epoch;
  for (size_t i = 0; i < order.size();) {
    PlannedLease planned;
    pb::LeaseProto lease;
    lease.set_dataset(dataset.id());
    lease.set_epoch(epoch);
    lease.set_index(plan.leases_.size());
    // 0 means "no permutation", so the seed is made odd.
    if (shuffle) lease.set_permutation(HashCombine(epoch_seed, plan.leases_.size()) | 1);
    while (i < order.size() &&
           (planned.records == 0 || planned.records + selected[order[i]] <= lease_records)) {
      *lease.add_blocks() = blocks[order[i]];
      planned.records += selected[order[i]];
      ++i;
    }
    planned.batches = static_cast<uint32_t>(BatchesOf(dataset, planned.records));
    planned.lease = std::make_shared<const pb::LeaseProto>(std::move(lease));
    plan.batches_ += planned.batches;
    plan.records_ += planned.records;
    plan.leases_.push_back(std::move(planned));
  }
  return plan;
}

uint64_t EpochPlan::CountBatches(const DataLayout& data, uint64_t epoch) {
  const pb::DatasetProto& dataset = data.dataset;
  std::vector<uint64_t> selected;
  for (const FileLayout& layout : *data.files) {
    for (uint64_t first = 0; first < layout.records; first += dataset.block_records()) {
      const uint64_t count = std::min<uint64_t>(dataset.block_records(), layout.records - first);
      const uint64_t kept = SelectedRecords(dataset.records(), first, count);
      if (kept > 0) selected.push_back(kept);
    }
  }
  const uint64_t lease_records = LeaseRecords(dataset);
  uint64_t batches = 0, records = 0;
  for (const size_t block : OrderOf(dataset, selected.size(), epoch)) {
    if (records > 0 && records + selected[block] > lease_records) {
      batches += BatchesOf(dataset, records);
      records = 0;
    }
    records += selected[block];
  }
  return batches + BatchesOf(dataset, records);
}

}  // namespace mu
