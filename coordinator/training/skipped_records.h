// What is to be said of the records that evaluations leave out because they cannot be read. Pure.
// Not thread safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "coordinator/cluster/runtime_types.h"
#include "coordinator/training/training_history.h"

namespace mu {

// An evaluation has read no record of the data set `data`. `bad`: what is known of those that were
// left out; empty: nothing.
inline absl::Status NoGoodRecord(const std::string& data, const std::string& bad = "") {
  return absl::InvalidArgumentError(
      absl::StrCat(data, " has no good record", bad.empty() ? "" : ": ", bad));
}

// Of one coordinator, which counts all that it has read.
class SkippedRecords {
 public:
  // `before`: how many it has left out so far, which are not told of.
  explicit SkippedRecords(uint64_t before = 0) : told_(before) {}

  // After an evaluation of the data set `data`: a sentence for the user, empty if no record was
  // left out in it. INVALID_ARGUMENT if no record was read: that says nothing of the model.
  absl::StatusOr<std::string> After(const Evaluation& evaluation, const RuntimeStats& stats,
                                    const std::string& data) {
    std::string bad;
    const char* first = told_ == 0 ? "the first is " : "the first of this run is ";
    if (const uint64_t more = stats.bad_records - std::exchange(told_, stats.bad_records))
      bad = absl::StrCat(more, " were left out (on_bad_record: skip), ", first,
                         stats.first_bad_record);
    if (evaluation.examples == 0) return NoGoodRecord(data, bad);
    return bad.empty() ? bad : absl::StrCat("of the records of ", data, ", ", bad);
  }

 private:
  uint64_t told_;
};

}  // namespace mu
