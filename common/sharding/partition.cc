#include "common/sharding/partition.h"

#include <algorithm>

#include "common/tensor/dtype.h"

namespace mu {
namespace {

constexpr int64_t kDefaultPartitionBytes = 256 << 10;
constexpr int64_t kDefaultPieces = 64;
// More pieces than this only cost memory for routing; a partitioner that asks for more gets this
// many.
constexpr int64_t kMostPieces = 1 << 16;

int64_t PiecesOfAtLeast(const RowLayout& layout, int64_t bytes) {
  const int64_t row_bytes = std::max<int64_t>(1, layout.bytes_per_row);
  const int64_t rows = std::max<int64_t>(1, (bytes + row_bytes - 1) / row_bytes);
  return std::max<int64_t>(1, layout.rows / rows);
}

int64_t PiecesOfAtMost(const RowLayout& layout, int64_t bytes) {
  const int64_t rows = std::max<int64_t>(1, bytes / std::max<int64_t>(1, layout.bytes_per_row));
  return (layout.rows + rows - 1) / rows;
}

constexpr int64_t ClampBytes(uint64_t bytes) {
  return static_cast<int64_t>(std::min<uint64_t>(bytes, uint64_t{1} << 62));
}

}  // namespace

RowLayout LayoutOf(const muster::VariableProto& variable) {
  RowLayout layout;
  const auto& dims = variable.shape().dims();
  if (!dims.empty()) layout.rows = dims[0];
  for (int axis = 1; axis < dims.size(); ++axis) layout.elements_per_row *= dims[axis];
  layout.bytes_per_row =
      layout.elements_per_row * static_cast<int64_t>(ElementSize(variable.dtype()));
  return layout;
}

std::vector<int64_t> PartitionStarts(const muster::VariableProto& variable) {
  const RowLayout layout = LayoutOf(variable);
  int64_t pieces = 1;
  switch (variable.partitioner().kind_case()) {
    case muster::PartitionerProto::kFixedShards:
      pieces = variable.partitioner().fixed_shards();
      break;
    case muster::PartitionerProto::kMinSize:
      pieces = PiecesOfAtLeast(layout, ClampBytes(variable.partitioner().min_size()));
      break;
    case muster::PartitionerProto::kMaxSize:
      pieces = PiecesOfAtMost(layout, ClampBytes(variable.partitioner().max_size()));
      break;
    default:
      pieces = std::min(kDefaultPieces, PiecesOfAtLeast(layout, kDefaultPartitionBytes));
  }
  pieces = std::clamp<int64_t>(pieces, 1, std::clamp<int64_t>(layout.rows, 1, kMostPieces));
  std::vector<int64_t> starts(pieces);
  const int64_t rows = layout.rows / pieces;
  const int64_t longer = layout.rows % pieces;
  for (int64_t p = 0; p < pieces; ++p) starts[p] = p * rows + std::min(p, longer);
  return starts;
}

uint32_t DefaultTablePartitions(uint32_t servers) {
  uint32_t partitions = 64;
  while (partitions < 16 * std::min(servers, 1u << 20)) partitions *= 2;
  return partitions;
}

}  // namespace mu
