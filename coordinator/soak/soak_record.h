// What soaking (soak.h) keeps of each run: a line of JSON in RECORD/runs.jsonl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/cluster/runtime_types.h"
#include "coordinator/training/trainer.h"

namespace mu {

inline constexpr char kSoakRecordName[] = "runs.jsonl";

// What losses of one role cost in one run.
struct SoakLosses {
  uint64_t count = 0;
  uint64_t recovered = 0;       // of them, those after which the run went on
  double recovery_seconds = 0;  // until then, summed
  // The longest of these times, which a mean over many hides. Nothing: the run went on after no
  // loss, or its line is older than this key.
  std::optional<double> longest_recovery_seconds = std::nullopt;
  uint64_t steps_repeated = 0;
  uint64_t updates_rolled_back = 0;

  void Add(const SoakLosses& other);
  // Nothing: the run went on after no loss.
  std::optional<double> MeanRecoverySeconds() const;
};

// The loss of one daemon.
struct SoakFailure {
  std::string role;                                   // worker, psserver
  std::string kind;                                   // died, silent, left, ...: docs/report.md
  double at_seconds = 0;                              // since the run began
  std::optional<double> recovered_ms = std::nullopt;  // until work went on; nothing: it did not
  uint64_t steps_repeated = 0;
};

struct SoakRecord {
  // Of a run's failures those at its beginning and those at its end, half of them each.
  static constexpr size_t kMostFailures = 200;

  std::string job;         // its name
  std::string setup;       // equal: the runs may be compared
  std::string preemption;  // what was injected (coordinator/launch/chaos_plan.h); empty: nothing
  std::string version;     // of Muster
  int64_t began = 0;       // Unix time, seconds
  std::string status;      // done, failed, stopped; hung: it had to be ended; died: by a signal
  std::string error;       // what failed; empty otherwise
  int workers = 0, ps = 0;
  double seconds = 0;        // from start to end of the program
  double train_seconds = 0;  // of it, in training
  uint64_t samples = 0, steps = 0;
  bool exact = true;   // it must use as many samples as undisturbed
  std::string metric;  // by which quality is judged; empty: the job has none
  double quality = std::numeric_limits<double>::quiet_NaN();
  std::map<std::string, SoakLosses> losses;  // by role: worker, psserver
  // Of these losses, one by one as they came, at most kMostFailures. Empty: there was none, or its
  // line is older than this key.
  std::vector<SoakFailure> failures;

  // How many of the losses are not listed.
  uint64_t failures_not_listed() const;
  bool disturbed() const { return !preemption.empty(); }
  bool done() const { return status == "done"; }
};

// One line, without its end.
std::string ToJsonLine(const SoakRecord& record);
// INVALID_ARGUMENT says what is wrong with the line.
absl::StatusOr<SoakRecord> FromJsonLine(const std::string& line);

// The runs of a record, in order; none if there is no record yet. A last line that has no end is
// what a crash left, and is passed over. INVALID_ARGUMENT names the file and the line.
absl::StatusOr<std::vector<SoakRecord>> ReadRecords(const std::string& directory);
// Adds a run. Mends what a crash left.
absl::Status AddRecord(const std::string& directory, const SoakRecord& record);

// What a run's report says of it (docs/report.md): status, error, sizes, losses, quality by
// record->metric, or, if that is empty, by the first of a few usual metrics that the report has.
// Of a run with more losses than a report lists, one of an older version counts only those that it
// lists. INVALID_ARGUMENT if it is no report.
absl::Status FillFromReport(const std::string& report, SoakRecord* record);

// The same of a program's own run: what its coordinator has counted, and how Trainer::Fit ended.
// Quality is that of FitResult::last; a program that evaluates at the end by itself sets that to
// what Trainer::Evaluate returns. workers, ps, seconds and exact stay as they are, of a Fit that
// failed also what it trained.
void FillFromStats(const RuntimeStats& stats, const absl::StatusOr<FitResult>& fit,
                   SoakRecord* record);

}  // namespace mu
