#include "psserver/assignment.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/all_finite.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/tensor/dtype.h"
#include "psserver/held.h"

namespace mu {
namespace {

absl::Status CheckEachOnce(const google::protobuf::RepeatedField<int64_t>& rows) {
  std::vector<int64_t> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("row ", *twice, " is assigned twice"));
}

bool Finite(const std::string& bytes) {
  // A field of a message need not be aligned.
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return AllFinite(values.data(), values.size());
}

}  // namespace

absl::StatusOr<AssignPlan> AssignPlan::Check(std::shared_ptr<const StoreDirectory> directory,
                                             const pb::AssignRequest& request) {
  AssignPlan plan(std::move(directory), request);
  MU_RETURN_IF_ERROR(request.table() ? plan.CheckTable() : plan.CheckVariable());
  MU_RETURN_IF_ERROR(CheckEachOnce(request.rows()));
  if (request.function() == 0)
    return absl::InvalidArgumentError("an assignment needs its place among the functions");
  return plan;
}

absl::Status AssignPlan::CheckValue(uint64_t row_bytes, uint64_t rows, bool floats) const {
  if (request_.value().size() != rows * row_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(request_.table() ? "table '" : "variable '", name_, "' partition ",
                     request_.partition(), request_.rows().empty() ? " has " : " takes ",
                     rows * row_bytes, " bytes; ", request_.value().size(), " were given"));
  }
  if (!floats || Finite(request_.value())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the value for ",
                                                 request_.table() ? "table '" : "variable '", name_,
                                                 "' holds NaN or infinity; nothing of it was "
                                                 "assigned"));
}

absl::Status AssignPlan::CheckVariable() {
  MU_ASSIGN_OR_RETURN(const StoredVariable* variable,
                      HeldVariable(*directory_, request_.variable(), request_.partition()));
  variable_ = variable->partitions[request_.partition()].get();
  name_ = variable->definition->proto.name();
  for (const int64_t row : request_.rows()) {
    if (row >= 0 && static_cast<uint64_t>(row) < variable_->rows()) continue;
    return absl::OutOfRangeError(absl::StrCat("row ", row, " is outside of partition ",
                                              request_.partition(), " of variable '", name_,
                                              "', which has ", variable_->rows(), " rows"));
  }
  const uint64_t rows =
      request_.rows().empty() ? variable_->rows() : static_cast<uint64_t>(request_.rows_size());
  return CheckValue(variable_->row_bytes(), rows, variable->definition->proto.dtype() == kFloat32);
}

absl::Status AssignPlan::CheckTable() {
  MU_ASSIGN_OR_RETURN(const StoredTable* table,
                      HeldTable(*directory_, request_.variable(), request_.partition()));
  table_ = table->partitions[request_.partition()].get();
  name_ = table->definition->proto.name();
  for (const int64_t id : request_.rows()) {
    if (table_->Holds(id)) continue;
    return absl::OutOfRangeError(absl::StrCat("id ", id, " is not one of partition ",
                                              request_.partition(), " of table '", name_, "'"));
  }
  return CheckValue(table->definition->dim * sizeof(float),
                    static_cast<uint64_t>(request_.rows_size()), /*floats=*/true);
}

PsAssignment AssignPlan::assignment() const {
  uint64_t hash = HashString(request_.value());
  for (const int64_t row : request_.rows()) hash = HashCombine(hash, static_cast<uint64_t>(row));
  return {request_.function(), request_.variable(), request_.partition(), hash, name_,
          request_.table()};
}

bool AssignPlan::creates_rows() const {
  return table_ != nullptr &&
         !table_->HasAll({request_.rows().data(), static_cast<size_t>(request_.rows_size())});
}

void AssignPlan::Apply() const {
  const char* const value = request_.value().data();
  const absl::Span<const int64_t> rows(request_.rows().data(),
                                       static_cast<size_t>(request_.rows_size()));
  if (table_ != nullptr) {
    std::vector<float> values(request_.value().size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), value, request_.value().size());
    table_->AssignRows(rows, values.data());
  } else if (rows.empty()) {
    variable_->Assign(value);
  } else {
    variable_->AssignRows(rows, value);
  }
}

}  // namespace mu
