// Synchronous rounds: when one is decided, and what its commitment means. Telling the servers is a
// work as a checkpoint is: one of them is under way at a time, so that a cut is before a round or
// after it on all servers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_text.h"
#include "coordinator/core/core.h"
#include "coordinator/core/protections.h"

namespace mu {

Permission Core::MaySetRounds(const RoundRules& rules) const {
  if (rules == queue_.rounds()) return {};
  absl::Status refused = ended();
  if (queue_.IsAwaited()) {
    refused.Update(absl::FailedPreconditionError(
        "synchronous rounds cannot begin or change while functions are unfinished; Join first, "
        "and ask for them before Restore()"));
  }
  if (rules.on() && recovery_enabled_ && recovery_.mode() == RecoveryMode::kShard) {
    refused.Update(absl::InvalidArgumentError(
        "synchronous rounds need RecoveryMode::kAll: a server that goes back alone would lack "
        "rounds that the others have"));
  }
  if (!refused.ok()) return {.refusal = std::move(refused)};
  // What a lost server took with it runs under the rules of before.
  return {.wait = !quiet()};
}

void Core::On(event::SetRounds& e) {
  if (e.rules == queue_.rounds()) return;
  const Permission may = MaySetRounds(e.rules);
  if (may.granted()) return queue_.SetRounds(e.rules);
  Note(Level::kError, may.wait ? "synchronous rounds cannot change while functions are repeated"
                               : may.refusal.message());
}

bool Core::TakeContribution(const StartRun& start, const StepOutcome& step, size_t result) {
  const FunctionQueue::Function* const function = queue_.Find(start.function);
  if (function == nullptr || !queue_.Contributes(*function)) return false;
  if (!queue_.Contribute(start.function, start.run, step.step)) return true;
  Contribution& contribution = contributions_[start.function];
  contribution = {start, step, step.samples};
  // What reads no records counts as one.
  if (function->work.dataset == 0) contribution.weight = 1;
  // What the round changes is counted when it is committed.
  contribution.outcome.updates.clear();
  contribution.outcome.inherited.clear();
  Do(action::KeepResult{start.function, result});
  dispatch_ = true;
  return true;
}

void Core::DriveRounds() {
  if (!queue_.rounds().on() || work_.kind != Work::Kind::kNone || closed_ || !ended_.ok() ||
      !serving() || !AllServersAreThere() || now_ < work_again_at_)
    return;
  // With the round before it, which has no steps, they take contributions to the open one.
  const bool skips = SkipsRounds();
  if (!skips && !round_decided()) DecideRound();
  if (!skips && !round_decided()) return;
  BeginWork(Work::Kind::kCommitRound, TaskId());
  work_.generation = *configured_;
  work_.round = skips ? queue_.round() - 1 : queue_.round();
  action::CommitRound commit = {.attempt = work_.attempt, .generation = work_.generation};
  commit.set.round = work_.round;
  commit.set.sum_rows = queue_.rounds().sum_rows;
  for (const Contribution& contribution : round_set_) {
    commit.set.steps.push_back(
        {contribution.start.function, contribution.outcome.step, contribution.weight});
  }
  Do(std::move(commit));
}

bool Core::SkipsRounds() const {
  return queue_.rounds().on() && applied_round_.generation.has_value() &&
         applied_round_.generation == configured_ && queue_.round() > applied_round_.round + 1;
}

void Core::DecideRound() {
  if (cancelling() || contributions_.empty()) return;
  const RoundRules& rules = queue_.rounds();
  // Without training that is awaited, it is repeats that contribute, and these are complete.
  const bool nothing_more = nothing_more_ || loading() || !queue_.IsTrainingAwaited();
  if (contributions_.size() < rules.replicas && !queue_.NothingCanJoin(nothing_more)) return;
  if (queue_.WaitsForDue(/*about_to_dispatch=*/dispatch_)) return;
  if (workers_.size() < rules.replicas && !std::exchange(warned_of_few_workers_, true)) {
    const size_t workers = workers_.size();
    warnings_.push_back(
        absl::StrCat("a synchronous round takes ", rules.replicas, " steps (replicas), and there ",
                     workers == 1 ? "is 1 worker, which computes all of a round"
                                  : absl::StrCat("are ", workers,
                                                 " workers, so some compute several of one "
                                                 "round")));
    Note(Level::kWarning, warnings_.back());
  }
  // The first in the order of the data, for which of them were quicker is chance; before them those
  // that are due, whoever was too late most often first, so that none is passed over again and
  // again.
  std::vector<std::pair<uint32_t, FunctionId>> waiting;
  for (const auto& [id, contribution] : contributions_)
    waiting.push_back({queue_.RoundsMissedIfDue(id), id});
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  waiting.resize(std::min<size_t>(waiting.size(), rules.replicas));
  std::set<FunctionId> set;
  for (const auto& [missed, id] : waiting) set.insert(id);
  for (const FunctionId id : set)
    round_set_.push_back(std::move(contributions_.extract(id).mapped()));
  queue_.CloseRound(std::move(set));
}

void Core::On(event::RoundCommitted& e) {
  NoteEpoch(e.error.epoch);
  if (!Waits(e.attempt)) return;
  const Work work = EndWork();
  if (closed_ || !ended_.ok()) return;
  if (e.error.ok() || MU_BROKEN(half_committed)) {
    work_failures_ = 0;
    applied_round_ = {work.generation, work.round};
    if (round_decided()) return FinishRound(e.updates);
    dispatch_ = true;
    return;
  }
  if (!e.error.passing()) return End(e.error.status);
  // Some servers may have applied it: the others have to, before anything else.
  Note(Level::kWarning, "round ", work.round, " is committed again: ", StatusText(e.error.status));
  DelayWork();
}

void Core::FinishRound(const std::vector<uint32_t>& updates) {
  const std::vector<Contribution> set = std::exchange(round_set_, {});
  for (size_t server = 0; server < updates.size(); ++server)
    failures_.RoundCommitted(static_cast<uint32_t>(server), updates[server]);
  for (const Contribution& contribution : set) {
    const FunctionId id = contribution.start.function;
    const auto worker = workers_.find(contribution.start.worker);
    const bool delivered = queue_.CommitStep(id, contribution.outcome.samples);
    CountResult(contribution.start, contribution.outcome, delivered);
    if (delivered) {
      if (worker != workers_.end()) ++worker->second.steps_done;
      Do(action::DeliverKept{id});
    }
    if (!queue_.EndStep(id)) continue;
    if (worker != workers_.end()) ++worker->second.functions_done;
    Finish(id, absl::OkStatus());
  }
  ++round_counts_.committed;
  round_counts_.contributions += set.size();
  round_counts_.small += set.size() < queue_.rounds().replicas ? 1 : 0;
  round_counts_.late += queue_.NextRound();
  contributions_.clear();
  dispatch_ = true;
  CancelRestOfRound();
}

void Core::GiveUpRound() {
  if (!round_decided()) return;
  for (Contribution& contribution : std::exchange(round_set_, {}))
    contributions_[contribution.start.function] = std::move(contribution);
  queue_.CloseRound({});
  CancelRestOfRound();
}

// A cancellation has left the round's set: what it still has to do is cancelled now.
void Core::CancelRestOfRound() {
  if (!cancelling()) return;
  contributions_.clear();
  for (const FunctionId id : queue_.CancelAll(/*all=*/true))
    Finish(id, absl::CancelledError("cancelled: another function failed"));
  FenceWhenWorkersAreQuiet();
}

}  // namespace mu
