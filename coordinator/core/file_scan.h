// Which worker looks through which file of a dataset, and what follows from its answer. A pure
// state machine of rounds: Begin gives out what is missing, each file is answered by Counted or
// Failed, then the next round begins.
//
// The read of a network disk that is gone may hang for hours while heartbeats continue. So a worker
// without an answer for kPatience is reported (Silent), and workers that have nothing to do look
// through its files too (Help). The first answer counts.
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

  static constexpr absl::Duration kPatience = absl::Seconds(30);

  // What each of these workers, of which there is at least one, is to look through: all that is
  // missing, in turns, and where possible by one that has not failed with it.
  std::map<WorkerId, std::vector<size_t>> Begin(const std::vector<WorkerId>& workers,
                                                absl::Time now);
  // False: another worker's answer came before.
  bool Counted(size_t file, WorkerId worker, absl::Time now);
  // The error to end with; OK: the file is tried again. A worker that is lost is nobody's fault,
  // however often that happens.
  absl::Status Failed(size_t file, WorkerId worker, const CallError& error, absl::Time now);
  bool done() const { return missing_.empty(); }

  struct Silence {
    WorkerId worker;
    size_t files = 0;  // that it has not answered
    size_t first = 0;  // of them
    absl::Duration lasts;
  };
  // Workers of this round to be reported: after kPatience, twice that, and so on.
  std::vector<Silence> Silent(absl::Time now);
  // What workers of this round that have nothing left are to look through too.
  std::map<WorkerId, size_t> Help(absl::Time now);
  // Before the next Begin: nothing, unless something failed.
  absl::Duration Pause();

 private:
  struct Tries {
    int answered = 0;  // with errors of machines
    std::set<WorkerId> by;
  };
  // A worker's part of this round.
  struct Part {
    std::set<size_t> open;
    absl::Time last_answer;  // or the beginning
    absl::Duration report_after = kPatience;
  };
  void Answered(size_t file, WorkerId worker, absl::Time now);

  std::map<size_t, Tries> missing_;
  std::map<WorkerId, Part> parts_;
  size_t turn_ = 0;
  bool failed_ = false;  // in this round
  static constexpr absl::Duration kLeastPause = absl::Milliseconds(100);
  absl::Duration pause_ = kLeastPause;  // the next
};

}  // namespace mu
