// The thread that does what takes its time: rounds of restores, a checkpoint for a server that
// leaves, and assignments that are made again (runtime_assign.cc).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"
#include "coordinator/cluster/restore_fault.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(100);

}  // namespace

void Runtime::Recoverer() {
  while (true) {
    std::optional<RestoreRound> round;
    bool save = false;
    std::optional<FunctionId> assignment;
    std::shared_ptr<const Assignment> value;
    {
      MutexLock lock(&mutex_);
      while (!stopping_) {
        if (fatal_.ok()) {
          if (SteadyNow() >= retry_at_) {
            retry_at_ = absl::InfiniteFuture();
            Act(recovery_.Retry());
          }
          if (round_.has_value() || save_for_leave_) break;
          if (recovery_.serving() && !cancelling_ &&
              (assignment = queue_.NextAssignment()).has_value())
            break;
        }
        if (retry_at_ == absl::InfiniteFuture() || !fatal_.ok()) {
          changed_.Wait(&mutex_);
        } else {
          changed_.WaitFor(&mutex_, std::max(absl::ZeroDuration(), retry_at_ - SteadyNow()));
        }
      }
      if (stopping_) return;
      round.swap(round_);
      if (!round.has_value()) std::swap(save, save_for_leave_);
      if (!round.has_value() && !save) value = queue_.Find(*assignment)->work.assignment;
    }
    if (round.has_value()) {
      RunRound(*round);
    } else if (save) {
      SaveForLeave();
    } else {
      RepeatAssignment(*assignment, std::move(value));
    }
  }
}

void Runtime::RunRound(const RestoreRound& round) {
  std::function<absl::StatusOr<RestoredServers>(const RestoreRound&)> restore;
  {
    MutexLock lock(&mutex_);
    restore = hooks_.restore;
  }
  const absl::StatusOr<RestoredServers> restored = [&] {
    ScopedSpan span(options_.telemetry, "restore",
                    absl::StrCat("generation ", round.generation.value(), ", checkpoint ",
                                 round.checkpoint.value()));
    return restore(round);
  }();
  MutexLock lock(&mutex_);
  // A server that was cut off may serve until its lease runs out: what replaces it waits for that.
  while (!stopping_ && recovery_.generation() == round.generation && round_ == std::nullopt &&
         SteadyNow() < old_leases_.last()) {
    changed_.WaitFor(&mutex_, old_leases_.last() - SteadyNow());
  }
  old_leases_.Forget(SteadyNow());
  if (stopping_ || recovery_.generation() != round.generation) return;
  if (restored.ok()) {
    for (size_t i = 0; i < round.servers.size(); ++i) {
      if (round.servers[i].keep) continue;
      failures_.ServerRestored(round.servers[i].index, restored->replies[i].updates(),
                               restored->from);
    }
    configured_ = round.generation;
    for (const RestoreRound::Server& server : round.servers) {
      Act(recovery_.RestoreDone(server.index, round.generation));
    }
    return;
  }
  // Whatever it ended with: a server was lost meanwhile, and another round begins when its place is
  // taken.
  if (!recovery_.restoring(round.generation)) return;
  const absl::Status& status = restored.status();
  const auto detail = DetailOf(status);
  const uint32_t server = detail && detail->role() == pb::ROLE_PSSERVER ? detail->index() : 0;
  if (detail && detail->epoch() > options_.epoch.value()) {
    newer_epoch_ = std::max(newer_epoch_, detail->epoch());
    changed_.SignalAll();
    return;
  }
  const RestoreFault fault = FaultOf(status);
  if (fault == RestoreFault::kFatal) return FailLocked(status);
  round_error_ = status;
  Recovery::Failure failure = Recovery::Failure::kTryAgain;
  switch (fault) {
    case RestoreFault::kCheckpoint:
      MU_LOG(ERROR, "the servers cannot be restored from checkpoint {}: {}; trying an older one",
             round.checkpoint.value(), status);
      failure = Recovery::Failure::kBadCheckpoint;
      break;
    case RestoreFault::kServer:
      failure = Recovery::Failure::kServerAtFault;
      break;
    default:
      MU_LOG(WARN, "recovery of the servers did not succeed and is tried again: {}", status);
      retry_at_ = SteadyNow() + kRetry;
  }
  Act(recovery_.RestoreFailed(server, round.generation, failure));
}

void Runtime::SaveForLeave() {
  std::function<absl::StatusOr<CheckpointNumber>()> take;
  {
    MutexLock lock(&mutex_);
    take = hooks_.save;
  }
  const absl::StatusOr<CheckpointNumber> taken = take();
  MutexLock lock(&mutex_);
  if (stopping_ || !fatal_.ok()) return;
  if (!taken.ok()) MU_LOG(ERROR, "no checkpoint before a server leaves: {}", taken.status());
  Act(recovery_.LeaveCheckpoint(taken.ok() ? std::optional<CheckpointNumber>(*taken)
                                           : std::nullopt));
}

}  // namespace mu
