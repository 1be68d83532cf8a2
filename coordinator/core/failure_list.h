// Failures of daemons in the order in which they came: the first kFirst and the last kLast of them,
// and the sums over those between, so that a job of months lists what began it and what is going
// on. Pure; not synchronised.
//
// Each has a number for good (MemberFailure::number). What one that is not listed any more costs
// later goes into the sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace mu {

// What had to be done again because of failures.
struct FailureCosts {
  uint64_t steps_repeated = 0;  // whose results had arrived, or whose updates the servers had
  uint64_t samples_repeated = 0;
  // Acknowledged (function, step, partition) that the restored state does not hold; exact once what
  // was under way at the restore has its results, until then perhaps too small.
  int64_t updates_rolled_back = 0;
};

// What happened to a daemon.
struct MemberFailure : FailureCosts {
  pb::Role role;
  uint32_t index;
  // died, unreachable, unreadable, silent, replaced, cannot_read, hangs, left, set_aside
  std::string kind;
  double at_seconds;
  std::string message;
  // Between its last heartbeat, or the last that said that its work moved, and `at_seconds`.
  double detection_latency_seconds = 0;
  // Until work went on; negative: it did not (yet). Of a server: until all servers served again. Of
  // a worker: until a result of something that it had run arrived, or what it had run was found to
  // be complete; if it had run nothing, or nobody waits for that any more: until a result of
  // another worker arrived or a new worker was ready.
  double recovered_seconds = -1;
  int64_t pid = 0;
  uint64_t number = 0;  // from 0, of all that this coordinator has seen; set by FailureList
};

// Sums over failures of one role.
struct RoleFailures : FailureCosts {
  uint64_t failures = 0;  // without those that left
  uint64_t left = 0;
  // Of `failures`, those after which work went on; of workers only where it did so while the
  // failure was listed.
  uint64_t recovered = 0;
  double recovery_seconds = 0;          // until then; of those that left as well
  double longest_recovery_seconds = 0;  // of these times
};

// Sums over failures that are not listed.
struct UnlistedFailures : FailureCosts {
  uint64_t failures = 0;  // without those that left
  uint64_t left = 0;
  uint64_t servers = 0;                 // of both
  RoleFailures of_workers, of_servers;  // the same by role
};

class FailureList {
 public:
  static constexpr size_t kFirst = 500, kLast = 500;

  explicit FailureList(size_t first = kFirst, size_t last = kLast)
      : most_first_(first), most_last_(last) {}

  // Its number. `unlisted`: called with the number of the one that makes room, if one does.
  size_t Add(MemberFailure failure, const std::function<void(size_t)>& unlisted);
  size_t size() const { return added_; }  // all that were ever added
  // Null if it is not listed any more.
  MemberFailure* Find(size_t number);
  // For adding up what a failure of that role cost; of one that is not listed any more, with those
  // of the others of its role.
  FailureCosts& CostsOf(size_t number, pb::Role role);
  void Recovered(size_t number, double now);
  // All servers serve again. Calls `back` with each listed failure that is over with that.
  void ServersBack(double now, const std::function<void(const MemberFailure&)>& back);

  // Oldest first.
  std::vector<MemberFailure> Listed() const;
  UnlistedFailures unlisted() const;
  // How long servers were missing until all served again, of all failures that were ever added.
  // Time in which several were missing counts once.
  double without_progress_seconds() const { return without_progress_seconds_; }
  // Newest first, until `visit` returns false.
  void VisitListed(const std::function<bool(MemberFailure&)>& visit);

 private:
  void Unlist(const MemberFailure& failure);
  RoleFailures& UnlistedOf(pb::Role role) {
    return role == pb::ROLE_PSSERVER ? unlisted_servers_ : unlisted_workers_;
  }

  const size_t most_first_, most_last_;
  size_t added_ = 0;
  std::vector<MemberFailure> first_;
  std::deque<MemberFailure> last_;  // the newest has the number added_ - 1
  RoleFailures unlisted_workers_, unlisted_servers_;
  // Servers among these that are not back: how many, how many of them left, the sum of the times of
  // their loss, and the first of these times.
  size_t waiting_ = 0;
  size_t waiting_left_ = 0;
  double waiting_since_ = 0;
  double waiting_first_ = 0;
  // Of all servers that are not back, listed or not, when the first was lost.
  std::optional<double> servers_missing_since_;
  double without_progress_seconds_ = 0;
};

}  // namespace mu
