#include "common/client/value_pieces.h"

#include <algorithm>

#include "common/base/status.h"

namespace mu {

int64_t RowsInPiece(uint64_t row_bytes, uint64_t piece_bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 40;  // sums of rows stay far from overflow
  return static_cast<int64_t>(
      std::clamp<uint64_t>(piece_bytes / std::max<uint64_t>(row_bytes, 1), 1, kMost));
}

absl::Status PullInPieces(ParameterAccess* access, const VariableRead& read, size_t row_bytes,
                          uint64_t piece_bytes) {
  if (row_bytes == 0) return absl::OkStatus();  // rows without columns may be any number
  const int64_t most = RowsInPiece(row_bytes, piece_bytes);
  for (int64_t begin = 0; begin < read.rows; begin += most) {
    const VariableRead piece{read.variable,
                             static_cast<char*>(read.out) + static_cast<size_t>(begin) * row_bytes,
                             read.first_row + begin, std::min(most, read.rows - begin)};
    MU_RETURN_IF_ERROR(access->Pull({&piece, 1}, {}));
  }
  return absl::OkStatus();
}

absl::Status PullInPieces(ParameterAccess* access, const RowsRead& read, size_t dim,
                          uint64_t piece_bytes) {
  const size_t most =
      static_cast<size_t>(RowsInPiece(dim * sizeof(float) + sizeof(int64_t), piece_bytes));
  for (size_t begin = 0; begin < read.ids.size(); begin += most) {
    const RowsRead piece{read.table, read.ids.subspan(begin, most), read.out + begin * dim};
    MU_RETURN_IF_ERROR(access->Pull({}, {&piece, 1}));
  }
  return absl::OkStatus();
}

}  // namespace mu
