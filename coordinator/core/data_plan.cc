#include "coordinator/core/data_plan.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/hash.h"

namespace mu {
namespace {

constexpr uint64_t kMinBlockRecords = 256;
constexpr uint64_t kMaxBlockRecords = 65536;
// Without shuffling, leases are small enough to share work evenly and large enough to be worth a
// request.
constexpr uint64_t kOrderedLeaseRecords = 16384;

uint64_t BatchesOf(const pb::DatasetProto& dataset, uint64_t records) {
  return (records + dataset.batch_size() - 1) / dataset.batch_size();
}

uint64_t EpochSeed(const pb::DatasetProto& dataset, uint64_t epoch) {
  return HashCombine(HashCombine(dataset.seed(), 0x6c65617365), epoch);
}

// The blocks of which records are selected: how many of each. Calls visit(file, first, count) for
// each.
template <typename Visit>
std::vector<uint64_t> VisitBlocks(const DataLayout& data, const Visit& visit) {
  const uint64_t block_records = data.dataset.block_records();
  std::vector<uint64_t> selected;
  for (uint32_t file = 0; file < data.files->size(); ++file) {
    const uint64_t records = (*data.files)[file].records;
    for (uint64_t first = 0; first < records; first += block_records) {
      const uint64_t count = std::min(block_records, records - first);
      const uint64_t kept = SelectedRecords(data.dataset.records(), first, count);
      if (kept == 0) continue;
      visit(file, first, count);
      selected.push_back(kept);
    }
  }
  return selected;
}

uint64_t HashOf(const pb::FileLayoutProto& layout) {
  uint64_t hash = HashCombine(layout.records(), layout.bytes());
  for (const uint64_t offset : layout.offsets()) hash = HashCombine(hash, offset);
  for (const uint32_t beginning : layout.beginnings()) hash = HashCombine(hash, beginning);
  return hash;
}

// Where a lease ends, and what it holds.
struct LeaseEnd {
  size_t block = 0;  // of the order of blocks, the first that is no longer its own
  uint64_t records = 0;
};

// A lease of less than a batch would make all batches smaller than was asked for. It gets more
// blocks: at least a batch and, within kBatchesOfLengthened of them, as many as fill its batches
// best. Less than a batch is left only at the end of the data.
LeaseEnd Lengthened(LeaseEnd end, const std::vector<size_t>& order,
                    const std::vector<uint64_t>& selected, uint64_t batch) {
  const auto batches = [&](const LeaseEnd& of) { return (of.records + batch - 1) / batch; };
  LeaseEnd best = end;
  while (end.block < order.size()) {
    const uint64_t records = end.records + selected[order[end.block]];
    if (end.records >= batch && records > kBatchesOfLengthened * batch) break;
    end = {end.block + 1, records};
    const bool fuller = end.records * batches(best) > best.records * batches(end);
    if (best.records < batch || fuller) best = end;
    if (end.records % batch == 0) break;
  }
  return best;
}

// Calls visit(blocks, records, lengthened) for each lease of the epoch, with its blocks in their
// order.
template <typename Visit>
void VisitLeases(const pb::DatasetProto& dataset, const std::vector<uint64_t>& selected,
                 uint64_t epoch, const Visit& visit) {
  std::vector<size_t> order(selected.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (dataset.shuffle_records() > 0) {
    SplitMix random(EpochSeed(dataset, epoch));
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  }
  const uint64_t lease_records = LeaseRecords(dataset);
  for (size_t begin = 0; begin < order.size();) {
    LeaseEnd end = {begin, 0};
    while (end.block < order.size() &&
           (end.records == 0 || end.records + selected[order[end.block]] <= lease_records))
      end.records += selected[order[end.block++]];
    const size_t bounded = end.block;
    // A lease that holds a batch stays as it is: checkpoints know leases by their places.
    if (end.records < dataset.batch_size())
      end = Lengthened(end, order, selected, dataset.batch_size());
    visit(absl::MakeConstSpan(order).subspan(begin, end.block - begin), end.records,
          end.block > bounded);
    begin = end.block;
  }
}

}  // namespace

uint64_t LeaseRecords(const pb::DatasetProto& dataset) {
  return dataset.shuffle_records() > 0 ? dataset.shuffle_records() : kOrderedLeaseRecords;
}

pb::BlockProto BlockOf(const DataLayout& data, uint32_t file, uint64_t first, uint64_t count) {
  const FileLayout& layout = (*data.files)[file];
  pb::BlockProto block;
  block.set_file(file);
  block.set_first(first);
  block.set_count(static_cast<uint32_t>(count));
  if (const uint64_t i = first / data.dataset.block_records(); i < layout.marks.size()) {
    const uint64_t end = i + 1 < layout.marks.size() ? layout.marks[i + 1].offset : layout.bytes;
    block.set_offset(layout.marks[i].offset);
    block.set_bytes(end - layout.marks[i].offset);
    block.set_line(layout.marks[i].line);
    if (layout.beginnings.size() == layout.marks.size()) {
      block.set_file_bytes(layout.bytes);
      block.set_beginning(layout.beginnings[i]);
    }
  }
  return block;
}

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
    : records(proto.records()), bytes(proto.bytes()), contents(HashOf(proto)) {
  if (proto.offsets_size() != proto.lines_size()) return;
  for (int i = 0; i < proto.offsets_size(); ++i)
    marks.push_back({proto.offsets(i), proto.lines(i)});
  if (proto.beginnings_size() == proto.offsets_size())
    beginnings.assign(proto.beginnings().begin(), proto.beginnings().end());
}

uint64_t DataLayout::Fingerprint() const {
  pb::DatasetProto copy = dataset;
  copy.clear_id();
  copy.clear_files();
  copy.clear_epochs();
  // Bad records count in leases and batches either way, and of a lease that cannot be read whole no
  // batch is used. So a job that a bad record has ended may go on without such records.
  copy.clear_on_bad_record();
  uint64_t hash = HashString(copy.SerializeAsString());
  for (const FileLayout& file : *files) hash = HashCombine(hash, file.records);
  return hash;
}

absl::StatusOr<EpochPlan> EpochPlan::Make(const DataLayout& data, uint64_t epoch) {
  const pb::DatasetProto& dataset = data.dataset;
  std::vector<pb::BlockProto> blocks;
  const std::vector<uint64_t> selected =
      VisitBlocks(data, [&](uint32_t file, uint64_t first, uint64_t count) {
        blocks.push_back(BlockOf(data, file, first, count));
      });
  if (blocks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset '", dataset.name(), "': no record is left of its ",
                     data.files->size(), " files; look at `files` and `records`"));
  }
  const uint64_t epoch_seed = EpochSeed(dataset, epoch);
  EpochPlan plan;
  plan.epoch_ = epoch;
  VisitLeases(
      dataset, selected, epoch,
      [&](absl::Span<const size_t> own, uint64_t records, bool lengthened) {
        pb::LeaseProto lease;
        lease.set_dataset(dataset.id());
        lease.set_epoch(epoch);
        lease.set_index(plan.leases_.size());
        // 0 means "no permutation", so the seed is made odd.
        if (dataset.shuffle_records() > 0)
          lease.set_permutation(HashCombine(epoch_seed, plan.leases_.size()) | 1);
        for (const size_t block : own) *lease.add_blocks() = blocks[block];
        plan.leases_.push_back({std::make_shared<const pb::LeaseProto>(std::move(lease)), records,
                                static_cast<uint32_t>(BatchesOf(dataset, records))});
        plan.batches_ += plan.leases_.back().batches;
        plan.records_ += records;
        plan.lengthened_ = plan.lengthened_ || lengthened;
      });
  return plan;
}

std::vector<uint32_t> EpochPlan::BatchesOfLeases(const DataLayout& data, uint64_t epoch) {
  const std::vector<uint64_t> selected = VisitBlocks(data, [](uint32_t, uint64_t, uint64_t) {});
  std::vector<uint32_t> batches;
  VisitLeases(data.dataset, selected, epoch, [&](absl::Span<const size_t>, uint64_t records, bool) {
    batches.push_back(static_cast<uint32_t>(BatchesOf(data.dataset, records)));
  });
  return batches;
}

uint64_t EpochPlan::CountBatches(const DataLayout& data, uint64_t epoch) {
  const std::vector<uint32_t> leases = BatchesOfLeases(data, epoch);
  return std::accumulate(leases.begin(), leases.end(), uint64_t{0});
}

DataProgress ProgressAfter(const DataLayout& data, DataProgress at, uint64_t batches) {
  const uint64_t epochs = data.dataset.epochs();
  while (batches > at.left && (epochs == 0 || at.epoch + 1 < epochs)) {
    batches -= at.left;
    at.left = EpochPlan::CountBatches(data, ++at.epoch);
  }
  at.left -= std::min(at.left, batches);
  return at;
}

}  // namespace mu
