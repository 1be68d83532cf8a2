#include "common/sharding/definitions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/optimizer/optimizer_settings.h"
#include "common/optimizer/slot_layout.h"
#include "common/sharding/initializer.h"
#include "common/sharding/partition.h"
#include "common/sharding/routing.h"
#include "common/tensor/dtype.h"

namespace mu {
namespace {

// Far above what a server can hold, far below where products overflow.
constexpr double kMostElements = 1e15;

absl::Status CheckName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("it has no name");
  return absl::OkStatus();
}

// Of the largest partition. Optimizer and numbers have been checked.
absl::Status CheckPartitionBytes(const pb::TableProto& table) {
  const uint64_t floats = table.dim() + SlotFloats(SlotsOf(table.optimizer(), table.dim()));
  const uint64_t row_bytes = floats * sizeof(float);
  const uint64_t rows = TablePartitionRows(table.rows(), table.partitions(), 0);
  const uint64_t most = kMostTablePartitionBytes / row_bytes;
  if (rows <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "it is too large: a partition of it, one of ", table.partitions(), ", has ", rows,
      " rows of ", row_bytes, " bytes with the optimizer's slots, and a server can hold at most ",
      most, "; give it fewer rows or columns, or more partitions"));
}

}  // namespace

absl::Status CheckVariableParts(const pb::VariableProto& variable) {
  if (variable.dtype() != kFloat32 && variable.dtype() != kInt32 && variable.dtype() != kInt64) {
    return absl::InvalidArgumentError(absl::StrCat("its type is ", DTypeName(variable.dtype()),
                                                   "; a variable is float32, int32 or int64"));
  }
  double elements = 1;
  for (int64_t dim : variable.shape().dims()) {
    if (dim < 0)
      return absl::InvalidArgumentError("its shape has an axis of unknown or negative size");
    // Axes of size 0 hide no others: products of some of the sizes are taken, too.
    elements *= static_cast<double>(std::max<int64_t>(dim, 1));
  }
  if (elements > kMostElements) return absl::InvalidArgumentError("it has too many elements");
  if (variable.dtype() != kFloat32 &&
      variable.optimizer().kind_case() != pb::OptimizerProto::KIND_NOT_SET) {
    return absl::InvalidArgumentError("only float32 variables have an optimizer");
  }
  if (!(variable.moving_part() >= 0 && variable.moving_part() <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its moving_part is ", variable.moving_part(), "; it must be from 0 to 1"));
  }
  if (variable.moving_part() > 0 &&
      (variable.dtype() != kFloat32 ||
       variable.optimizer().kind_case() != pb::OptimizerProto::KIND_NOT_SET)) {
    return absl::InvalidArgumentError(
        "it has a moving_part, which only float32 variables without an optimizer have");
  }
  if (variable.partition_starts().empty() || variable.partition_starts(0) != 0) {
    return absl::InvalidArgumentError("its partition_starts do not begin with 0");
  }
  const int64_t rows = LayoutOf(variable).rows;
  for (int p = 1; p < variable.partition_starts_size(); ++p) {
    if (variable.partition_starts(p) <= variable.partition_starts(p - 1) ||
        variable.partition_starts(p) >= rows) {
      return absl::InvalidArgumentError("its partition_starts do not ascend within its rows");
    }
  }
  MU_RETURN_IF_ERROR(CheckInitializer(variable.initializer(), variable.dtype()));
  return CheckOptimizer(variable.optimizer());
}

absl::Status CheckTableParts(const pb::TableProto& table) {
  if (table.rows() == 0 || table.dim() == 0)
    return absl::InvalidArgumentError("it needs at least one row and column");
  if (table.dim() > kMostTableDim) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", table.dim(), " columns (dim), and at most ", kMostTableDim,
                     " are possible; divide them among several tables"));
  }
  if (table.rows() > kMostTableRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", table.rows(), " rows, and at most ", kMostTableRows,
                     " are possible; take ids modulo a smaller number"));
  }
  if (table.partitions() == 0 || table.partitions() > kMostTablePartitions) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", table.partitions(),
                                                   " partitions; 1 to ", kMostTablePartitions,
                                                   " are possible"));
  }
  MU_RETURN_IF_ERROR(CheckInitializer(table.initializer(), kFloat32));
  MU_RETURN_IF_ERROR(CheckOptimizer(table.optimizer()));
  return CheckPartitionBytes(table);
}

absl::Status CheckVariable(const pb::VariableProto& variable) {
  absl::Status status = CheckName(variable.name());
  if (status.ok()) status = CheckVariableParts(variable);
  return Annotate(status,
                  absl::StrCat("variable '", variable.name(), "' (id ", variable.id(), ")"));
}

absl::Status CheckTable(const pb::TableProto& table) {
  absl::Status status = CheckName(table.name());
  if (status.ok()) status = CheckTableParts(table);
  return Annotate(status, absl::StrCat("table '", table.name(), "' (id ", table.id(), ")"));
}

}  // namespace mu
