// Which worker looks through which file of a dataset, and what follows from its answer. A pure
// state machine of rounds: Begin gives out what is missing, each file is answered by Counted or
// Failed, then the next round begins.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "coordinator/core/call_error.h"

namespace mu {

class FileScan {
 public:
  explicit FileScan(const std::vector<size_t>& files) {
    for (const size_t file : files) missing_[file];
  }

  // What each of these workers, of which there is at least one, is to look through: all that is
  // missing, in turns, and where possible by one that has not failed with it.
  std::map<WorkerId, std::vector<size_t>> Begin(const std::vector<WorkerId>& workers);
  void Counted(size_t file) { missing_.erase(file); }
  // The error to end with; OK: the file is tried again. A worker that is lost is nobody's fault,
  // however often that happens.
  absl::Status Failed(size_t file, WorkerId worker, const CallError& error);
  bool done() const { return missing_.empty(); }
  // Before the next Begin: nothing, unless something failed.
  absl::Duration Pause();

 private:
  struct Tries {
    int answered = 0;  // with errors of machines
    std::set<WorkerId> by;
  };
  std::map<size_t, Tries> missing_;
  size_t turn_ = 0;
  bool failed_ = false;  // in this round
  static constexpr absl::Duration kLeastPause = absl::Milliseconds(100);
  absl::Duration pause_ = kLeastPause;  // the next
};

}  // namespace mu
