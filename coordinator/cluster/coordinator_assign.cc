// Values that a program assigns: all of them are checked first, then the servers get them in
// pieces, each of which is an assignment with a place of its own among the functions. So what has
// to be kept for servers that are lost grows by a piece at a time, and checkpoints can make room
// for the next one.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/client/value_pieces.h"
#include "coordinator/cluster/coordinator_impl.h"

namespace mu {
namespace {

// What a row takes in an assignment beside its values: its number.
constexpr size_t kRowNumber = sizeof(int64_t);

// Values as rows of `bytes` bytes, one after the other in memory; a scalar is one row.
struct Rows {
  explicit Rows(const Tensor& tensor)
      : values(tensor),
        count(tensor.shape().rank() == 0 ? 1 : tensor.shape()[0]),
        bytes(count == 0 ? 0 : tensor.bytes() / static_cast<size_t>(count)) {}

  pb::TensorProto Part(int64_t begin, int64_t rows) const {
    Shape shape({rows});
    for (int axis = 1; axis < values.shape().rank(); ++axis) shape.Append(values.shape()[axis]);
    pb::TensorProto proto;
    proto.set_dtype(values.dtype());
    *proto.mutable_shape() = shape.ToProto();
    if (bytes > 0) {
      proto.set_data(static_cast<const char*>(values.raw()) + static_cast<size_t>(begin) * bytes,
                     static_cast<size_t>(rows) * bytes);
    }
    return proto;
  }

  const Tensor& values;
  const int64_t count;
  const size_t bytes;  // of a row
};

}  // namespace

absl::Status Coordinator::Assign(const Variable& variable, const Tensor& value) {
  MU_RETURN_IF_ERROR(impl_->CheckOwn(variable));
  return impl_->Assign({variable.name(), /*table=*/false, std::nullopt}, value);
}

absl::Status Coordinator::AssignRows(const Variable& variable, absl::Span<const int64_t> rows,
                                     const Tensor& values) {
  MU_RETURN_IF_ERROR(impl_->CheckOwn(variable));
  if (rows.empty()) return absl::OkStatus();
  return impl_->Assign({variable.name(), /*table=*/false, rows}, values);
}

absl::Status Coordinator::AssignRows(const EmbeddingTable& table, absl::Span<const int64_t> ids,
                                     const Tensor& values) {
  MU_RETURN_IF_ERROR(impl_->CheckOwn(table));
  if (ids.empty()) return absl::OkStatus();
  return impl_->Assign({table.name(), /*table=*/true, ids}, values);
}

absl::Status Coordinator::Impl::Assign(const AssignTarget& target, const Tensor& values) {
  MU_RETURN_IF_ERROR(runtime->EnsureServers());
  MU_RETURN_IF_ERROR(target.rows.has_value() ? servers.admin()->CheckRows(target.name, target.table,
                                                                          *target.rows, values)
                                             : servers.admin()->CheckValue(target.name, values));
  const Rows all(values);
  // All of a variable needs no numbers of rows.
  if (!target.rows.has_value() && (all.count <= 1 || values.bytes() <= options.piece_bytes))
    return AssignPiece({target.name, values.ToProto()});
  const int64_t most = RowsInPiece(all.bytes + kRowNumber, options.piece_bytes);
  const uint64_t before_last = static_cast<uint64_t>((all.count - 1) / most * most);
  // Before the first piece: nothing would make room for the others.
  MU_RETURN_IF_ERROR(runtime->RoomToAssign(target.name, checkpoints.starts_fresh(),
                                           before_last * (all.bytes + kRowNumber)));
  for (int64_t begin = 0; begin < all.count; begin += most) {
    const int64_t count = std::min(most, all.count - begin);
    Assignment piece{target.name, all.Part(begin, count), target.table, {}};
    piece.rows.resize(static_cast<size_t>(count));
    if (target.rows.has_value()) {
      std::copy_n(target.rows->begin() + begin, count, piece.rows.begin());
    } else {
      std::iota(piece.rows.begin(), piece.rows.end(), begin);
    }
    const absl::Status status = AssignPiece(std::move(piece));
    if (status.ok()) continue;
    if (begin == 0) return status;
    return Annotate(status, absl::StrCat("of ", all.count, " rows for ",
                                         target.table ? "table '" : "variable '", target.name,
                                         "' the first ", begin, " were assigned, the next ", count,
                                         " perhaps, any others not"));
  }
  return absl::OkStatus();
}

absl::Status Coordinator::Impl::AssignPiece(Assignment piece) {
  return runtime->Run({.kind = ServerTask::Kind::kAssign,
                       .assignment = std::make_shared<const Assignment>(std::move(piece)),
                       .waits_for_room = checkpoints.starts_fresh()},
                      std::make_shared<TaskState>());
}

}  // namespace mu
