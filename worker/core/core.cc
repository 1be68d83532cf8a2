#include "worker/core/core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/client/too_late.h"
#include "worker/core/protections.h"
#include "worker/core/refusal.h"

namespace mu {
namespace {

using worker_action::EndRun;
using worker_action::ForgetInstalled;
using worker_action::InterruptCall;
using worker_action::RunStep;
using worker_action::SendResults;

uint32_t FirstStep(uint32_t asked) {
  if (MU_WORKER_BROKEN(resumed_early) && asked > 0) return asked - 1;
  if (MU_WORKER_BROKEN(resumed_late) && asked > 0) return asked + 1;
  return asked;
}

}  // namespace

WorkerCore::WorkerCore(const Options& options)
    : options_(options), gate_(options.registers), results_(options.result_interval) {}

absl::Status WorkerCore::Registered(const pb::RequestContext& context, WorkerActions* actions) {
  return Admitted(gate_.Register(context), context, actions);
}

absl::Duration WorkerCore::HoldBack(absl::Time now, absl::Time arrived) const {
  if (!gate_.undecided()) return absl::ZeroDuration();
  return std::max(arrived + options_.registration_patience - now, absl::ZeroDuration());
}

absl::Status WorkerCore::Admit(const pb::RequestContext& context, WorkerActions* actions) {
  return Admitted(gate_.Admit(context), context, actions);
}

absl::Status WorkerCore::Admitted(const absl::StatusOr<RequestGate::Verdict>& verdict,
                                  const pb::RequestContext& context, WorkerActions* actions) {
  MU_RETURN_IF_ERROR(verdict.status());
  if (*verdict == RequestGate::Verdict::kNewEpoch) {
    queue_.Reset(TakenOver(context.epoch()), actions);
    // A push as well: the servers that it goes to may be gone with the former coordinator, and the
    // runs of this one would wait for it. Its servers restore whatever that push still changes.
    if (call_.has_value()) actions->push_back(InterruptCall{});
    Forget(actions);
  }
  return absl::OkStatus();
}

void WorkerCore::Forget(WorkerActions* actions) {
  functions_.clear();
  datasets_.clear();
  route_.Clear();
  ++installs_;
  actions->push_back(ForgetInstalled{});
}

absl::Status WorkerCore::Configure(const pb::RequestContext& context, WorkerRouting routing,
                                   const absl::Status& sane, WorkerActions* actions) {
  MU_RETURN_IF_ERROR(Admit(context, actions));
  if (!route_.IsNews(routing)) return absl::OkStatus();
  MU_RETURN_IF_ERROR(sane);
  if (routing.generation > route_.generation()) queue_.ForgetCancelled();
  const uint64_t servers_before = route_.servers_version();
  route_.Take(std::move(routing));
  actions->push_back(worker_action::UseRouting{});
  // Calls to the old places are given up; the step makes them again at the new ones.
  if (call_.has_value() && route_.servers_version() != servers_before)
    actions->push_back(InterruptCall{});
  return absl::OkStatus();
}

absl::StatusOr<WorkerCore::InstallToken> WorkerCore::BeginInstall(const pb::RequestContext& context,
                                                                  WorkerActions* actions) {
  MU_RETURN_IF_ERROR(Admit(context, actions));
  return installs_;
}

absl::Status WorkerCore::CheckToken(InstallToken token, const char* doing) const {
  if (token == installs_ || MU_WORKER_BROKEN(late_install)) return absl::OkStatus();
  return WorkerRefusal(pb::ERROR_STALE,
                       absl::StrCat("a newer coordinator took over while ", doing));
}

absl::Status WorkerCore::FunctionInstalled(InstallToken token, Fingerprint function) {
  MU_RETURN_IF_ERROR(CheckToken(token, "the function was compiled"));
  functions_.insert(function);
  return absl::OkStatus();
}

absl::Status WorkerCore::DatasetInstalled(InstallToken token, uint64_t dataset) {
  MU_RETURN_IF_ERROR(CheckToken(token, "the dataset was installed"));
  datasets_.insert(dataset);
  return absl::OkStatus();
}

absl::Status WorkerCore::Look(const pb::RequestContext& context, uint64_t dataset) const {
  MU_RETURN_IF_ERROR(gate_.AdmitLook(context));
  if (datasets_.contains(dataset)) return absl::OkStatus();
  return WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                       absl::StrCat("dataset ", dataset,
                                    " is not installed on this worker: call InstallDataset first"));
}

absl::StatusOr<bool> WorkerCore::OpenFeed(const pb::RequestContext& context,
                                          const FeedGate::Connection& connection,
                                          WorkerActions* actions) {
  MU_RETURN_IF_ERROR(Admit(context, actions));
  return feeds_.Open(context.epoch(), connection);
}

absl::Status WorkerCore::Check(const RunRequest& request) const {
  MU_RETURN_IF_ERROR(route_.CheckGeneration(request.run.generation));
  if (!functions_.contains(request.function)) {
    return WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                         absl::StrFormat("function %016x is not installed on this worker: call "
                                         "InstallFunction first",
                                         request.function.value()));
  }
  MU_RETURN_IF_ERROR(request.inputs);
  if (request.dataset == 0 || datasets_.contains(request.dataset)) return absl::OkStatus();
  return WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                       absl::StrCat("dataset ", request.dataset,
                                    " is not installed on this worker: call InstallDataset first"));
}

absl::Status WorkerCore::Run(absl::Time now, const pb::RequestContext& context, RunRequest request,
                             WorkerActions* actions) {
  MU_RETURN_IF_ERROR(Admit(context, actions));
  MU_RETURN_IF_ERROR(Check(request));
  request.run.next_step = FirstStep(request.run.next_step);
  MU_RETURN_IF_ERROR(queue_.Add(std::move(request.run), actions));
  StartNext(now, actions);
  return absl::OkStatus();
}

absl::Status WorkerCore::CancelRuns(const pb::RequestContext& context, FunctionId below,
                                    CallId call, WorkerActions* actions) {
  MU_RETURN_IF_ERROR(Admit(context, actions));
  if (Generation(context.generation()) < route_.generation()) {
    actions->push_back(worker_action::Cancelled{call});
    return absl::OkStatus();
  }
  queue_.CancelBelow(below, call, actions);
  InterruptIfAborted(actions);
  return absl::OkStatus();
}

void WorkerCore::CallerGone(CallId run, WorkerActions* actions) {
  queue_.CallerGone(run);
  InterruptIfAborted(actions);
}

void WorkerCore::Drain(absl::Time now, absl::Duration patience, WorkerActions* actions) {
  gate_.Close();
  drain_until_ = now + patience;
  queue_.Drain(actions);
  Tick(now, actions);
}

void WorkerCore::Shutdown(WorkerActions* actions) {
  gate_.Close();
  queue_.Shutdown(actions);
  InterruptIfAborted(actions);
}

void WorkerCore::Tick(absl::Time now, WorkerActions* actions) {
  if (now >= drain_until_ && !idle()) {
    drain_until_ = absl::InfiniteFuture();
    patience_over_ = true;
    queue_.running()->Stop(absl::OkStatus());
    InterruptIfAborted(actions);
  }
}

void WorkerCore::LeaveStep(WorkerActions* actions) {
  if (!may_leave_step()) return;
  left_step_ = true;
  SayEnd(queue_.running()->why, actions);
}

absl::Time WorkerCore::alarm() const { return idle() ? absl::InfiniteFuture() : drain_until_; }

void WorkerCore::StartNext(absl::Time now, WorkerActions* actions) {
  if (queue_.Start() == nullptr) return;
  results_.Clear();
  Continue(now, actions);
}

void WorkerCore::Continue(absl::Time now, WorkerActions* actions) {
  const WorkerRun& run = *queue_.running();
  if (run.next_step >= run.steps) return EndRunning(now, absl::OkStatus(), actions);
  if (run.stopped) return EndRunning(now, run.why, actions);
  // Of the run, not of this moment: a run that its coordinator gave up while it could not reach
  // this worker must not push into the state that was restored since.
  step_generation_ = run.generation != Generation() ? run.generation : route_.generation();
  pushed_ = false;
  actions->push_back(RunStep{run.call, run.next_step});
}

void WorkerCore::StepEnded(absl::Time now, const absl::Status& status, WorkerActions* actions) {
  WorkerRun& run = *queue_.running();
  if (left_step_) return EndRunning(now, absl::OkStatus(), actions);
  // The servers have newer values than the step read: again, with those.
  if (IsTooLate(status)) return Continue(now, actions);
  if (!status.ok()) {
    // What was aborted failed because of the stop.
    return EndRunning(now, run.aborted ? run.why : status, actions);
  }
  if (results_.Add(now)) actions->push_back(SendResults{run.call});
  ++run.next_step;
  Continue(now, actions);
}

void WorkerCore::EndRunning(absl::Time now, const absl::Status& status, WorkerActions* actions) {
  if (!std::exchange(left_step_, false)) SayEnd(status, actions);
  queue_.Ended(actions);
  StartNext(now, actions);
}

void WorkerCore::SayEnd(const absl::Status& status, WorkerActions* actions) {
  const WorkerRun& run = *queue_.running();
  const bool handed_back = run.handed_back && status.ok();
  if (results_.holds() && !(handed_back && MU_WORKER_BROKEN(results_kept)))
    actions->push_back(SendResults{run.call});
  actions->push_back(EndRun{run.call, status, handed_back});
}

absl::StatusOr<WorkerCore::CallContext> WorkerCore::BeginCall(bool push) {
  const WorkerRun& run = *queue_.running();
  if (run.aborted) {
    // One that is handed back has no error, but neither has this step been done.
    return run.why.ok() ? absl::CancelledError("the run is handed back") : run.why;
  }
  if (!route_.configured()) {
    return WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                         "this worker does not know the parameter servers: call Configure first");
  }
  call_ = {push, route_.servers_version()};
  return CallContext{MU_WORKER_BROKEN(generation_of_now) ? route_.generation() : step_generation_,
                     FunctionId(gate_.low_water())};
}

bool WorkerCore::RepeatCall(const absl::Status& status) {
  const Call call = *std::exchange(call_, std::nullopt);
  const bool again = absl::IsCancelled(status) && call.servers_version != route_.servers_version();
  pushed_ = call.push && !again;
  return again;
}

void WorkerCore::InterruptIfAborted(WorkerActions* actions) {
  if (call_.has_value() && !call_->push && queue_.running()->aborted)
    actions->push_back(InterruptCall{});
}

}  // namespace mu
