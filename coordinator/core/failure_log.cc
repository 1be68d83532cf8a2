#include "coordinator/core/failure_log.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

bool Any(const absl::InlinedVector<uint32_t, 4>& counts) {
  return std::any_of(counts.begin(), counts.end(), [](uint32_t count) { return count > 0; });
}

}  // namespace

size_t FailureLog::Add(MemberFailure failure) {
  return failures_.Add(std::move(failure), [this](size_t unlisted) { idle_.erase(unlisted); });
}

void FailureLog::WorkerLost(MemberFailure failure, const std::vector<FunctionId>& running) {
  const size_t number = Add(std::move(failure));
  for (const FunctionId function : running) lost_runs_[function].push_back(number);
  if (!running.empty()) waits_[number] = running.size();
  if (running.empty()) idle_.insert(number);
}

void FailureLog::ServerLost(MemberFailure failure, bool first) {
  if (first) failure.updates_rolled_back += TakeDebt();
  const size_t number = Add(std::move(failure));
  if (first) recovering_ = number;
}

// What a restore counted too little, results add later, to the recovery of then: so the debt moves
// there.
int64_t FailureLog::TakeDebt() {
  int64_t& debt = RolledBackOfRecovery();
  return debt < 0 ? std::exchange(debt, 0) : 0;
}

void FailureLog::WorkGoesOn(double now) {
  for (const size_t failure : idle_) failures_.Recovered(failure, now);
  idle_.clear();
}

void FailureLog::WorkerReady(double now) { WorkGoesOn(now); }

void FailureLog::StepDone(FunctionId function, const StepOutcome& step, const Result& result,
                          double now) {
  if (result.updates) {
    // Also those of a repeat: the servers went back and have them again.
    const int64_t before = updates_.rolled_back();
    for (size_t server = 0; server < step.updates.size(); ++server) {
      const uint32_t inherited = server < step.inherited.size() ? step.inherited[server] : 0;
      updates_.StepDone(static_cast<uint32_t>(server), step.updates[server], inherited,
                        result.first);
    }
    NoteRolledBack(before);
  }
  WorkGoesOn(now);
  // Where the servers have it from the state that they went back to, and its result had come before
  // that, RolledBack has counted this repeat.
  const bool restored = step.repeated && Any(step.inherited) && !Any(step.updates);
  const bool repeated = step.repeated && !(restored && !result.first);
  const auto lost = lost_runs_.find(function);
  if (lost == lost_runs_.end()) {
    if (repeated && backed_up_.contains(function)) CountBackupStep(step);
    return;
  }
  for (const size_t failure : lost->second) failures_.Recovered(failure, now);
  if (repeated) {
    FailureCosts& latest = failures_.CostsOf(lost->second.back(), pb::ROLE_WORKER);
    ++latest.steps_repeated;
    latest.samples_repeated += step.samples;
  }
  if (!result.last) return;
  WaitsNoMore(lost->second);
  lost_runs_.erase(lost);
}

void FailureLog::WaitsNoMore(const std::vector<size_t>& failures) {
  for (const size_t failure : failures) {
    const auto it = waits_.find(failure);
    if (it != waits_.end() && --it->second == 0) waits_.erase(it);
  }
}

void FailureLog::BackupRun(FunctionId function) {
  ++backup_runs_.runs;
  backed_up_.insert(function);
}

void FailureLog::LateStep(const StepOutcome& step) {
  // Else its updates were first: the result that was taken said that it was a repeat.
  if (step.repeated || !Any(step.updates)) CountBackupStep(step);
}

void FailureLog::CountBackupStep(const StepOutcome& step) {
  ++backup_runs_.steps_repeated;
  backup_runs_.samples_repeated += step.samples;
}

void FailureLog::FunctionOver(FunctionId function, bool finished, double now) {
  backed_up_.erase(function);
  const auto lost = lost_runs_.find(function);
  if (lost == lost_runs_.end()) return;
  const std::vector<size_t> failures = std::move(lost->second);
  lost_runs_.erase(lost);
  WaitsNoMore(failures);
  for (const size_t failure : failures) {
    if (finished) failures_.Recovered(failure, now);
    const MemberFailure* const listed = failures_.Find(failure);
    if (listed != nullptr && listed->recovered_seconds < 0 && !waits_.contains(failure))
      idle_.insert(failure);
  }
}

void FailureLog::RolledBack(const FunctionQueue::RolledBack& back) {
  if (!recovering_.has_value()) return;
  FailureCosts& costs = failures_.CostsOf(*recovering_, pb::ROLE_PSSERVER);
  costs.steps_repeated += back.steps;
  costs.samples_repeated += back.samples;
}

void FailureLog::DaemonEnded(int64_t pid, const std::string& message) {
  failures_.VisitListed([&](MemberFailure& failure) {
    if (failure.pid != pid) return true;
    // Who took its leave was expected to end.
    if (failure.kind != "left") absl::StrAppend(&failure.message, "; ", message);
    return false;
  });
}

void FailureLog::ServerRestored(uint32_t server, uint64_t held, const std::string& from) {
  failures_.VisitListed([&](MemberFailure& failure) {
    if (failure.role == pb::ROLE_PSSERVER && failure.index == server &&
        failure.recovered_seconds < 0) {
      absl::StrAppend(&failure.message, failure.message.empty() ? "" : "; ", "restored from ",
                      from);
    }
    return true;
  });
  const int64_t before = updates_.rolled_back();
  updates_.Restored(server, held);
  NoteRolledBack(before);
}

void FailureLog::Continue(const std::vector<uint64_t>& held,
                          const std::vector<uint64_t>& acknowledged) {
  const int64_t before = updates_.rolled_back();
  if (held.size() == acknowledged.size()) {
    for (uint32_t server = 0; server < held.size(); ++server)
      updates_.Continue(server, acknowledged[server]);
  } else {
    // Of other servers: only the sum matters.
    for (uint32_t server = 0; server < held.size(); ++server) updates_.Continue(server, 0);
    updates_.Continue(0, std::accumulate(acknowledged.begin(), acknowledged.end(), uint64_t{0}));
  }
  for (uint32_t server = 0; server < held.size(); ++server) updates_.Restored(server, held[server]);
  NoteRolledBack(before);
}

int64_t& FailureLog::RolledBackOfRecovery() {
  if (!recovering_.has_value()) return debt_;
  return failures_.CostsOf(*recovering_, pb::ROLE_PSSERVER).updates_rolled_back;
}

void FailureLog::NoteRolledBack(int64_t before) {
  RolledBackOfRecovery() += updates_.rolled_back() - before;
}

std::vector<MemberFailure> FailureLog::ServersBack(double now) {
  std::vector<MemberFailure> back;
  failures_.ServersBack(now, [&](const MemberFailure& failure) { back.push_back(failure); });
  return back;
}

}  // namespace mu
