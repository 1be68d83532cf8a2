// Runs of functions on workers: the calls, their results and ends.
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

StepOutcome OutcomeOf(const pb::StepResult& step) {
  StepOutcome outcome = {
      .step = step.step(), .samples = step.samples(), .repeated = step.repeated()};
  outcome.updates.assign(step.updates().begin(), step.updates().end());
  outcome.inherited.assign(step.inherited().begin(), step.inherited().end());
  if (step.has_late()) outcome.late = step.late();
  outcome.refused = step.refused();
  return outcome;
}

}  // namespace

void Runtime::Do(action::Start& a) {
  const StartRun& start = a.start;
  WorkerLink& link = *links_.at(start.worker);
  const FunctionQueue::Function& function = *core_.queue().Find(start.function);
  pb::RunRequest request;
  *request.mutable_context() = ContextNow();
  request.set_function(start.function.value());
  request.set_fingerprint(function.work.fingerprint.value());
  request.set_first_step(start.first_step);
  request.set_steps(start.steps);
  request.set_run(start.run.value());
  request.set_after(start.after.value());
  request.set_step_offset(function.work.step_offset);
  // A repeat of a finished function has nobody who waits for it.
  if (const auto state = states_.find(start.function); state != states_.end()) {
    state->second->SetBatches(function.batches);
  }
  if (function.work.args != nullptr) {
    for (const auto& arg : *function.work.args) *request.add_args() = arg;
  }
  ++stats_.runs;
  ++callbacks_;
  spans_.Started(start, function.work.name);
  link.runs[start.run] = link.channel->ServerStream(
      "/muster.Worker/Run",
      Buffer(run_requests_.Serialize(request, function.batches,
                                     core_.UpcomingLease(function.work.dataset, start.worker))),
      {.timeout = absl::InfiniteDuration()},
      [this, start](Buffer message) { OnRunReply(start, message); },
      [this, start](absl::Status status) { OnRunEnded(start, status); });
}

void Runtime::OnRunReply(const StartRun& start, const Buffer& message) {
  auto arrived = std::make_shared<Arrived>();
  pb::RunReply& reply = arrived->reply;
  event::Results results = {.start = start};
  std::string unreadable;
  if (!reply.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    unreadable = "bytes that are no RunReply";
  }
  results.handed_back = reply.handed_back();
  for (const pb::StepResult& step : reply.steps()) {
    if (!unreadable.empty()) break;
    results.steps.push_back(OutcomeOf(step));
    auto parsed = FunctionState::Parse(step);
    if (parsed.ok()) {
      arrived->values.push_back(*std::move(parsed));
    } else {
      unreadable =
          absl::StrCat("values that are none (", std::string(parsed.status().message()), ")");
    }
  }
  if (!unreadable.empty()) return PostStep(event::Unreadable{start, unreadable});
  loop_.Post([this, arrived, results = std::move(results)] {
    loop_.AssertHeld();
    arrived_ = arrived.get();
    Step(results);
    arrived_ = nullptr;
  });
}

void Runtime::OnRunEnded(const StartRun& start, const absl::Status& status) {
  loop_.Post([this, start, status] {
    loop_.AssertHeld();
    --callbacks_;
    spans_.Ended(start, status);
    if (const auto it = links_.find(start.worker); it != links_.end())
      it->second->runs.erase(start.run);
    Step(event::RunEnded{start, CallError::Of(status)});
  });
}

}  // namespace mu
