#include "common/exec/bad_id_report.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/verifier.h"

namespace mu {
namespace {

// The first id of the rows that table `rows` does not have.
std::optional<int64_t> BadId(absl::Span<const int64_t> ids, int64_t rows) {
  for (const int64_t id : ids) {
    if (id < 0 || id >= rows) return id;
  }
  return std::nullopt;
}

bool Holds(const View& view, int64_t id) {
  if (view.dtype != kInt64 || view.data == nullptr) return false;
  const int64_t* const begin = view.as<int64_t>();
  return std::find(begin, begin + view.elements(), id) != begin + view.elements();
}

}  // namespace

absl::Status WithPlaceOfBadId(const Plan& plan, const Run& run, const absl::Status& status) {
  if (!absl::IsOutOfRange(status)) return status;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const pb::NodeProto& node = plan.function.nodes(plan.rows[i].node);
    const auto rows = node.attrs().find("rows");
    if (rows == node.attrs().end()) continue;
    const std::optional<int64_t> id = BadId(run.rows[i].ids, rows->second.i());
    if (!id.has_value()) continue;
    std::string columns;
    for (const PlannedColumn& column : plan.columns) {
      if (!Holds(run.value(column.value), *id)) continue;
      absl::StrAppend(&columns, columns.empty() ? "; it is in the batch's column \"" : "\" and \"",
                      column.name);
    }
    if (!columns.empty()) columns += "\"";
    return NodeError(plan.function, plan.rows[i].node,
                     absl::Status(status.code(), absl::StrCat(status.message(), columns)));
  }
  return status;
}

}  // namespace mu
