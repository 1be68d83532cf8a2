// Functions: what is dispatched, what follows a result and the end of a run.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/error_kind.h"
#include "common/base/status_text.h"
#include "coordinator/core/core.h"
#include "coordinator/core/no_room.h"
#include "coordinator/core/protections.h"

namespace mu {
namespace {

// Workers that end one after the other within one step of a function. Machines that are taken away
// do not do that, however many there are.
constexpr uint32_t kMostLost = 10;

}  // namespace

Permission Core::MaySchedule(const FunctionWork& work, const absl::Status& unseen) const {
  const bool trains = work.group == GroupId();
  // What is scheduled while values are about to be loaded would belong to what they replace.
  if (loading() || (trains && settling())) return {.wait = true};
  absl::Status refused = unseen;
  refused.Update(ended());
  refused.Update(RefusalOf(work.fingerprint));
  refused.Update(GroupRefuses(work));
  if (!refused.ok()) return {.refusal = std::move(refused)};
  // A round that needs more than fit must not wait for what cannot be scheduled.
  const size_t in_round = trains ? queue_.rounds().most() : 0;
  return {.wait = queue_.queued(work.group) >= std::max(options_.queue_bound, in_round)};
}

void Core::On(event::Schedule& e) {
  FunctionWork& work = e.work;
  if (work.group != GroupId()) {
    MU_CHECK(!work.trains && groups_.contains(work.group));  // the shell asks MaySchedule
    work.updates = false;
    work.view = groups_.at(work.group).view;
    dispatch_ = true;
    return Do(action::Scheduled{queue_.Schedule(std::move(work))});
  }
  // What a lost server takes with it must be remembered; without recovery there is no use in it.
  work.updates = work.trains && recovery_enabled_;
  if (work.updates) trained_on_.insert(work.dataset);
  if (!recovery_enabled_) queue_.ForgetKept();
  if (work.trains) nothing_more_ = cancelled_ = false;
  Do(action::Scheduled{queue_.Schedule(std::move(work))});
  dispatch_ = true;
}

void Core::Dispatch() {
  if (closed_ || !ended_.ok() || !serving()) return;
  // Workers are to be told first where the servers of this generation are.
  if (recovery_.started() && generation_ < recovery_.generation()) return;
  // Without recovery nobody goes back; the low-water mark must not wait for the next Schedule.
  if (!recovery_enabled_ && queue_.scheduled()) queue_.ForgetKept();
  NoteKept();
  // The checkpoint that makes room waits for assignments that are to be repeated, and these for the
  // functions before them.
  const bool go_on = update_pause_.paused() && queue_.HasAssignments();
  const auto held = [&](FunctionId id, bool begun) {
    // Servers take the updates of the oldest one however full they are (Ledger), and only its end
    // makes room.
    if (begun && id == queue_.low_water()) return false;
    return update_pause_.Holds(id, begun || go_on);
  };
  const auto open = [&](const FunctionWork& work) { return MayStart(work); };
  std::vector<StartRun> starts;
  for (bool again = true; again;) {
    std::vector<FunctionId> completed;
    std::map<FunctionId, FunctionQueue::WithoutData> without_data;
    for (StartRun& start : queue_.Dispatch(&completed, held, &without_data, open))
      starts.push_back(std::move(start));
    absl::Status out_of_data;
    std::map<GroupId, absl::Status> failed;
    for (const FunctionId id : completed) {
      const auto without = without_data.find(id);
      if (without == without_data.end()) {
        Finish(id, absl::OkStatus());
        continue;
      }
      const absl::Status status = OutOfData(without->second.dataset);
      if (without->second.group == GroupId()) {
        out_of_data.Update(status);
      } else if (!status.ok()) {
        failed.emplace(without->second.group, status);
      }
      Finish(id, status);
    }
    if (!out_of_data.ok()) BeginCancel(out_of_data);
    // There is room again where the group's functions would have run.
    again = !failed.empty();
    for (auto& [group, error] : failed) FailGroup(group, std::move(error));
  }
  // Last, since all of the above ends what would be started now as well.
  for (const StartRun& start : starts) {
    const FunctionQueue::Function* const function = queue_.Find(start.function);
    if (function == nullptr || function->run != start.run) continue;
    const auto worker = workers_.find(start.worker);
    // With requeueing broken the queue does not know that the worker is lost.
    if (worker == workers_.end()) continue;
    if (worker->second.runs.empty()) worker->second.last_news = now_;
    worker->second.runs.emplace(start.run, start.function);
    Do(action::Start{start});
  }
}

void Core::On(event::Results& e) {
  const auto it = workers_.find(e.start.worker);
  Worker* const worker =
      it != workers_.end() && it->second.runs.contains(e.start.run) ? &it->second : nullptr;
  if (worker != nullptr) {
    if (e.handed_back) {
      queue_.WorkerDrains(e.start.worker);
      worker->handed_back.insert(e.start.run);
    }
    if (!e.steps.empty()) {
      const absl::Duration took = now_ - std::exchange(worker->last_news, now_);
      queue_.StepsTook(e.start.worker, e.start.function,
                       absl::ToDoubleSeconds(took) / static_cast<double>(e.steps.size()));
      const FunctionQueue::Function* const function = queue_.Find(e.start.function);
      if (function != nullptr && function->run == e.start.run)
        NoteRead(worker, *function, e.steps.back().step);
    }
  }
  for (size_t i = 0; i < e.steps.size(); ++i) {
    const StepOutcome& step = e.steps[i];
    if (TakeContribution(e.start, step, i)) continue;
    bool current = false;
    const bool delivered =
        queue_.StepDone(e.start.function, e.start.run, step.step, step.samples, &current);
    if (current) CountResult(e.start, step, delivered);
    if (!current && queue_.IsSuperseded(e.start.run)) failures_.LateStep(step);
    if (!delivered) continue;
    if (worker != nullptr) ++worker->steps_done;
    Do(action::Deliver{e.start.function, i});
  }
  dispatch_ |= queue_.waits_for_steps();
}

void Core::On(event::BoundStaleness& e) {
  queue_.BoundStaleness(e.steps);
  dispatch_ = true;
}

void Core::CountResult(const StartRun& start, const StepOutcome& step, bool delivered) {
  const FunctionQueue::Function& function = *queue_.Find(start.function);
  staleness_.Add(step);
  if (function.work.updates && delivered) {
    trained_steps_ += step.samples > 0 || function.work.dataset == 0 ? 1 : 0;
    trained_samples_ += step.samples;
  }
  const FailureLog::Result result = {.updates = function.work.updates,
                                     .first = delivered,
                                     .last = function.next_step >= function.steps};
  failures_.StepDone(start.function, step, result, Seconds());
}

void Core::On(event::RunEnded& e) {
  const auto it = workers_.find(e.start.worker);
  // An index may have a new incarnation by now, which has not been given this run.
  if (it == workers_.end() || it->second.runs.erase(e.start.run) == 0) return RunOver(e, nullptr);
  const Incarnation incarnation = it->second.member.incarnation;
  // A worker executes its runs in order, but their ends may overtake each other on the way: an
  // error waits for those of earlier runs, so that the first one is reported.
  if (!e.error.ok() && e.error.kind == pb::ERROR_USER) {
    it->second.early_errors[e.start.run] = e;
  } else {
    RunOver(e, &it->second);
  }
  while (Worker* const worker = Find(e.start.worker, incarnation)) {
    auto& errors = worker->early_errors;
    if (errors.empty()) break;
    if (!worker->runs.empty() && worker->runs.begin()->first < errors.begin()->first) break;
    const auto error = errors.extract(errors.begin());
    RunOver(error.mapped(), worker);
  }
  LeaveIfIdle(e.start.worker);
}

void Core::RunOver(const event::RunEnded& e, Worker* worker) {
  const StartRun& start = e.start;
  const bool handed_back = worker != nullptr && worker->handed_back.erase(start.run) > 0;
  NoteEpoch(e.error.epoch);
  const FunctionQueue::Function* function = queue_.Find(start.function);
  if (closed_) return;
  dispatch_ = true;
  // Some servers have applied the round that it was for, and it is about to be committed.
  const bool too_late = function != nullptr && e.error.kind == pb::ERROR_STALE && round_decided() &&
                        queue_.Contributes(*function);
  if (function == nullptr || function->run != start.run) {
    // A worker that hung, or was too late for its round, may be free again. How slow it is shows in
    // the end of a step that had no result.
    if (worker != nullptr && e.error.kind == pb::ERROR_STALE && queue_.IsSuperseded(start.run)) {
      const absl::Duration took = now_ - std::exchange(worker->last_news, now_);
      queue_.StepsTook(start.worker, start.function, absl::ToDoubleSeconds(took));
    }
    if (too_late) {
      queue_.CameTooLate(start.function, start.run);
    } else {
      queue_.RunEnded(start.function, start.run);
    }
    return;
  }
  if (e.error.ok()) {
    if (function->next_step < function->steps && !handed_back) {
      return Unreadable(start, absl::StrCat("an end after ", function->next_step, " of ",
                                            function->steps, " steps"));
    }
    if (queue_.RunEnded(start.function, start.run) == FunctionQueue::Ended::kCompleted) {
      if (worker != nullptr) ++worker->functions_done;
      Finish(start.function, absl::OkStatus());
    }
    return;
  }
  if (e.error.kind == pb::ERROR_USER)
    return FailFunction(start.function, start.run, e.error.status);
  if (e.error.caller_gone) {
    // This coordinator stood still for so long that the worker gave it up. What comes on the stream
    // proves that the worker is well.
    return RunAgain(start, queue_.RunEnded(start.function, start.run));
  }
  if (e.error.kind == pb::ERROR_NOT_INSTALLED && e.error.role == pb::ROLE_PSSERVER &&
      function->work.view != ViewId()) {
    Note(Level::kWarning, "server ", e.error.index, ": ", StatusText(e.error.status),
         "; the view is loaded again");
    views_.NotThere(function->work.view);
    return RunAgain(start, queue_.RunEnded(start.function, start.run));
  }
  if (e.error.kind == pb::ERROR_NOT_INSTALLED) {
    // Nor will it, if it or another worker has found the function wrong. Schedule refuses such a
    // function; what a checkpoint or a restore brings back comes here.
    if (const absl::Status refused = RefusalOf(function->work.fingerprint); !refused.ok())
      return FailFunction(start.function, start.run, refused);
    // The worker does not know the function: it started anew.
    Note(Level::kWarning, "worker ", start.worker.value(), ": ", StatusText(e.error.status),
         "; installing again");
    queue_.WorkerReady(start.worker, 0);
    RunAgain(start, queue_.RunEnded(start.function, start.run));
    if (worker == nullptr) return;
    installations_.Forgot(start.worker);
    return InstallOn(start.worker);
  }
  if (e.error.applied_full) {
    // Room comes with a checkpoint, which waits for the assignment, which waits for this function.
    if (queue_.HasAssignments()) return End(NoRoomForRepeats(e.error.status));
    // Nobody's fault: it continues when there is room, or when it is the oldest.
    Act(update_pause_.ServerRefused(e.error.index, start.function));
    return RunAgain(start, queue_.RunEnded(start.function, start.run));
  }
  if (e.error.input.kind() != pb::InputFault::NONE && worker != nullptr) {
    const absl::Status error = WorkerCannot(*worker, function->work.dataset, e.error);
    if (!ended_.ok()) return;  // all functions have ended with it
    if (!error.ok()) return FailFunction(start.function, start.run, error);
    return RunAgain(start, queue_.RunEnded(start.function, start.run));
  }
  if (too_late) return RunAgain(start, queue_.CameTooLate(start.function, start.run));
  if (e.error.role == pb::ROLE_PSSERVER) {
    // The worker is well, a server is not; its heartbeats decide whether it is lost.
    Note(Level::kWarning, "worker ", start.worker.value(), ": server ", e.error.index,
         " cannot be reached: ", StatusText(e.error.status));
    return RunAgain(start, queue_.ServerUnreached(start.function, start.run));
  }
  if (worker == nullptr) return RunAgain(start, queue_.RunEnded(start.function, start.run));
  // Its connection broke: whatever the process is doing, it must register again.
  const Member member = worker->member;
  Remove(member, "unreachable", std::string(e.error.status.message()));
}

void Core::RunAgain(const StartRun& start, FunctionQueue::Ended ended) {
  if (ended == FunctionQueue::Ended::kCompleted) Finish(start.function, absl::OkStatus());
}

void Core::StartBackups() {
  for (const FunctionQueue::BackupRun& backup : queue_.Tick(Seconds())) {
    Note(Level::kWarning, "worker ", backup.hung.value(), " has had no result for ",
         absl::FormatDuration(absl::Seconds(std::round(backup.silent_seconds))), ": ",
         NameOf(backup.function), " runs elsewhere too");
    failures_.BackupRun(backup.function);
  }
}

void Core::On(event::Unreadable& e) {
  const Worker* const worker = Find(e.worker, e.incarnation);
  if (worker == nullptr || worker->runs.empty()) return;
  auto run = worker->runs.find(e.run);
  // Which one is meant cannot be known; a worker is at its first.
  if (run == worker->runs.end()) run = worker->runs.begin();
  Unreadable({.function = run->second, .run = run->first, .worker = e.worker}, e.what);
}

void Core::Unreadable(const StartRun& start, const std::string& what) {
  const FunctionQueue::Unreadable decided = queue_.AnswerUnreadable(start.function, start.run);
  if (closed_ || decided == FunctionQueue::Unreadable::kIgnored) return;
  dispatch_ = true;
  const auto worker = workers_.find(start.worker);
  const std::string message =
      absl::StrCat(worker == workers_.end() ? absl::StrCat("worker ", start.worker.value())
                                            : Describe(worker->second.member),
                   " answered ", NameOf(start.function), " with ", what);
  if (decided == FunctionQueue::Unreadable::kGiveUp) {
    FailFunction(start.function, start.run,
                 WithKind(absl::InternalError(
                              absl::StrCat(message, "; ", queue_.Find(start.function)->unreadable,
                                           " answers to it made no sense: are all workers of the "
                                           "coordinator's version?")),
                          pb::ERROR_MACHINE, pb::ROLE_WORKER, start.worker.value()));
  }
  // Whatever else it says is not believed either; it must register again.
  if (worker == workers_.end()) return;
  const Member member = worker->second.member;
  Remove(member, "unreadable", message);
}

// Fails the function that probably killed this worker. A retry would kill more.
void Core::FailIfDeadly(const Member& member, const std::string& message) {
  // Steps that wait for a server have no results either.
  if (closed_ || !serving()) return;
  const auto deadly = queue_.DeadlyOn(WorkerId(member.index), kMostLost);
  if (!deadly.has_value()) return;
  const FunctionQueue::Function& function = *queue_.Find(*deadly);
  FailFunction(
      *deadly, function.run,
      WithKind(
          absl::ResourceExhaustedError(absl::StrCat(
              function.lost, " workers in a row were lost while they ran step ", function.next_step,
              " of ", NameOf(*deadly),
              ", so it is likely to end whoever runs it; if it needs more memory than a worker "
              "has, make its batches smaller. The last one was ",
              Describe(member), ": ", message)),
          pb::ERROR_MACHINE, pb::ROLE_WORKER, member.index));
}

void Core::FailFunction(FunctionId id, RunId run, absl::Status error) {
  Note(Level::kError, NameOf(id), ": ", error.ToString());
  const FunctionQueue::Function* const function = queue_.Find(id);
  const GroupId group = function == nullptr ? GroupId() : function->work.group;
  queue_.Remove(id, run);
  Finish(id, error);
  if (group != GroupId()) return FailGroup(group, std::move(error));
  BeginCancel(std::move(error));
}

void Core::Finish(FunctionId id, absl::Status status) {
  failures_.FunctionOver(id, status.ok(), Seconds());
  Do(action::Finish{id, std::move(status)});
}

void Core::StopRuns() {
  contributions_.clear();
  round_set_.clear();
  queue_.StopRuns();
  // Nobody wants their results any more; the workers stop before their next step.
  for (const auto& [id, worker] : workers_) {
    for (const auto& [run, function] : worker.runs) Do(action::StopRun{id, run});
  }
}

std::string Core::NameOf(FunctionId id) const {
  const FunctionQueue::Function* const function = queue_.Find(id);
  const std::string name = function == nullptr ? "" : function->work.name;
  if (IsInGroup(id)) {
    const GroupId group = function == nullptr ? GroupId() : function->work.group;
    return absl::StrCat("a call of '", name, "' in group ", group.value());
  }
  return absl::StrCat("function ", id.value(), " ('", name, "')");
}

}  // namespace mu
