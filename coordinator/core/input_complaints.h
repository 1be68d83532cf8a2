// What workers say that they cannot read or install, and whose fault that is. A pure state machine:
// events in, verdicts out; no clock, thread or socket.
//
// What one worker says alone is about its machine: it is set aside, and gets no function until it
// registers again (a new incarnation is given another chance). An input is wrong when
// min(3, workers up) different workers do not see the same file and none has ever read it. A worker
// that is alone tries three times. Disks that fail or are full, and installations that fail, never
// make the input wrong.
//
// A worker that is lost takes its complaints with it. If those that are left are all set aside, the
// job waits for others, as it does without any worker: only a complaint ends it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace mu {

class InputComplaints {
 public:
  enum class Verdict {
    kTryAgain,      // anywhere, the same worker included
    kTryElsewhere,  // the worker was set aside before
    kSetAside,      // from now on
    kInputWrong,    // Pardoned() says who is set aside no more
    kNoneLeft,      // the worker is set aside, and so are all others
  };

  void WorkerJoined(WorkerId worker);
  void WorkerLost(WorkerId worker);

  // The worker does not see this file of a dataset.
  Verdict Missing(WorkerId worker, uint64_t dataset, uint32_t file);
  // Its disk fails or is full, or it cannot install what others may.
  Verdict Broken(WorkerId worker);
  // A worker has read this file.
  void Read(uint64_t dataset, uint32_t file);

  bool IsAside(WorkerId worker) const;
  // Workers that were set aside because of a dataset that turned out to be wrong; once.
  std::vector<WorkerId> Pardoned() { return std::exchange(pardoned_, {}); }

 private:
  using File = std::pair<uint64_t, uint32_t>;  // dataset, index in its files
  struct Worker {
    bool aside = false;
    std::optional<File> lacks;  // why it is set aside; nothing: it is broken
  };
  Verdict SetAside(WorkerId worker, std::optional<File> lacks);
  Verdict InputWrong(uint64_t dataset);
  // Whether no worker is left, and each lacks a file of this dataset that nobody has read.
  bool AllLack(uint64_t dataset) const;

  std::map<WorkerId, Worker> up_;
  std::map<File, std::map<WorkerId, int>> missing_;  // how often each worker up has said so
  std::set<File> read_;                              // by anybody, ever
  std::vector<WorkerId> pardoned_;
};

}  // namespace mu
