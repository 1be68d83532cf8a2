// Runs of functions on workers: dispatch, results, ends.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

// Workers that end one after the other within one step of a function. Machines that are taken away
// do not do that, however many there are.
constexpr uint32_t kMostLost = 10;

absl::Status WorkersError(absl::Status status, WorkerId worker) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_MACHINE);
  detail.set_role(pb::ROLE_WORKER);
  detail.set_index(worker.value());
  return WithDetail(std::move(status), detail);
}

}  // namespace

void Runtime::StartOn(const StartRun& start) {
  WorkerLink& link = *links_.at(start.worker);
  const FunctionQueue::Function& function = *queue_.Find(start.function);
  pb::RunRequest request;
  *request.mutable_context() = ContextLocked();
  request.set_function(start.function.value());
  request.set_fingerprint(function.work.fingerprint.value());
  request.set_first_step(start.first_step);
  request.set_steps(start.steps);
  request.set_run(start.run.value());
  request.set_after(start.after.value());
  request.set_step_offset(function.work.step_offset);
  for (const auto& range : function.batches) *request.add_batches() = ToProto(range);
  // A repeat of a finished function has nobody who waits for it.
  if (const auto state = states_.find(start.function); state != states_.end()) {
    state->second->SetBatches(function.batches);
  }
  if (function.work.args != nullptr) {
    for (const auto& arg : *function.work.args) *request.add_args() = arg;
  }
  for (const auto& lease : UpcomingLeases(function.work.dataset, start.worker))
    *request.add_upcoming() = lease;
  ++stats_.runs;
  if (link.runs.empty()) link.last_news = SteadyNow();
  ++streams_;
  spans_.Started(start, NameOf(function.work.fingerprint));
  link.runs[start.run] = link.channel->ServerStream(
      "/muster.Worker/Run", Buffer(request.SerializeAsString()),
      {.timeout = absl::InfiniteDuration()},
      [this, start](Buffer message) { OnRunReply(start, message); },
      [this, start](absl::Status status) { OnRunEnded(start, status); });
}

void Runtime::OnRunReply(const StartRun& start, const Buffer& message) {
  pb::RunReply reply;
  std::vector<FunctionResult::Step> parsed;
  std::string unreadable;
  if (!reply.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    unreadable = "bytes that are no RunReply";
  }
  for (const pb::StepResult& step : reply.steps()) {
    if (!unreadable.empty()) break;
    auto values = FunctionState::Parse(step);
    if (values.ok()) {
      parsed.push_back(*std::move(values));
    } else {
      unreadable =
          absl::StrCat("values that are none (", std::string(values.status().message()), ")");
    }
  }
  MutexLock lock(&mutex_);
  if (!unreadable.empty()) return Unreadable(start, unreadable);
  if (const auto it = links_.find(start.worker);
      it != links_.end() && it->second->runs.contains(start.run)) {
    if (reply.handed_back()) {
      queue_.WorkerDrains(start.worker);
      it->second->handed_back.insert(start.run);
    }
    const absl::Time now = SteadyNow();
    if (reply.steps_size() > 0) {
      queue_.StepsTook(start.worker, start.function,
                       absl::ToDoubleSeconds(now - std::exchange(it->second->last_news, now)) /
                           reply.steps_size());
      const FunctionQueue::Function* const function = queue_.Find(start.function);
      if (function != nullptr && function->run == start.run)
        NoteRead(*it->second, *function, reply.steps(reply.steps_size() - 1).step());
    }
  }
  for (int i = 0; i < reply.steps_size(); ++i) {
    const pb::StepResult& step = reply.steps(i);
    bool current = false;
    const bool delivered =
        queue_.StepDone(start.function, start.run, step.step(), step.samples(), &current);
    CountResult(start, step, current, delivered);
    if (!delivered) continue;
    const auto state = states_.find(start.function);
    if (state == states_.end()) continue;
    state->second->AddStep(step, std::move(parsed[static_cast<size_t>(i)]));
    stats_.steps += 1;
    stats_.samples += step.samples();
    stats_.bad_records += step.bad_records();
    if (stats_.first_bad_record.empty()) stats_.first_bad_record = step.bad_record_message();
    if (const auto link = links_.find(start.worker); link != links_.end())
      ++link->second->steps_done;
  }
}

void Runtime::OnRunEnded(const StartRun& start, const absl::Status& status) {
  MutexLock lock(&mutex_);
  --streams_;
  spans_.Ended(start, status);
  std::shared_ptr<WorkerLink> link;
  if (const auto it = links_.find(start.worker); it != links_.end()) {
    // Forget the call only if this is the link that made it: an index may have a new incarnation by
    // now.
    if (it->second->runs.erase(start.run) > 0) link = it->second;
  }
  changed_.SignalAll();
  if (link == nullptr) return RunOver(start, status, link);
  // A worker executes its runs in order, but their ends may overtake each other on the way: an
  // error waits for those of earlier runs, so that the first one is reported.
  auto& errors = link->early_errors;
  if (!status.ok() && KindOf(status) == pb::ERROR_USER) {
    errors[start.run] = {start, status};
  } else {
    RunOver(start, status, link);
  }
  while (!errors.empty() &&
         (link->runs.empty() || errors.begin()->first < link->runs.begin()->first)) {
    const auto error = errors.extract(errors.begin());
    RunOver(error.mapped().first, error.mapped().second, link);
  }
}

void Runtime::RunOver(const StartRun& start, const absl::Status& status,
                      const std::shared_ptr<WorkerLink>& link) {
  const bool handed_back = link != nullptr && link->handed_back.erase(start.run) > 0;
  const FunctionQueue::Function* function = queue_.Find(start.function);
  if (stopping_) return;
  if (function == nullptr || function->run != start.run) {
    queue_.RunEnded(start.function, start.run);  // a worker that hung may be free again
    return Dispatch();
  }
  if (status.ok()) {
    if (function->next_step < function->steps && !handed_back) {
      return Unreadable(start, absl::StrCat("an end after ", function->next_step, " of ",
                                            function->steps, " steps"));
    }
    if (queue_.RunEnded(start.function, start.run) == FunctionQueue::Ended::kCompleted) {
      if (link != nullptr) ++link->functions_done;
      FinishFunction(start.function, absl::OkStatus());
    }
    return Dispatch();
  }
  const auto detail = DetailOf(status);
  if (detail && detail->epoch() > options_.epoch.value())
    newer_epoch_ = std::max(newer_epoch_, detail->epoch());
  switch (KindOf(status)) {
    case pb::ERROR_USER:
      queue_.Remove(start.function, start.run);
      MU_LOG(ERROR, "function {}: {}", start.function, status);
      FinishFunction(start.function, status);
      return BeginCancel(status);
    case pb::ERROR_NOT_INSTALLED:
      // The worker does not know the function (it started anew): install everything again.
      MU_LOG(WARN, "worker {}: {}; installing again", start.worker, status);
      queue_.WorkerReady(start.worker, 0);
      if (link != nullptr) link->installed_version = 0;
      changed_.SignalAll();
      RunAgain(start);
      return Dispatch();
    default:
      break;
  }
  if (NoteRefusedLocked(start.function, status)) {
    // Nobody's fault: it goes on when there is room.
    queue_.RunEnded(start.function, start.run);
    return Dispatch();
  }
  if (InputFaultOf(status).kind() != pb::InputFault::NONE) {
    if (const absl::Status error = WorkerCannot(start.worker, function->work.dataset, status);
        !error.ok()) {
      if (!fatal_.ok()) return;  // all functions have ended with it
      MU_LOG(ERROR, "function {}: {}", start.function, error);
      queue_.Remove(start.function, start.run);
      FinishFunction(start.function, error);
      return BeginCancel(error);
    }
    RunAgain(start);
    return Dispatch();
  }
  if (detail && detail->role() == pb::ROLE_PSSERVER) {
    // The worker is well, a server is not; its heartbeats decide whether it is lost.
    MU_LOG(WARN, "worker {}: server {} cannot be reached: {}", start.worker, detail->index(),
           status);
    queue_.ServerUnreached(start.function, start.run);
    return Dispatch();
  }
  if (link != nullptr && !link->gone) {
    // Its connection broke: whatever the process is doing, it must register again.
    if (auto lost =
            membership_.Remove(pb::ROLE_WORKER, start.worker.value(), link->member.incarnation)) {
      MemberLost(*lost, "unreachable", std::string(status.message()));
    }
  } else {
    RunAgain(start);
  }
  Dispatch();
}

void Runtime::RunAgain(const StartRun& start) {
  if (queue_.RunEnded(start.function, start.run) == FunctionQueue::Ended::kCompleted)
    FinishFunction(start.function, absl::OkStatus());
}

void Runtime::Unreadable(const StartRun& start, const std::string& what) {
  const FunctionQueue::Unreadable decided = queue_.AnswerUnreadable(start.function, start.run);
  if (stopping_ || decided == FunctionQueue::Unreadable::kIgnored) return;
  const std::string name = NameOf(queue_.Find(start.function)->work.fingerprint);
  const auto link = links_.find(start.worker);
  const std::string worker =
      link == links_.end()
          ? absl::StrCat("worker ", start.worker.value())
          : absl::StrCat("worker ", start.worker.value(), " (pid ", link->second->member.pid, ", ",
                         link->second->member.address, ")");
  const std::string message = absl::StrCat(worker, " answered function ", start.function.value(),
                                           " ('", name, "') with ", what);
  if (decided == FunctionQueue::Unreadable::kGiveUp) {
    const absl::Status error = WorkersError(
        absl::InternalError(absl::StrCat(
            message, "; ", queue_.Find(start.function)->unreadable,
            " answers to it made no sense: are all workers of the coordinator's version?")),
        start.worker);
    MU_LOG(ERROR, "{}", error);
    queue_.Remove(start.function, start.run);
    FinishFunction(start.function, error);
    BeginCancel(error);
  }
  // Whatever else it says is not believed either; it must register again.
  if (link == links_.end()) return Dispatch();
  if (auto lost = membership_.Remove(pb::ROLE_WORKER, start.worker.value(),
                                     link->second->member.incarnation)) {
    MemberLost(*lost, "unreadable", message);
  }
  Dispatch();
}

void Runtime::StartBackups() {
  for (const FunctionQueue::BackupRun& backup : queue_.Tick(SecondsUp())) {
    const std::string name = NameOf(queue_.Find(backup.function)->work.fingerprint);
    MU_LOG(WARN, "worker {} has had no result for {}: function {} ('{}') runs elsewhere too",
           backup.hung, absl::FormatDuration(absl::Seconds(std::round(backup.silent_seconds))),
           backup.function, name);
    failures_.BackupRun(backup.function);
  }
}

void Runtime::EndIfDeadly(const WorkerLink& link, const std::string& message) {
  // Steps that wait for a server have no results either.
  const bool waits = recovery_enabled_ && recovery_.started() && !recovery_.serving();
  if (stopping_ || waits) return;
  const auto deadly = queue_.DeadlyOn(link.id, kMostLost);
  if (!deadly.has_value()) return;
  const FunctionQueue::Function& function = *queue_.Find(*deadly);
  const absl::Status error = WorkersError(
      absl::ResourceExhaustedError(absl::StrCat(
          function.lost, " workers in a row were lost while they ran step ", function.next_step,
          " of function ", deadly->value(), " ('", NameOf(function.work.fingerprint),
          "'), so it is likely to end whoever runs it; if it needs more memory than a worker has, "
          "make its batches smaller. The last one was worker ",
          link.id.value(), " (pid ", link.member.pid, ", ", link.member.address, "): ", message)),
      link.id);
  MU_LOG(ERROR, "{}", error);
  const FunctionId id = *deadly;
  queue_.Remove(id, function.run);
  FinishFunction(id, error);
  BeginCancel(error);
}

}  // namespace mu
