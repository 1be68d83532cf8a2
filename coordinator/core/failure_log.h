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
#include "coordinator/core/failure_list.h"
#include "coordinator/core/function_queue.h"
#include "coordinator/core/step_outcome.h"
#include "coordinator/core/update_ledger.h"
#include "proto/error.pb.h"

namespace mu {

// Functions that ran on a second worker, because the first one hung without being lost.
struct BackupRuns {
  uint64_t runs = 0;
  uint64_t steps_repeated = 0;  // that both workers ran
  uint64_t samples_repeated = 0;
};

class FailureLog {
 public:
  // `first` and `last`: how many failures are listed, of the oldest and of the newest.
  explicit FailureLog(size_t first = FailureList::kFirst, size_t last = FailureList::kLast)
      : failures_(first, last) {}

  std::vector<MemberFailure> failures() const { return failures_.Listed(); }
  UnlistedFailures unlisted() const { return failures_.unlisted(); }
  double without_progress_seconds() const { return failures_.without_progress_seconds(); }
  const BackupRuns& backup_runs() const { return backup_runs_; }

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
  void StepDone(FunctionId function, const StepOutcome& step, const Result& result, double now);
  // The function runs elsewhere too.
  void BackupRun(FunctionId function);
  // A result of a run whose place another run has taken.
  void LateStep(const StepOutcome& step);
  // Nobody waits for its results any more; `finished`: they are all there.
  void FunctionOver(FunctionId function, bool finished, double now);
  // A synchronous round was committed, which changed so many partitions there.
  void RoundCommitted(uint32_t server, uint64_t updates) {
    updates_.StepDone(server, updates, /*inherited=*/0, /*first=*/true);
  }

  void RolledBack(const FunctionQueue::RolledBack& back);
  // The state that a server was given, `from` a checkpoint or what else, holds so many updates.
  void ServerRestored(uint32_t server, uint64_t held, const std::string& from);
  // All of them serve. Which of the listed failures are over with that.
  std::vector<MemberFailure> ServersBack(double now);

  // Of a server, what the results said that have arrived, of what it holds.
  uint64_t acknowledged(uint32_t server) const { return updates_.acknowledged(server); }
  int64_t rolled_back() const { return updates_.rolled_back(); }  // see UpdateLedger
  // All servers were given a state, by this coordinator's will or because it continues a job:
  // `held` updates by server, of which the results of `acknowledged` had arrived when it was saved,
  // on these or another number of servers.
  void Continue(const std::vector<uint64_t>& held, const std::vector<uint64_t>& acknowledged);

 private:
  size_t Add(MemberFailure failure);
  void WorkGoesOn(double now);
  // Nobody waits for the function's results because of these failures any more.
  void WaitsNoMore(const std::vector<size_t>& failures);
  void CountBackupStep(const StepOutcome& step);
  // Where updates that are rolled back are noted now.
  int64_t& RolledBackOfRecovery();
  void NoteRolledBack(int64_t before);
  int64_t TakeDebt();

  FailureList failures_;
  std::optional<size_t>
      recovering_;  // the first of the servers' failures that are, or were last, recovered together
  UpdateLedger updates_;
  int64_t debt_ = 0;  // of before the first recovery: updates that results will add
  // Functions that lost workers ran, and the failures: the last one's worker ran it last.
  std::map<FunctionId, std::vector<size_t>> lost_runs_;
  std::map<size_t, size_t> waits_;  // in how many of these a failure is
  BackupRuns backup_runs_;
  std::set<FunctionId> backed_up_;  // unfinished functions with backup runs
  std::set<size_t>
      idle_;  // failures of workers that nobody waits for; over as soon as any work goes on
};

}  // namespace mu
