// What was lost, how long that held up the work, and what it cost; for the report. Pure: events in,
// times handed in as seconds since the run began. Not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/cluster/function_queue.h"
#include "coordinator/cluster/update_ledger.h"
#include "proto/error.pb.h"
#include "proto/worker.pb.h"

namespace mu {

// What happened to a daemon.
struct MemberFailure {
  pb::Role role;
  uint32_t index;
  std::string kind;  // died, unreachable, unreadable, silent, replaced, cannot_read, left
  double at_seconds;
  std::string message;
  // Between its last heartbeat and `at_seconds`.
  double detection_latency_seconds = 0;
  // Until work went on; negative: it did not (yet). Of a server: until all servers served again. Of
  // a worker: until a result of something that it had run arrived, or what it had run was found to
  // be complete; if it had run nothing, or nobody waits for that any more: until a result of
  // another worker arrived or a new worker was ready.
  double recovered_seconds = -1;
  uint64_t steps_repeated = 0;  // whose results had arrived, or whose updates the servers had
  uint64_t samples_repeated = 0;
  // Acknowledged (function, step, partition) that the restored state does not hold; exact once what
  // was under way at the restore has its results, until then perhaps too small.
  int64_t updates_rolled_back = 0;
  int64_t pid = 0;
};

class FailureLog {
 public:
  const std::vector<MemberFailure>& failures() const { return failures_; }

  void WorkerLost(MemberFailure failure, const std::vector<FunctionId>& running);
  // `first`: nothing was being recovered, so that what the recovery costs is noted with this one.
  void ServerLost(MemberFailure failure, bool first);

  // A daemon that was lost already has ended: its broken connection is often seen first.
  void DaemonEnded(int64_t pid, const std::string& message);
  // A worker has all that it needs for the first time.
  void WorkerReady(double now);
  // A result of the function's current run arrived. `updates`: the function changes state; `first`:
  // none of this step had arrived since the servers were last restored; `last`: all results are
  // there.
  struct Result {
    bool updates = false;
    bool first = false;
    bool last = false;
  };
  void StepDone(FunctionId function, const pb::StepResult& step, const Result& result, double now);
  // Nobody waits for its results any more; `finished`: they are all there.
  void FunctionOver(FunctionId function, bool finished, double now);

  void RolledBack(const FunctionQueue::RolledBack& back);
  // The state that a server was given, `from` a checkpoint or what else, holds so many updates.
  void ServerRestored(uint32_t server, uint64_t held, const std::string& from);
  // All of them serve. Which failures are over with that.
  std::vector<size_t> ServersBack(double now);

  // Of a server, what the results said that have arrived, of what it holds.
  uint64_t acknowledged(uint32_t server) const { return updates_.acknowledged(server); }
  // All servers were given a state, by this coordinator's will or because it continues a job:
  // `held` updates by server, of which the results of `acknowledged` had arrived when it was saved,
  // on these or another number of servers.
  void Continue(const std::vector<uint64_t>& held, const std::vector<uint64_t>& acknowledged);

 private:
  void Recovered(size_t failure, double now);
  void WorkGoesOn(double now);
  void NoteRolledBack(int64_t before);
  int64_t TakeDebt();

  std::vector<MemberFailure> failures_;
  std::optional<size_t>
      recovering_;  // the first of the servers' failures that are, or were last, recovered together
  UpdateLedger updates_;
  int64_t debt_ = 0;  // of before the first recovery: updates that results will add
  // Functions that lost workers ran, and the failures: the last one's worker ran it last.
  std::map<FunctionId, std::vector<size_t>> lost_runs_;
  std::set<size_t>
      idle_;  // failures of workers that nobody waits for; over as soon as any work goes on
};

}  // namespace mu
