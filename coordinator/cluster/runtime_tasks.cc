// What callers ask of the servers' state: they wait for the core's answer.
#include <utility>

#include "coordinator/cluster/runtime.h"
#include "coordinator/core/job_position.h"

namespace mu {

absl::Status Runtime::Run(ServerTask task, const std::shared_ptr<TaskState>& state) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    Want(std::move(task), state);
  });
  return EndOf(state);
}

void Runtime::Want(ServerTask task, const std::shared_ptr<TaskState>& state) {
  last_task_ = last_task_.Next();
  tasks_[last_task_] = state;
  Step(event::TaskWanted{last_task_, std::move(task)});
}

absl::Status Runtime::EndOf(const std::shared_ptr<TaskState>& state) {
  loop_.Await([&] {
    loop_.AssertHeld();
    return state->done;
  });
  return state->status;
}

void Runtime::GiveUpTasks(absl::Status error) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    Step(event::TasksGivenUp{std::move(error)});
  });
}

void Runtime::Do(action::TaskDone& a) {
  const auto task = tasks_.extract(a.task);
  if (task.empty()) return;
  const std::shared_ptr<TaskState> state = task.mapped();
  state->status = a.status;
  state->generation = catalog_.routing().generation();
  if (a.status.ok() && state->point != nullptr && state->point->resumes) {
    // The job goes on where it was.
    const pb::JobPositionProto& position = state->manifest.position();
    states_ = state->unfinished;
    // What this coordinator itself has seen goes on counting from where it is.
    resumed_steps_ += position.steps() - stats_.steps;
    resumed_samples_ += position.samples() - stats_.samples;
    stats_.steps = position.steps();
    stats_.samples = position.samples();
    user_state_ = state->manifest.user_state();
  }
  if (a.status.ok() || state->clean == nullptr) {
    state->done = true;
    return loop_.LookAgain();
  }
  // What is left of a checkpoint that failed is removed before its caller hears of it, and after
  // all that still writes there.
  work_.Add([this, state] {
    if (!state->folder.empty()) state->clean(state->folder);
    loop_.Post([this, state] {
      loop_.AssertHeld();
      state->done = true;
      loop_.LookAgain();
    });
  });
}

absl::Status Runtime::EnsureServers() { return EnsureReady(/*after_repeats=*/false).status(); }

absl::StatusOr<uint64_t> Runtime::EnsureWhole() { return EnsureReady(/*after_repeats=*/true); }

absl::StatusOr<uint64_t> Runtime::EnsureReady(bool after_repeats) {
  const auto state = std::make_shared<TaskState>();
  // In one job: a server that is lost before is missed here, one that is lost later ends the task.
  const auto ask = [&] {
    loop_.AssertHeld();
    const bool there = core_.membership().Count(pb::ROLE_PSSERVER) >= options_.servers;
    const bool may_ask = there || core_.servers_configured() || !core_.ended().ok();
    if (may_ask) Want({.kind = ServerTask::Kind::kReady, .after_repeats = after_repeats}, state);
    return may_ask;
  };
  while (!loop_.Ask(ask))
    MU_RETURN_IF_ERROR(WaitFor(pb::ROLE_PSSERVER, options_.servers, options_.start_timeout));
  MU_RETURN_IF_ERROR(EndOf(state));
  return state->generation;
}

absl::Status Runtime::PrepareResume(TaskState* state, std::vector<ResumePoint::Data> data) {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    return PrepareResumeNow(state, std::move(data));
  });
}

absl::Status Runtime::PrepareResumeNow(TaskState* state, std::vector<ResumePoint::Data> data) {
  MU_ASSIGN_OR_RETURN(ResumePoint read,
                      ResumePointOf(state->manifest.position(), catalog_.version()));
  auto point = std::make_shared<ResumePoint>(std::move(read));
  point->data = std::move(data);
  for (auto& [id, function] : point->job.functions.unfinished) {
    const InstalledFunction* installed = catalog_.FindFunction(function.work.fingerprint);
    if (installed == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the checkpoint stopped in a call of a function that this program has not defined, or "
          "defines in another way "
          "(fingerprint ",
          function.work.fingerprint.value(), "); define the same functions before Restore()"));
    }
    function.work.name = installed->proto.name();
    std::vector<std::string> names;
    for (const auto& value : installed->proto.returns()) names.push_back(value.name());
    auto& value = state->unfinished[id] =
        std::make_shared<FunctionState>(std::move(names), function.work.steps, function.next_step);
    // Whether or not rounds are on by now: NothingMore looks when somebody waits.
    value->OnWait([this] { NothingMore(); });
  }
  state->point = std::move(point);
  return absl::OkStatus();
}

}  // namespace mu
