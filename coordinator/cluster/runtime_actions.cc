// What the core wants to be done.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

bool Runtime::Execute(Actions& actions) {
  bool more = false;
  for (Action& action : actions) {
    std::visit([this](auto& a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_) { Do(a); }, action);
    more |= !std::holds_alternative<action::Deliver>(action) &&
            !std::holds_alternative<action::AnswerHeartbeat>(action);
  }
  return more;
}

void Runtime::Do(action::MemberJoined& a) {
  MU_LOG(INFO, "{} registered", Describe(a.member));
  if (a.member.role != pb::ROLE_WORKER) return;
  auto link = std::make_shared<WorkerLink>();
  link->id = WorkerId(a.member.index);
  link->member = a.member;
  link->channel = options_.transport->Connect(a.member.address, pb::ROLE_WORKER);
  links_[link->id] = link;
}

void Runtime::Do(action::MemberLost& a) {
  if (!core_.closed()) {
    MU_LOG(WARN, "{} {}: {}", Describe(a.member), a.kind, a.message);
    counters_.Lost(a.member.role, a.kind)->Add();
  }
  if (a.silent && on_silent_ != nullptr)
    silences_.Add([on_silent = on_silent_, member = a.member] { on_silent(member); });
  if (a.member.role != pb::ROLE_WORKER) return;
  const auto it = links_.find(WorkerId(a.member.index));
  if (it == links_.end() || it->second->member.incarnation != a.member.incarnation) return;
  const std::shared_ptr<WorkerLink> link = it->second;
  links_.erase(it);
  Drop(link);
}

void Runtime::Do(action::Scheduled& a) {
  scheduling_->id = a.function;
  states_[a.function] = scheduling_->state;
  spans_.Scheduled(a.function, scheduling_->name);
  if (first_scheduled_ == absl::InfiniteFuture()) first_scheduled_ = SteadyNow();
}

void Runtime::Do(action::Deliver& a) {
  if (!states_.contains(a.function)) return;
  Deliver(a.function, arrived_->reply.steps(static_cast<int>(a.result)),
          std::move(arrived_->values[a.result]));
}

void Runtime::Do(action::KeepResult& a) {
  if (!states_.contains(a.function)) return;
  kept_results_[a.function] = {arrived_->reply.steps(static_cast<int>(a.result)),
                               std::move(arrived_->values[a.result])};
}

void Runtime::Do(action::DeliverKept& a) {
  auto kept = kept_results_.extract(a.function);
  if (kept.empty() || !states_.contains(a.function)) return;
  Deliver(a.function, kept.mapped().first, std::move(kept.mapped().second));
}

void Runtime::Deliver(FunctionId function, const pb::StepResult& step,
                      FunctionResult::Step values) {
  states_.at(function)->AddStep(step, std::move(values));
  stats_.steps += 1;
  stats_.samples += step.samples();
  stats_.bad_records += step.bad_records();
  if (stats_.first_bad_record.empty()) stats_.first_bad_record = step.bad_record_message();
}

void Runtime::Do(action::Finish& a) {
  spans_.Finished(a.function, a.status);
  kept_results_.erase(a.function);
  if (!a.status.ok() && !absl::IsCancelled(a.status))
    counters_.Failed(KindOf(a.status) == pb::ERROR_USER ? "user" : "machine")->Add();
  const auto it = states_.find(a.function);
  if (it == states_.end()) return;
  if (a.status.ok()) ++stats_.functions;
  it->second->Finish(std::move(a.status));
  states_.erase(it);
}

void Runtime::Do(action::CancelOnWorkers& a) {
  pb::CancelRunsRequest request;
  *request.mutable_context() = ContextNow();
  // A worker that is in a newer generation by then has nothing left of what is meant: what has
  // these ids there are repeats.
  request.mutable_context()->set_generation(a.generation.value());
  request.set_below(a.below.value());
  for (const WorkerId id : a.workers) {
    const auto it = links_.find(id);
    if (it == links_.end()) continue;
    WorkerLink& link = *it->second;
    auto job = expected_.Expect();
    link.cancel_call = CallAsync<pb::CancelRunsReply>(
        *link.channel, "/muster.Worker/CancelRuns", request, {.timeout = options_.timeout},
        [this, id, incarnation = link.member.incarnation,
         job = std::move(job)](const absl::StatusOr<pb::CancelRunsReply>& reply) {
          job->Post([this, id, incarnation, status = reply.status()] {
            loop_.AssertHeld();
            OnCancelled(id, incarnation, status);
          });
        });
  }
}

void Runtime::OnCancelled(WorkerId worker, Incarnation incarnation, const absl::Status& status) {
  const auto it = links_.find(worker);
  if (it != links_.end() && it->second->member.incarnation == incarnation)
    it->second->cancel_call = nullptr;
  Step(event::WorkerCancelled{worker, incarnation, CallError::Of(status)});
}

void Runtime::Do(action::Cancelled& a) {
  if (!a.error.ok()) errors_.Failed(GroupId(), std::move(a.error));
}

void Runtime::Do(action::Note& a) {
  using Level = action::Note::Level;
  if (a.level == Level::kInfo) MU_LOG(INFO, "{}", a.text);
  if (a.level == Level::kWarning) MU_LOG(WARN, "{}", a.text);
  if (a.level == Level::kError) MU_LOG(ERROR, "{}", a.text);
}

}  // namespace mu
