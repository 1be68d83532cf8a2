// Which worker looks through which file of a dataset, and what follows from its answer. A pure
// state machine: Give says who is to look through what, each file is answered by Counted, Failed or
// Returned, or its worker is lost.
//
// The read of a network disk that is gone may hang for hours while heartbeats continue. So a worker
// without an answer for `patience` is reported (Silent), and workers that have nothing to do are
// given its files too. The first answer counts.
#pragma once

#include <cstdint>
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
  FileScan(const std::vector<uint32_t>& files, absl::Duration patience) : patience_(patience) {
    for (const uint32_t file : files) missing_[file];
    idle_ = {files.begin(), files.end()};
  }

  struct Given {
    WorkerId worker;
    std::vector<uint32_t> files;
    bool helps = false;  // another worker has not answered for them
  };
  // What these workers are to look through from now on: in turns, a few at once, and where possible
  // each file by one that has not failed with it.
  std::vector<Given> Give(const std::vector<WorkerId>& workers, absl::Time now);
  // False: another worker's answer came before.
  bool Counted(uint32_t file, WorkerId worker, absl::Time now);
  // The error to end with; OK: the file is tried again. What says nothing of the file is nobody's
  // fault, however often that happens.
  absl::Status Failed(uint32_t file, WorkerId worker, const CallError& error, absl::Time now);
  // The worker cannot read its data at all, or install it: that says nothing of the file, which is
  // tried again.
  void Returned(uint32_t file, WorkerId worker, absl::Time now);
  // Nothing that the worker was given is waited for any more.
  void WorkerLost(WorkerId worker, absl::Time now);
  bool done() const { return missing_.empty(); }
  // When Give has more to give than now, but for help.
  absl::Time alarm(absl::Time now) const;

  struct Silence {
    WorkerId worker;
    size_t files = 0;    // that it has not answered
    uint32_t first = 0;  // of them
    absl::Duration lasts;
  };
  // Workers to be reported: after the patience, twice that, and so on.
  std::vector<Silence> Silent(absl::Time now);

 private:
  struct File {
    int failures = 0, answers = 0;  // answers: with errors of machines
    std::set<WorkerId> failed_by, open_by;
    absl::Time not_before = absl::InfinitePast();
  };
  struct Reader {
    std::set<uint32_t> open;
    absl::Time last_answer;  // or the beginning
    absl::Duration report_after;
  };
  void Open(uint32_t file, WorkerId worker, absl::Time now, Given* given);
  void Close(uint32_t file, WorkerId worker, absl::Time now);
  void Again(uint32_t file, absl::Time now);
  void GiveHelp(const std::vector<WorkerId>& workers, absl::Time now, std::vector<Given>* given);

  const absl::Duration patience_;
  std::map<uint32_t, File> missing_;
  std::set<uint32_t> idle_;             // of them: nobody looks through them
  std::map<WorkerId, Reader> readers_;  // who have something open
  size_t turn_ = 0;
};

}  // namespace mu
