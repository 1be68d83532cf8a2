// Values that the coordinator assigns, checked before any server has its part.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/client/known_view.h"
#include "common/client/ps_admin.h"

namespace mu {
namespace {

std::string ShapeText(const pb::VariableProto& variable) {
  return absl::StrCat(DTypeName(variable.dtype()), Shape(variable.shape()).ToString());
}

absl::Status CheckFinite(absl::string_view what, const std::string& name, const Tensor& value) {
  if (value.dtype() != kFloat32) return absl::OkStatus();
  for (const float x : value.flat<float>()) {
    if (std::isfinite(x)) continue;
    return absl::InvalidArgumentError(absl::StrCat("the value for ", what, " '", name,
                                                   "' holds NaN or infinity; nothing of it was "
                                                   "assigned"));
  }
  return absl::OkStatus();
}

absl::Status RunAssigns(std::vector<PsCall> calls, const RetryPolicy& policy) {
  PsCallGroup group;
  return group.Run(std::move(calls), policy,
                   [](size_t, const Buffer&) { return absl::OkStatus(); });
}

// What has rows: a variable or a table.
struct RowsTarget {
  const char* what;
  uint32_t id;
  DType dtype;
  uint64_t rows;
  size_t row_bytes;
  std::vector<int64_t> row_dims;  // of one row
  const std::vector<uint32_t>* servers;
  const VariableRoute* variable = nullptr;  // or table
  const TableRoute* table = nullptr;

  Shape ShapeOf(int64_t count) const {
    Shape shape({count});
    for (const int64_t dim : row_dims) shape.Append(dim);
    return shape;
  }
  // The partition that has the row, and what the row is called there.
  std::pair<uint32_t, int64_t> PlaceOf(int64_t row) const {
    if (table != nullptr) return {table->partition_of(static_cast<uint64_t>(row)), row};
    const auto& starts = variable->proto.partition_starts();
    const auto after = std::upper_bound(starts.begin(), starts.end(), row);
    return {static_cast<uint32_t>(after - starts.begin()) - 1, row - *(after - 1)};
  }
};

absl::StatusOr<RowsTarget> TargetVariable(const Routing& routing, const std::string& name) {
  MU_ASSIGN_OR_RETURN(const VariableRoute* route, KnownVariable(routing, name));
  const auto& dims = route->proto.shape().dims();
  if (dims.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", name, "' is a scalar without rows"));
  return RowsTarget{"variable",
                    route->proto.id(),
                    route->proto.dtype(),
                    static_cast<uint64_t>(route->layout.rows),
                    static_cast<size_t>(route->layout.bytes_per_row),
                    {dims.begin() + 1, dims.end()},
                    &route->servers,
                    route,
                    nullptr};
}

absl::StatusOr<RowsTarget> TargetTable(const Routing& routing, const std::string& name) {
  MU_ASSIGN_OR_RETURN(const TableRoute* route, KnownTable(routing, name));
  return RowsTarget{"table",
                    route->proto.id(),
                    kFloat32,
                    route->proto.rows(),
                    route->proto.dim() * sizeof(float),
                    {static_cast<int64_t>(route->proto.dim())},
                    &route->servers,
                    nullptr,
                    route};
}

absl::StatusOr<RowsTarget> Target(const Routing& routing, const std::string& name, bool table) {
  return table ? TargetTable(routing, name) : TargetVariable(routing, name);
}

absl::Status CheckRowsOf(const RowsTarget& target, const std::string& name,
                         absl::Span<const int64_t> rows, const Tensor& value) {
  const Shape expected = target.ShapeOf(static_cast<int64_t>(rows.size()));
  if (value.dtype() != target.dtype || !(value.shape() == expected)) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows.size(), " rows of ", target.what, " '", name, "' are ",
                     DTypeName(target.dtype), expected.ToString(), " and cannot be assigned ",
                     DTypeName(value.dtype()), value.shape().ToString()));
  }
  absl::flat_hash_set<int64_t> seen;
  seen.reserve(rows.size());
  for (const int64_t row : rows) {
    if (row < 0 || static_cast<uint64_t>(row) >= target.rows) {
      return absl::OutOfRangeError(absl::StrCat("row ", row, " is outside of ", target.what, " '",
                                                name, "', which has ", target.rows, " rows"));
    }
    if (!seen.insert(row).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", row, " of ", target.what, " '", name, "' is assigned twice"));
    }
  }
  return CheckFinite(target.what, name, value);
}

absl::Status CheckValueOf(const VariableRoute& route, const Tensor& value) {
  const std::string& name = route.proto.name();
  if (value.dtype() != route.proto.dtype() || !(value.shape() == Shape(route.proto.shape()))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", name, "' is ", ShapeText(route.proto), " and cannot be assigned ",
        DTypeName(value.dtype()), value.shape().ToString()));
  }
  return CheckFinite("variable", name, value);
}

}  // namespace

absl::Status PsAdmin::CheckValue(const std::string& name, const Tensor& value) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  MU_ASSIGN_OR_RETURN(const VariableRoute* route, KnownVariable(*view->routing, name));
  return CheckValueOf(*route, value);
}

absl::Status PsAdmin::CheckRows(const std::string& name, bool table, absl::Span<const int64_t> rows,
                                const Tensor& value) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  MU_ASSIGN_OR_RETURN(const RowsTarget target, Target(*view->routing, name, table));
  return CheckRowsOf(target, name, rows, value);
}

absl::Status PsAdmin::AssignVariable(const pb::RequestContext& context, FunctionId place,
                                     const std::string& name, const Tensor& value) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  MU_ASSIGN_OR_RETURN(const VariableRoute* route, KnownVariable(*view->routing, name));
  MU_RETURN_IF_ERROR(CheckValueOf(*route, value));
  std::vector<PsCall> calls;
  for (uint32_t p = 0; p < route->servers.size(); ++p) {
    if (route->sizes[p] == 0) continue;
    pb::AssignRequest request;
    *request.mutable_context() = context;
    request.set_variable(route->proto.id());
    request.set_partition(p);
    request.set_function(place.value());
    request.set_value(static_cast<const char*>(value.raw()) + route->offsets[p], route->sizes[p]);
    const uint32_t s = route->servers[p];
    calls.push_back({view->routing->servers()[s].index(), view->channels[s],
                     "/muster.PsServer/Assign", Buffer(request.SerializeAsString())});
  }
  return RunAssigns(std::move(calls), client_->policy());
}

absl::Status PsAdmin::AssignRows(const pb::RequestContext& context, FunctionId place,
                                 const std::string& name, bool table,
                                 absl::Span<const int64_t> rows, const Tensor& value) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  MU_ASSIGN_OR_RETURN(const RowsTarget target, Target(*view->routing, name, table));
  MU_RETURN_IF_ERROR(CheckRowsOf(target, name, rows, value));
  std::map<uint32_t, pb::AssignRequest> requests;  // by partition
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto [partition, row] = target.PlaceOf(rows[i]);
    pb::AssignRequest& request = requests[partition];
    request.add_rows(row);
    request.mutable_value()->append(static_cast<const char*>(value.raw()) + i * target.row_bytes,
                                    target.row_bytes);
  }
  std::vector<PsCall> calls;
  for (auto& [partition, request] : requests) {
    *request.mutable_context() = context;
    request.set_variable(target.id);
    request.set_table(table);
    request.set_partition(partition);
    request.set_function(place.value());
    const uint32_t s = (*target.servers)[partition];
    calls.push_back({view->routing->servers()[s].index(), view->channels[s],
                     "/muster.PsServer/Assign", Buffer(request.SerializeAsString())});
  }
  return RunAssigns(std::move(calls), client_->policy());
}

}  // namespace mu
