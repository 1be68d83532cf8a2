// Cuts of a table's partition: see TableCut.
#include <algorithm>
#include <cstring>
#include <utility>

#include "psserver/store/table_partition.h"

namespace mu {

absl::StatusOr<std::unique_ptr<TableCut>> TablePartition::PrepareCut(CutCopies* copies) const {
  return TableCut::Create(capacity_, definition_->stride, copies);
}

void TablePartition::BeginCut(std::unique_ptr<TableCut> cut) {
  MutexLock lock(&mutex_);
  cut->rows = count_;
  cut->updates = updates_;
  cut_ = std::move(cut);
}

uint64_t TablePartition::CutRows() const {
  MutexLock lock(&mutex_);
  return cut_ == nullptr ? 0 : cut_->rows;
}

uint64_t TablePartition::CutUpdates() const {
  MutexLock lock(&mutex_);
  return cut_ == nullptr ? 0 : cut_->updates;
}

template <typename Visit>
size_t TablePartition::VisitCut(uint64_t* position, size_t most, Visit visit) const {
  if (cut_ == nullptr) return 0;
  size_t given = 0;
  uint64_t local = *position;
  while (given < most) {
    const uint64_t word = NextWord(local / 64);
    local = std::max(local, word * 64);
    if (local >= capacity_) break;
    const uint64_t touched = cut_->touched(word);
    uint64_t bits = exists_[word] >> (local % 64) << (local % 64);
    for (local = (word + 1) * 64; bits != 0; bits &= bits - 1) {
      const uint64_t bit = static_cast<uint64_t>(__builtin_ctzll(bits));
      if (given == most) {
        local = word * 64 + bit;
        break;
      }
      const uint64_t row = word * 64 + bit;
      const float* data = rows_ + row * definition_->stride;
      if (((touched >> bit) & 1) != 0 && (data = cut_->CopyOf(row)) == nullptr)
        continue;  // created since
      visit(row, data);
      ++given;
    }
  }
  *position = local;
  return given;
}

size_t TablePartition::ReadCutIds(uint64_t* position, size_t most, int64_t* out) const {
  MutexLock lock(&mutex_);
  return VisitCut(position, most, [&](uint64_t local, const float*) {
    *out++ = static_cast<int64_t>(local * definition_->proto.partitions() + partition_);
  });
}

size_t TablePartition::ReadCut(uint64_t* position, size_t begin, size_t count, size_t most,
                               bool last, float* out) {
  MutexLock lock(&mutex_);
  const size_t given = VisitCut(position, most, [&](uint64_t, const float* row) {
    std::memcpy(out, row + begin, count * sizeof(float));
    out += count;
  });
  if (last && cut_ != nullptr) cut_->Written(*position);
  return given;
}

void TablePartition::EndCut() {
  std::unique_ptr<TableCut> cut;
  MutexLock lock(&mutex_);
  cut = std::move(cut_);
}

}  // namespace mu
