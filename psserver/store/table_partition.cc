#include "psserver/store/table_partition.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status.h"
#include "common/sharding/partition.h"

namespace mu {
namespace {

// Rows asked for ahead of their use: covers the latency of memory at a few nanoseconds per row.
constexpr size_t kPrefetchDistance = 12;
constexpr size_t kPrefetchMost = 64;
// Blocks with rows that one look at a partition passes: pushes wait meanwhile.
constexpr uint64_t kScanBlocks = 2048;

inline void CopyRow(float* out, const float* row, size_t dim) {
  // The common sizes with a length that the compiler knows.
  switch (dim) {
    case 8:
      std::memcpy(out, row, 8 * sizeof(float));
      return;
    case 16:
      std::memcpy(out, row, 16 * sizeof(float));
      return;
    case 32:
      std::memcpy(out, row, 32 * sizeof(float));
      return;
    default:
      std::memcpy(out, row, dim * sizeof(float));
  }
}

inline void PrefetchRow(const float* row, size_t floats) {
  for (size_t i = 0; i < floats; i += 16) __builtin_prefetch(row + i);
  // Rows that are no whole lines begin within one.
  if (floats % 16 != 0) __builtin_prefetch(row + floats - 1);
}

// True: it was not set before.
inline bool SetBit(uint64_t* words, uint64_t number) {
  uint64_t& word = words[number / 64];
  const uint64_t bit = uint64_t{1} << (number % 64);
  if ((word & bit) != 0) return false;
  word |= bit;
  return true;
}

int ShiftOf(uint32_t partitions) {
  return (partitions & (partitions - 1)) == 0 ? __builtin_ctz(partitions) : -1;
}

}  // namespace

TableDefinition::TableDefinition(const pb::TableProto& table)
    : proto(table),
      initializer(table.initializer(), table.name()),
      optimizer(table.optimizer(), table.dim()),
      dim(table.dim()),
      stride(dim + optimizer.slot_floats()),
      shift_(ShiftOf(table.partitions())) {}

TableDefinition::Columns TableDefinition::ColumnsOf(size_t part) const {
  if (part == 0) return {0, dim};
  size_t begin = dim;
  for (size_t k = 0; k + 1 < part; ++k) begin += optimizer.slots()[k].width;
  return {begin, optimizer.slots()[part - 1].width};
}

absl::StatusOr<std::unique_ptr<TablePartition>> TablePartition::Create(
    std::shared_ptr<const TableDefinition> definition, uint32_t partition) {
  const pb::TableProto& proto = definition->proto;
  auto result = std::unique_ptr<TablePartition>(new TablePartition(definition, partition));
  result->capacity_ = TablePartitionRows(proto.rows(), proto.partitions(), partition);
  // CheckTable has bounded both, and their product.
  const uint64_t bytes = result->capacity_ * result->row_bytes();
  MU_ASSIGN_OR_RETURN(result->memory_, ZeroMemory::Allocate(bytes));
  MU_ASSIGN_OR_RETURN(result->bitmap_, ZeroMemory::Allocate(result->words() * sizeof(uint64_t)));
  const uint64_t blocks = (result->words() + kBlockWords - 1) / kBlockWords;
  MU_ASSIGN_OR_RETURN(result->blocks_, ZeroMemory::Allocate((blocks + 63) / 64 * sizeof(uint64_t)));
  const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  MU_ASSIGN_OR_RETURN(result->pages_, ZeroMemory::Allocate((pages + 63) / 64 * sizeof(uint64_t)));
  result->rows_ = reinterpret_cast<float*>(result->memory_.data());
  result->exists_ = reinterpret_cast<uint64_t*>(result->bitmap_.data());
  result->used_ = reinterpret_cast<uint64_t*>(result->blocks_.data());
  result->touched_ = reinterpret_cast<uint64_t*>(result->pages_.data());
  return result;
}

void TablePartition::Prefetch(absl::Span<const int64_t> ids) const {
  const size_t count = std::min(ids.size(), kPrefetchMost);
  for (size_t i = 0; i < count; ++i) PrefetchRow(Row(ids[i]), definition_->dim);
}

bool TablePartition::Mark(uint64_t local) {
  const bool first_of_word = exists_[local / 64] == 0;
  if (!SetBit(exists_, local)) return false;
  if (first_of_word && SetBit(used_, local / 64 / kBlockWords)) ++used_blocks_;
  ++count_;
  CountPages(local);
  return true;
}

void TablePartition::CountPages(uint64_t local) {
  const uint64_t last = ((local + 1) * row_bytes() - 1) / kPageBytes;
  for (uint64_t page = local * row_bytes() / kPageBytes; page <= last; ++page)
    if (SetBit(touched_, page)) ++touched_pages_;
}

uint64_t TablePartition::NextWord(uint64_t word) const {
  while (word < words()) {
    const uint64_t block = word / kBlockWords;
    const uint64_t used = used_[block / 64] >> (block % 64);
    if (used == 0) {
      word = (block / 64 + 1) * 64 * kBlockWords;
      continue;
    }
    const uint64_t next = block + static_cast<uint64_t>(__builtin_ctzll(used));
    const uint64_t end = std::min(words(), (next + 1) * kBlockWords);
    for (word = std::max(word, next * kBlockWords); word < end; ++word)
      if (exists_[word] != 0) return word;
  }
  return words();
}

void TablePartition::CreateRow(int64_t id, uint64_t local) {
  const TableDefinition& table = *definition_;
  float* row = Row(id);
  table.initializer.FillRow(static_cast<uint64_t>(id), row, table.dim);
  float* slot = row + table.dim;
  for (const SlotLayout& layout : table.optimizer.slots()) {
    slot = std::fill_n(slot, layout.width, layout.initial);
  }
  Mark(local);
  if (cut_ != nullptr) cut_->Created(local);
}

void TablePartition::Pull(absl::Span<const int64_t> ids, bool read_only, float* out) {
  const TableDefinition& table = *definition_;
  const size_t dim = table.dim;
  MutexLock lock(&mutex_);
  load_.Read(ids.size() * (sizeof(int64_t) + dim * sizeof(float)));
  for (size_t i = 0; i < ids.size(); ++i, out += dim) {
    if (i + kPrefetchDistance < ids.size()) PrefetchRow(Row(ids[i + kPrefetchDistance]), dim);
    const uint64_t local = table.LocalRow(ids[i]);
    if (!Exists(local)) {
      if (read_only) {
        table.initializer.FillRow(static_cast<uint64_t>(ids[i]), out, dim);
        continue;
      }
      CreateRow(ids[i], local);
    }
    CopyRow(out, rows_ + local * table.stride, dim);
  }
}

void TablePartition::Push(absl::Span<const int64_t> ids, const float* gradients,
                          const StepRates& rates) {
  const TableDefinition& table = *definition_;
  MutexLock lock(&mutex_);
  ++updates_;
  load_.Updated(ids.size() * (sizeof(int64_t) + table.dim * sizeof(float)));
  for (size_t i = 0; i < ids.size(); ++i, gradients += table.dim) {
    if (i + kPrefetchDistance < ids.size())
      PrefetchRow(Row(ids[i + kPrefetchDistance]), table.stride);
    const uint64_t local = table.LocalRow(ids[i]);
    float* const row = rows_ + local * table.stride;
    if (!Exists(local)) CreateRow(ids[i], local);
    if (cut_ != nullptr) cut_->BeforeChange(local, row);
    table.optimizer.ApplyRow(rates, row, gradients);
  }
}

bool TablePartition::HasAll(absl::Span<const int64_t> ids) const {
  MutexLock lock(&mutex_);
  for (const int64_t id : ids)
    if (!Exists(definition_->LocalRow(static_cast<uint64_t>(id)))) return false;
  return true;
}

void TablePartition::AssignRows(absl::Span<const int64_t> ids, const float* values) {
  const TableDefinition& table = *definition_;
  MutexLock lock(&mutex_);
  load_.Updated(ids.size() * (sizeof(int64_t) + table.dim * sizeof(float)));
  for (const int64_t id : ids) {
    const uint64_t local = table.LocalRow(static_cast<uint64_t>(id));
    float* const row = rows_ + local * table.stride;
    if (!Exists(local)) CreateRow(id, local);
    if (cut_ != nullptr) cut_->BeforeChange(local, row);
    CopyRow(row, values, table.dim);
    table.optimizer.AdoptRow(row);
    values += table.dim;
  }
}

bool TablePartition::Scan(uint64_t* position, size_t most, std::vector<int64_t>* ids,
                          std::vector<float>* values) const {
  const TableDefinition& table = *definition_;
  const size_t before = ids->size();
  MutexLock lock(&mutex_);
  uint64_t local = std::min(*position, capacity_);
  uint64_t blocks = 0;
  uint64_t last_block = 0;
  while (ids->size() - before < most) {
    const uint64_t word = NextWord(local / 64);
    local = std::max(local, word * 64);
    if (local >= capacity_) break;
    if (blocks == 0 || word / kBlockWords != last_block) {
      if (++blocks > kScanBlocks) break;
      last_block = word / kBlockWords;
    }
    const uint64_t end = std::min(capacity_, (word + 1) * 64);
    for (; local < end && ids->size() - before < most; ++local) {
      if (!Exists(local)) continue;
      ids->push_back(static_cast<int64_t>(local * table.proto.partitions() + partition_));
      const float* const row = rows_ + local * table.stride;
      values->insert(values->end(), row, row + table.dim);
    }
  }
  load_.Read((ids->size() - before) * (sizeof(int64_t) + table.dim * sizeof(float)));
  *position = std::min(local, capacity_);
  return *position < capacity_;
}

TablePartition::Usage TablePartition::usage() const {
  MutexLock lock(&mutex_);
  // Small partitions are less than a page.
  const uint64_t values = std::min(touched_pages_ * kPageBytes, capacity_ * row_bytes());
  const uint64_t marks = std::min(used_blocks_ * kPageBytes, words() * sizeof(uint64_t));
  return {count_, count_ * row_bytes(), values + marks};
}

uint64_t TablePartition::rows() const {
  MutexLock lock(&mutex_);
  return count_;
}

uint64_t TablePartition::updates() const {
  MutexLock lock(&mutex_);
  return updates_;
}

PartitionLoad TablePartition::load() const {
  MutexLock lock(&mutex_);
  return load_;
}

void TablePartition::SetUpdates(uint64_t updates) {
  MutexLock lock(&mutex_);
  updates_ = updates;
}

std::vector<int64_t> TablePartition::Ids() const {
  std::vector<int64_t> ids;
  MutexLock lock(&mutex_);
  ids.reserve(count_);
  for (uint64_t word = NextWord(0); word < words(); word = NextWord(word + 1)) {
    for (uint64_t bits = exists_[word]; bits != 0; bits &= bits - 1) {
      const uint64_t local = word * 64 + static_cast<uint64_t>(__builtin_ctzll(bits));
      ids.push_back(static_cast<int64_t>(local * definition_->proto.partitions() + partition_));
    }
  }
  return ids;
}

void TablePartition::SetColumns(absl::Span<const int64_t> ids, size_t begin, size_t count,
                                const float* in) {
  MutexLock lock(&mutex_);
  for (const int64_t id : ids) {
    std::memcpy(Row(id) + begin, in, count * sizeof(float));
    Mark(definition_->LocalRow(id));
    in += count;
  }
}

}  // namespace mu
