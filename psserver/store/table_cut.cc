#include "psserver/store/table_cut.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status.h"

namespace mu {
namespace {

// Few rows may be changed in many partitions: chunks begin small and grow.
constexpr size_t kFirstChunkRows = 16;
constexpr size_t kMostChunkBytes = 1 << 20;
// What a copy costs in copy_of_.
constexpr size_t kIndexBytes = 32;

}  // namespace

absl::StatusOr<std::unique_ptr<TableCut>> TableCut::Create(uint64_t capacity, size_t stride,
                                                           CutCopies* copies) {
  auto cut = std::unique_ptr<TableCut>(new TableCut(stride, copies));
  MU_ASSIGN_OR_RETURN(cut->bitmap_, ZeroMemory::Allocate((capacity + 63) / 64 * 8));
  cut->touched_ = reinterpret_cast<uint64_t*>(cut->bitmap_.data());
  return cut;
}

TableCut::~TableCut() { copies_->Release(counted_); }

void TableCut::Copy(uint64_t local, const float* row) {
  const size_t row_bytes = stride_ * sizeof(float);
  if (room_ == 0) {
    const size_t rows = chunks_.empty() ? kFirstChunkRows : chunks_.back().size() / row_bytes * 2;
    const size_t bytes = std::max(row_bytes, std::min(rows * row_bytes, kMostChunkBytes));
    auto chunk = ZeroMemory::Allocate(bytes);
    if (!chunk.ok()) return copies_->Fail();
    next_ = reinterpret_cast<float*>(chunk->data());
    room_ = bytes / row_bytes;
    chunks_.push_back(*std::move(chunk));
  }
  std::memcpy(next_, row, row_bytes);
  copy_of_.emplace(local, next_);
  touched_[local / 64] |= uint64_t{1} << (local % 64);
  next_ += stride_;
  --room_;
  counted_ += row_bytes + kIndexBytes;
  copies_->Add(row_bytes + kIndexBytes);
}

}  // namespace mu
