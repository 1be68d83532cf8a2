// What servers have answered to pushes, for tests that count how often steps ran: the daemon of
// test builds (logging_psserver) writes a line for each answered push before its caller hears of
// it, so that whoever is killed takes no line along.
// The environment names the file:
//
//   daemon->path = MUSTER_LOGGING_PSSERVER;
//   daemon->environment.push_back(absl::StrCat(kPushLogVariable, "=", path));
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/env/file.h"

namespace mu::testing {

inline constexpr char kPushLogVariable[] = "MUSTER_PUSH_LOG";

// OUTCOME GENERATION ROUND FUNCTION STEP ROW,ROW,... with the ids of the rows that it changes.
inline constexpr char kPushTaken[] = "taken";      // applied or kept, now or before
inline constexpr char kPushTooLate[] = "late";     // its gradients are, see MinimizeOptions
inline constexpr char kPushRefused[] = "refused";  // for any other reason

class PushLog {
 public:
  // Of pushes in these generations of the servers' state, both included.
  explicit PushLog(std::vector<std::string> paths, uint64_t first_generation = 0,
                   uint64_t last_generation = std::numeric_limits<uint64_t>::max())
      : paths_(std::move(paths)),
        first_generation_(first_generation),
        last_generation_(last_generation) {
    Read();
  }

  // Steps that ran to their end: all servers have taken the pushes. Of a step that every server
  // changes, each run makes one push to each server.
  uint64_t Complete() const {
    uint64_t sum = 0;
    for (const auto& [run, taken] : taken_) sum += CompleteOf(taken);
    return sum;
  }
  // The same, each step once however often it ran.
  uint64_t DifferentSteps() const {
    std::set<std::pair<uint64_t, uint64_t>> steps;
    for (const auto& [run, taken] : taken_) {
      if (CompleteOf(taken) > 0) steps.insert({run.function, run.step});
    }
    return steps.size();
  }
  // Pushes that were too late. Of an attempt that several servers refuse each counts.
  uint64_t too_late() const { return too_late_; }
  // How often each record was read by steps that ran to their end.
  std::map<int64_t, uint64_t> Visits() const {
    std::map<int64_t, uint64_t> visits;
    for (const auto& [run, taken] : taken_) {
      for (const int64_t row : rows_.at({run.function, run.step})) visits[row] += CompleteOf(taken);
    }
    return visits;
  }
  // Of each record, in how many steps it is.
  std::map<int64_t, uint64_t> Steps() const {
    std::map<int64_t, uint64_t> steps;
    for (const auto& [step, rows] : rows_) {
      for (const int64_t row : rows) ++steps[row];
    }
    return steps;
  }

 private:
  struct Run {
    uint64_t generation = 0, round = 0, function = 0, step = 0;
    friend bool operator<(const Run& a, const Run& b) {
      return std::tie(a.generation, a.round, a.function, a.step) <
             std::tie(b.generation, b.round, b.function, b.step);
    }
  };

  static uint64_t CompleteOf(const std::vector<uint64_t>& taken) {
    return *std::min_element(taken.begin(), taken.end());
  }

  void Read() {
    for (size_t server = 0; server < paths_.size(); ++server) {
      const std::string text = ReadFile(paths_[server]).value_or("");
      // A line without its end is being written.
      const std::string whole = text.substr(0, text.rfind('\n') + 1);
      for (const absl::string_view line : absl::StrSplit(whole, '\n', absl::SkipEmpty()))
        Add(server, line);
    }
  }
  void Add(size_t server, absl::string_view line) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    Run run;
    if (fields.size() != 6 || !absl::SimpleAtoi(fields[1], &run.generation) ||
        !absl::SimpleAtoi(fields[2], &run.round) || !absl::SimpleAtoi(fields[3], &run.function) ||
        !absl::SimpleAtoi(fields[4], &run.step))
      return;
    if (run.generation < first_generation_ || run.generation > last_generation_) return;
    if (fields[0] == kPushTooLate) ++too_late_;
    if (fields[0] != kPushTaken) return;
    std::vector<uint64_t>& taken = taken_[run];
    taken.resize(paths_.size());
    ++taken[server];
    std::set<int64_t>& rows = rows_[{run.function, run.step}];
    for (const absl::string_view field : absl::StrSplit(fields[5], ',', absl::SkipEmpty())) {
      int64_t row = 0;
      if (absl::SimpleAtoi(field, &row)) rows.insert(row);
    }
  }

  const std::vector<std::string> paths_;
  const uint64_t first_generation_, last_generation_;
  std::map<Run, std::vector<uint64_t>> taken_;                       // by server
  std::map<std::pair<uint64_t, uint64_t>, std::set<int64_t>> rows_;  // by function and step
  uint64_t too_late_ = 0;
};

}  // namespace mu::testing
