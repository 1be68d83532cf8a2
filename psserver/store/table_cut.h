// The rows of a table's partition as they were at a cut, while the rows themselves go on changing:
// which of them were created or changed since, and copies of those that the writer still needs.
//
// Not synchronised: guarded by its partition. A copy that cannot be made is reported to CutCopies;
// what this holds is worth nothing from then on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "psserver/store/cut_copies.h"
#include "psserver/store/zero_memory.h"

namespace mu {

class TableCut {
 public:
  // For rows 0 .. capacity-1 of `stride` floats. RESOURCE_EXHAUSTED. `copies` outlives it.
  static absl::StatusOr<std::unique_ptr<TableCut>> Create(uint64_t capacity, size_t stride,
                                                          CutCopies* copies);
  ~TableCut();

  // The partition's numbers at the cut.
  uint64_t rows = 0;
  uint64_t updates = 0;

  // The row came into being after the cut.
  void Created(uint64_t local) { touched_[local / 64] |= uint64_t{1} << (local % 64); }
  // Call before each change of a row.
  void BeforeChange(uint64_t local, const float* row) {
    if (local < written_ || ((touched_[local / 64] >> (local % 64)) & 1) != 0) return;
    Copy(local, row);
  }
  // Rows below `local` will not be asked for again.
  void Written(uint64_t local) { written_ = local; }

  // Of 64 rows, those that were created or copied.
  uint64_t touched(uint64_t word) const { return touched_[word]; }
  // The copy of a touched row; nullptr if it did not exist at the cut.
  const float* CopyOf(uint64_t local) const {
    const auto it = copy_of_.find(local);
    return it == copy_of_.end() ? nullptr : it->second;
  }

 private:
  TableCut(size_t stride, CutCopies* copies) : stride_(stride), copies_(copies) {}
  void Copy(uint64_t local, const float* row);

  const size_t stride_;
  CutCopies* const copies_;
  ZeroMemory bitmap_;
  uint64_t* touched_ = nullptr;
  uint64_t written_ = 0;
  absl::flat_hash_map<uint64_t, const float*> copy_of_;
  std::vector<ZeroMemory> chunks_;
  float* next_ = nullptr;  // room in the last chunk
  size_t room_ = 0;        // rows
  size_t counted_ = 0;     // bytes told to copies_
};

}  // namespace mu
