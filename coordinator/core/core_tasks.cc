// What callers ask of the servers' state: one thing after the other, when the servers serve.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cannot_read.h"
#include "common/base/status.h"
#include "common/base/status_text.h"
#include "coordinator/core/core.h"
#include "coordinator/core/deadlines.h"
#include "coordinator/core/no_room.h"
#include "coordinator/core/protections.h"
#include "coordinator/core/restore_fault.h"

namespace mu {

void Core::On(event::TaskWanted& e) {
  if (absl::Status ended = this->ended(); !ended.ok())
    return Do(action::TaskDone{e.task, std::move(ended)});
  if (e.what.kind == ServerTask::Kind::kLoad) {
    if (e.what.point == nullptr) e.what.point = std::make_shared<const ResumePoint>();
    // Before servers lose what they hold.
    if (absl::Status fits = Fits(*e.what.point); !fits.ok())
      return Do(action::TaskDone{e.task, std::move(fits)});
  }
  if (e.what.background && cancelled_) return Do(action::TaskDone{e.task, LacksWhatWasCancelled()});
  tasks_[e.task].what = std::move(e.what);
}

void Core::On(event::TasksGivenUp& e) {
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    const auto& [id, task] = *it++;  // it may go
    if (id != work_.task && task.what.kind != ServerTask::Kind::kAssign) Answer(id, e.error);
  }
}

void Core::BeginWork(Work::Kind kind, TaskId task) {
  work_ = {.kind = kind, .attempt = ++attempts_, .task = task, .parameters = parameters_};
}

Core::Work Core::EndWork() { return std::exchange(work_, Work()); }

// A checkpoint ends by itself, see CheckpointCommit.
bool Core::VoidWork() {
  GiveUpRound();
  if (work_.kind == Work::Kind::kSave) return false;
  return EndWork().asked;
}

void Core::StateBroken() {
  if (MU_BROKEN(mixed_load)) return;
  if (recovery_enabled_ && recovery_.started()) {
    Do(action::InterruptServers{});  // of a round that is over with this
    return Act(recovery_.StateLost());
  }
  reset_servers_ = true;
  parameters_configured_.reset();
}

bool Core::loading() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const auto& task) {
    return task.second.what.kind == ServerTask::Kind::kLoad;
  });
}

Core::Task* Core::FindTask(TaskId id) {
  const auto it = tasks_.find(id);
  return it == tasks_.end() ? nullptr : &it->second;
}

void Core::Answer(TaskId id, const absl::Status& status) {
  const auto task = tasks_.extract(id);
  if (task.empty()) return;
  // What was not made will not be made later.
  if (!status.ok() && task.mapped().place.value() != 0) queue_.EndAssignment(task.mapped().place);
  Do(action::TaskDone{id, status});
}

void Core::AnswerAll(const absl::Status& status) {
  while (!tasks_.empty()) Answer(tasks_.begin()->first, status);
}

void Core::TryAgain(TaskId id, const CallError& error, bool counts) {
  Task* const task = FindTask(id);
  if (task == nullptr) return;
  if (counts && !deadlines::MayTryAgain(error, &task->tries)) return Answer(id, error.status);
  task->not_before = now_ + delays_.After(++task->failures);
}

void Core::AnswerReady() {
  if (tasks_.empty() || closed_ || !ended_.ok() || work_.kind == Work::Kind::kConfigure ||
      work_.kind == Work::Kind::kLoad || parameters_configured_ != parameters_ || !serving() ||
      !AllServersAreThere() || (recovery_.started() && !whole()))
    return;
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    const auto& [id, task] = *it++;  // it may go
    if (task.what.kind == ServerTask::Kind::kReady && !WaitsForRepeats(task))
      Answer(id, absl::OkStatus());
  }
}

void Core::DoTasks() {
  AnswerReady();
  if (work_.kind != Work::Kind::kNone) return;
  if (round_decided() && !MU_BROKEN(cut_in_a_round)) return;
  for (event::Leave& leave : std::exchange(leaves_, {})) ServerLeaves(leave);
  if (closed_ || !ended_.ok()) return;
  if (leave_saved_.has_value()) {
    const LeaveSaved saved = *std::exchange(leave_saved_, std::nullopt);
    Act(recovery_.LeaveCheckpoint(saved.checkpoint));
  }
  if (leave_wanted_) {
    if (!cancelling() && std::exchange(leave_wanted_, false)) BeginCheckpoint(TaskId());
    return;
  }
  if (!AllServersAreThere() || now_ < work_again_at_) return;
  // Also if nobody asks for anything: functions wait for it.
  if (state_broken()) return Configure();
  if (!serving()) return;
  if (RepeatAssignment() || tasks_.empty()) return;
  if (recovery_.started() && !whole()) return;
  if (parameters_configured_ != parameters_) return Configure();
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    const auto& [id, task] = *it++;  // it may go
    if (task.what.kind != ServerTask::Kind::kAssign) continue;
    absl::Status none = RoomToAssign(task.what.assignment->variable, task.what.waits_for_room);
    if (none.ok()) continue;
    if (task.place != FunctionId()) none = Annotate(none, "some servers may have assigned it");
    Answer(id, none);
  }
  const auto next = std::find_if(tasks_.begin(), tasks_.end(),
                                 [this](const auto& task) { return MayBegin(task.second); });
  if (next != tasks_.end()) Begin(next->first, &next->second);
}

absl::Status Core::RoomToAssign(const std::string& name, bool waits_for_room, size_t more) const {
  // Whoever trains takes checkpoints, which make room.
  if (waits_for_room || queue_.begun() || !updates_paused(more)) return absl::OkStatus();
  return NoRoomToAssign(name);
}

bool Core::MayBegin(const Task& task) const {
  if (cancelling() || now_ < task.not_before) return false;
  switch (task.what.kind) {
    case ServerTask::Kind::kReady:
      return false;  // answered already
    case ServerTask::Kind::kAssign:
      // What it waits for is a checkpoint, which must not wait for it. Servers take the oldest one
      // however full they are (Ledger), and only its end makes room.
      return (!updates_paused() || task.place == queue_.low_water()) && !WaitsForRepeats(task);
    case ServerTask::Kind::kLoad:
      // Those of groups that read the current values would read some of these and some of those.
      return queue_.unfinished() == 0 && queue_.unfinished_in_groups() == 0;
    case ServerTask::Kind::kSave:
      // An assignment that is still to be repeated has no place in a position.
      return whole() && !WaitsForRepeats(task);
  }
  return false;
}

// What a lost server took with it is made again from functions that had finished. For the program
// they were done before it asked for this.
bool Core::WaitsForRepeats(const Task& task) const {
  const bool assigns = task.what.kind == ServerTask::Kind::kAssign;
  if (!assigns && !task.what.after_repeats) return false;
  FunctionId before = assigns && queue_.AssignmentOpen(task.place) ? task.place : queue_.next_id();
  // While others run no moment is asked for, and a round that an assignment would wait for may have
  // to be filled by functions that are scheduled after it. What was joined before these is repeated
  // without them.
  if (queue_.IsTrainingAwaited() && (!assigns || queue_.rounds().on()))
    before = std::min(before, queue_.turn());
  return queue_.IsRepeating(before);
}

void Core::Begin(TaskId id, Task* task) {
  switch (task->what.kind) {
    case ServerTask::Kind::kReady:
      return;
    case ServerTask::Kind::kAssign:
      if (!queue_.AssignmentOpen(task->place)) task->place = queue_.BeginAssignment();
      BeginWork(Work::Kind::kAssign, id);
      return Do(action::Assign{work_.attempt, task->place, task->what.assignment});
    case ServerTask::Kind::kLoad:
      BeginWork(Work::Kind::kLoad, id);
      work_.generation = NextGeneration();
      last_checkpoint_ = work_.point =
          CheckpointNumber(std::max(last_checkpoint_, task->what.loaded).value() + 1);
      // What the coordinator sees to be damaged costs no server its state.
      return Do(action::LookAtFiles{work_.generation, id, work_.point});
    case ServerTask::Kind::kSave:
      return BeginCheckpoint(id);
  }
}

void Core::Configure() {
  BeginWork(Work::Kind::kConfigure, TaskId());
  work_.generation = reset_servers_ ? NextGeneration() : configured_.value_or(FirstGeneration());
  Do(action::Configure{work_.attempt, work_.generation, reset_servers_});
}

void Core::On(event::Configured& e) {
  NoteEpoch(e.error.epoch);
  if (!Waits(e.attempt)) return;
  const Work work = EndWork();
  if (!e.error.ok()) {
    DelayWork();
    if (deadlines::MayTryAgain(e.error, &configure_tries_)) return;
    configure_tries_ = 0;
    // Nobody else would tell the functions that wait.
    if (state_broken() && tasks_.empty()) return End(e.error.status);
    return AnswerAll(e.error.status);
  }
  configure_tries_ = work_failures_ = 0;
  if (!configured_.has_value()) failures_.ServersBack(Seconds());  // of the gathering cluster
  reset_servers_ = false;
  parameters_configured_ = work.parameters;
  configured_ = work.generation;
  views_.ServersChanged();
  Do(action::UseRouting{});
  if (recovery_enabled_ && !recovery_.started())
    Act(recovery_.Start(work.generation, queue_.points()));
}

bool Core::RepeatAssignment() {
  if (cancelling() || !recovery_enabled_) return false;
  const auto place = queue_.NextAssignment();
  if (!place.has_value()) return false;
  BeginWork(Work::Kind::kRepeatAssignment, TaskId());
  Do(action::Assign{work_.attempt, *place, queue_.Find(*place)->work.assignment});
  return true;
}

void Core::On(event::Assigned& e) {
  NoteEpoch(e.error.epoch);
  if (!Waits(e.attempt)) return;
  const Work work = EndWork();
  if (closed_ || !ended_.ok()) return;
  if (work.kind == Work::Kind::kRepeatAssignment) return AssignmentRepeated(e.error);
  Task* const task = FindTask(work.task);
  if (task == nullptr) return;
  if (e.error.applied_full) {
    // Nobody's fault: it is made when there is room, or when it is the oldest.
    task->not_before = now_ + delays_.After(++task->failures);
    return Act(update_pause_.ServerRefused(e.error.index, task->place));
  }
  if (!e.error.ok()) return TryAgain(work.task, e.error);
  if (!queue_.AssignmentOpen(task->place)) return;  // cancelled: it is made again, in a new place
  if (!recovery_enabled_ && queue_.scheduled()) {
    queue_.EndAssignment(task->place);
  } else {
    // A lost server takes the assignment with it, so it has its place among the functions that are
    // repeated. Before anything was scheduled, recovery may still be enabled.
    queue_.Assigned(task->place, task->what.assignment);
  }
  NoteKept();
  Answer(work.task, absl::OkStatus());
}

void Core::AssignmentRepeated(const CallError& error) {
  const auto place = queue_.NextAssignment();
  if (!place.has_value()) return;
  if (error.ok()) {
    work_failures_ = 0;
    queue_.AssignmentDone(*place);
    dispatch_ = true;
    return;
  }
  // A checkpoint, which would make room, waits for this.
  if (error.applied_full) return End(NoRoomForRepeats(error.status));
  if (!error.passing()) return End(error.status);
  Note(Level::kWarning, "the assignment of '", queue_.Find(*place)->work.assignment->variable,
       "' is repeated again: ", StatusText(error.status));
  DelayWork();
}

void Core::LookFirst(action::LookAtFiles look, Unread unread) {
  unread_ = std::move(unread);
  unread_generation_ = look.generation;
  Do(std::move(look));
}

void Core::On(event::FilesSeen& e) {
  if (work_.kind == Work::Kind::kLoad && !work_.asked && work_.generation == e.generation) {
    if (IsBadCheckpoint(e.status)) {
      const Work work = EndWork();
      Do(action::CheckpointBad{work.task, work.point});
      return Answer(work.task, e.status);
    }
    work_.asked = true;
    return Do(action::Load{work_.attempt, work_.task, work_.generation, work_.point});
  }
  if (!unread_.has_value() || unread_generation_ != e.generation) return;
  auto unread = *std::exchange(unread_, std::nullopt);
  std::visit(
      [&](auto& event) {
        event.error = CallError::Of(AfterLook(event.error.status, e.status));
        On(event);
      },
      unread);
}

void Core::On(event::Loaded& e) {
  NoteEpoch(e.error.epoch);
  e.error = AfterRename(std::move(e.error), e.renamed);
  if (!Waits(e.attempt)) return;
  if (IsCannotRead(e.error.status) && !std::exchange(e.looked, true))
    return LookFirst({work_.generation, work_.task, work_.point}, std::move(e));
  const Work work = EndWork();
  if (closed_ || !ended_.ok()) return;
  if (e.error.ok()) {
    TakeOver(work, e.updates, *FindTask(work.task)->what.point);
    return Answer(work.task, absl::OkStatus());
  }
  const RestoreFault fault = FaultOf(e.error);
  const bool at_fault = fault == RestoreFault::kServer && recovery_enabled_;
  if (at_fault) Expel(e.error.index, e.error.status);
  if (fault == RestoreFault::kCheckpoint) Do(action::CheckpointBad{work.task, work.point});
  if (e.asked) StateBroken();
  // As often as it takes: another process takes the place.
  if (at_fault) return TryAgain(work.task, e.error, /*counts=*/false);
  if (fault != RestoreFault::kTryAgain) return Answer(work.task, e.error.status);
  TryAgain(work.task, e.error);
}

absl::Status Core::Fits(const ResumePoint& point) const {
  if (point.resumes && queue_.scheduled()) {
    return absl::FailedPreconditionError(
        "functions have been scheduled already, evaluations perhaps; Restore(), which a trainer's "
        "first Fit calls, comes before them. If the program is not to continue the job, let it "
        "call StartFresh()");
  }
  if (point.begins && queue_.scheduled()) {
    return absl::FailedPreconditionError(
        "functions have been scheduled already; WarmStart() comes before them");
  }
  for (const ResumePoint::Data& data : point.data)
    MU_RETURN_IF_ERROR(leases_.at(data.dataset).Fits(data.position, data.plan));
  return absl::OkStatus();
}

void Core::TakeOver(const Work& work, const std::vector<uint64_t>& updates,
                    const ResumePoint& point) {
  const JobPosition& job = point.job;
  parameters_configured_ = work.parameters;
  configured_ = work.generation;
  failures_.Continue(updates, job.acknowledged.empty() ? updates : job.acknowledged);
  queue_.SetRound(job.functions.round);
  queue_.StartFrom(work.point, job.functions.next_id);
  queue_.SetTakenSteps(job.taken_steps);
  views_.ServersChanged();
  Do(action::UseRouting{});
  Act(recovery_.Loaded(work.generation, work.point));
  if (!point.resumes) return;
  for (const ResumePoint::Data& data : point.data) {
    leases_.at(data.dataset).Resume(data.position, data.plan);
    trained_on_.insert(data.dataset);
  }
  for (const auto& [id, function] : job.functions.unfinished)
    trained_on_.insert(function.work.dataset);
  resumed_steps_.Resume(job);
  for (auto& [id, leases] : leases_)
    leases.SetStepsTaken(resumed_steps_.Of(id, leases.data().dataset.name()));
  queue_.Resume(work.point, job.functions);
  cancelled_ = false;  // the data is where these functions have left it
  trained_steps_ = job.steps;
  trained_samples_ = job.samples;
  dispatch_ = true;
}

// Not 0, which says nothing to daemons: a run without its generation would be executed in whichever
// the servers have reached when its turn comes.
Generation Core::FirstGeneration() const {
  return Generation(((options_.epoch.value() - 1) << 32) + 1);
}

Generation Core::NextGeneration() {
  given_ = std::max({FirstGeneration(), least_generation(), given_}).Next();
  recovery_.GivenOut(given_);
  return given_;
}

}  // namespace mu
