#include "tests/sim/coverage.h"

#include <variant>

#include "absl/strings/str_format.h"
#include "proto/error.pb.h"

namespace mu::sim {
namespace {

template <typename T>
std::string TypeName() {
  const std::string_view text = __PRETTY_FUNCTION__;  // "... T = mu::event::Tick; ...]"
  const size_t begin = text.find("T = ") + 4;
  const std::string_view name = text.substr(begin, text.find_first_of(";]", begin) - begin);
  return std::string(name.substr(name.rfind(':') + 1));
}

template <typename... T>
std::vector<std::string> TypeNames(const std::variant<T...>*) {
  return {TypeName<T>()...};
}

}  // namespace

void Coverage::Add(const Seen& seen) {
  for (size_t group = 0; group < counts_.size(); ++group) {
    for (size_t i = 0; i < Seen::kMost; ++i) counts_[group][i] += seen.bits[group][i] ? 1 : 0;
  }
}

std::vector<Coverage::Row> Coverage::Rows() const {
  std::vector<Row> rows;
  const auto add = [&](Seen::Group group, const char* kind, const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i) rows.push_back({kind, names[i], counts_[group][i]});
  };
  add(Seen::kEvent, "event", TypeNames(static_cast<const Event*>(nullptr)));
  add(Seen::kAction, "action", TypeNames(static_cast<const Action*>(nullptr)));
  add(Seen::kWorkerAction, "worker", TypeNames(static_cast<const WorkerAction*>(nullptr)));
  add(Seen::kMoment, "moment", {std::begin(kMoments), std::end(kMoments)});
  std::vector<std::string> errors, faults;
  for (int kind = 0; kind < pb::ErrorKind_ARRAYSIZE; ++kind)
    errors.push_back(pb::ErrorKind_Name(static_cast<pb::ErrorKind>(kind)));
  add(Seen::kRunError, "end of a run", errors);
  for (int i = 0; i < kFaultKinds; ++i) faults.push_back(ToString(static_cast<Fault>(i)));
  add(Seen::kFault, "fault", faults);
  return rows;
}

std::string Coverage::Table() const {
  std::string table;
  for (const Row& row : Rows())
    absl::StrAppendFormat(&table, "%-14s %-24s %8d histories\n", row.kind, row.name, row.histories);
  return table;
}

}  // namespace mu::sim
