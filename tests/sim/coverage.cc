#include "tests/sim/coverage.h"

#include <algorithm>
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

std::vector<std::string> NamesOf(Seen::Group group) {
  std::vector<std::string> names;
  switch (group) {
    case Seen::kEvent:
      return TypeNames(static_cast<const Event*>(nullptr));
    case Seen::kAction:
      return TypeNames(static_cast<const Action*>(nullptr));
    case Seen::kWorkerAction:
      return TypeNames(static_cast<const WorkerAction*>(nullptr));
    case Seen::kMoment:
      return {std::begin(kMoments), std::end(kMoments)};
    case Seen::kRunError:
      for (int kind = 0; kind < pb::ErrorKind_ARRAYSIZE; ++kind)
        names.push_back(pb::ErrorKind_Name(static_cast<pb::ErrorKind>(kind)));
      return names;
    default:
      for (int i = 0; i < kFaultKinds; ++i) names.push_back(ToString(static_cast<Fault>(i)));
      return names;
  }
}

constexpr const char* kKinds[] = {"event", "action", "worker", "moment", "end of a run", "fault"};
static_assert(std::size(kKinds) == Seen::kGroups);

}  // namespace

const std::vector<std::pair<std::string, std::string>>& Coverage::Unreachable() {
  static const std::vector<std::pair<std::string, std::string>> unreachable = {
      {"EpochStarted", "users read one epoch after the other"},
      {"FileRead", "there are no files of data"},
      {"CannotRead", "there are no files of data"},
      {"InputWrong", "there are no files of data"},
      {"Fail", "no daemon fails to start"},
      {"Close", "the user's program does not end early"},
      {"ERROR_USER", "a function that fails is cancelled by its user"},
      {"ERROR_OTHER_JOB", "there is one job"}};
  return unreachable;
}

void Coverage::Add(const Seen& seen) {
  for (size_t group = 0; group < counts_.size(); ++group) {
    uint64_t bits = seen.bits[group];
    for (size_t i = 0; bits != 0; ++i, bits >>= 1) counts_[group][i] += bits & 1;
  }
}

void Coverage::Add(const Coverage& other) {
  for (size_t group = 0; group < counts_.size(); ++group) {
    for (size_t i = 0; i < counts_[group].size(); ++i) counts_[group][i] += other.counts_[group][i];
  }
}

std::vector<Coverage::Row> Coverage::Rows() const {
  std::vector<Row> rows;
  for (int group = 0; group < Seen::kGroups; ++group) {
    const std::vector<std::string> names = NamesOf(static_cast<Seen::Group>(group));
    for (size_t i = 0; i < names.size(); ++i) {
      if (std::none_of(Unreachable().begin(), Unreachable().end(),
                       [&](const auto& entry) { return entry.first == names[i]; }))
        rows.push_back({kKinds[group], names[i], counts_[group][i]});
    }
  }
  return rows;
}

std::string Coverage::Table() const {
  std::string table;
  for (const Row& row : Rows())
    absl::StrAppendFormat(&table, "%-14s %-24s %8d histories\n", row.kind, row.name, row.histories);
  return table;
}

}  // namespace mu::sim
