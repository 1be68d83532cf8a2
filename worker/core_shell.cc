#include "worker/core_shell.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/steady_now.h"
#include "common/graph/limits.h"
#include "common/obs/log.h"
#include "worker/held_results.h"
#include "worker/run_inputs.h"

namespace mu {
namespace {

Buffer Reply(const google::protobuf::MessageLite& reply) {
  return Buffer(reply.SerializeAsString());
}

}  // namespace

CoreShell::CoreShell(const WorkerCore::Options& options, Transport* transport, RetryPolicy servers,
                     DatasetStore* datasets)
    : transport_(transport),
      policy_(servers),
      datasets_(datasets),
      core_(options),
      client_(NewClient()) {}

std::shared_ptr<PsClient> CoreShell::NewClient() const {
  return std::make_shared<PsClient>(
      [transport = transport_](const std::string& address) {
        return transport->Connect(address, pb::ROLE_PSSERVER);
      },
      policy_);
}

template <typename Decision>
auto CoreShell::Decide(const Decision& decide) {
  Outbox outbox;
  auto answer = [&] {
    MutexLock lock(&mutex_);
    WorkerActions actions;
    auto decided = decide(core_, &actions);
    outbox = Apply(actions);
    return decided;
  }();
  changed_.SignalAll();
  Send(std::move(outbox));
  return answer;
}

CoreShell::Outbox CoreShell::Apply(const WorkerActions& actions) {
  Outbox outbox;
  for (const WorkerAction& action : actions) {
    if (const auto* step = std::get_if<worker_action::RunStep>(&action)) {
      next_ = *step;
    } else if (const auto* send = std::get_if<worker_action::SendResults>(&action)) {
      const std::shared_ptr<FunctionRun>& run = runs_.at(send->run);
      outbox.push_back(
          {.kind = Outgoing::Kind::kResults, .run = run, .held = std::exchange(run->held, {})});
      ++sending_;
    } else if (const auto* end = std::get_if<worker_action::EndRun>(&action)) {
      const std::shared_ptr<FunctionRun> run = runs_.extract(end->run).mapped();
      outbox.push_back({.kind = Outgoing::Kind::kEnd,
                        .run = run,
                        .status = end->status,
                        .handed_back = end->handed_back,
                        .held = std::exchange(run->held, {})});
      ++sending_;
    } else if (const auto* cancelled = std::get_if<worker_action::Cancelled>(&action)) {
      outbox.push_back({.kind = Outgoing::Kind::kCancelled,
                        .call = std::move(cancels_.extract(cancelled->call).mapped())});
    } else if (std::holds_alternative<worker_action::InterruptCall>(action)) {
      if (session_ != nullptr) session_->Cancel();
    } else if (std::holds_alternative<worker_action::UseRouting>(action)) {
      routing_ = offered_;
      client_->SetRouting(routing_);
    } else {
      MU_LOG(INFO, "epoch {} of the coordinator takes over", core_.epoch());
      functions_.clear();
      datasets_->Clear();
      routing_ = nullptr;
      client_ = NewClient();
    }
  }
  return outbox;
}

void CoreShell::Send(Outbox outbox) {
  int sent = 0;
  for (size_t i = 0; i < outbox.size(); ++i) {
    Outgoing& out = outbox[i];
    switch (out.kind) {
      case Outgoing::Kind::kResults:
        ++sent;
        // The end of the run takes along what comes right before it.
        if (i + 1 < outbox.size() && outbox[i + 1].kind == Outgoing::Kind::kEnd &&
            outbox[i + 1].run == out.run) {
          outbox[i + 1].held = std::move(out.held);
          break;
        }
        out.run->call->Send(Reply(SendAllButLast(*out.run->call, std::move(out.held))));
        break;
      case Outgoing::Kind::kEnd: {
        ++sent;
        pb::RunReply last = SendAllButLast(*out.run->call, std::move(out.held));
        if (out.handed_back) last.set_handed_back(true);
        out.run->call->Finish(out.status, Reply(last));
        break;
      }
      case Outgoing::Kind::kCancelled:
        out.call->Finish(absl::OkStatus(), Reply(pb::CancelRunsReply()));
        break;
    }
  }
  if (sent == 0) return;
  MutexLock lock(&mutex_);
  sending_ -= sent;
  changed_.SignalAll();
}

void CoreShell::AwaitRegistration() {
  const absl::Time arrived = SteadyNow();
  MutexLock lock(&mutex_);
  while (true) {
    const absl::Duration wait = core_.HoldBack(SteadyNow(), arrived);
    if (wait <= absl::ZeroDuration()) return;
    changed_.WaitFor(&mutex_, wait);
  }
}

absl::Status CoreShell::Registered(const pb::RequestContext& context) {
  return Decide(
      [&](WorkerCore& core, WorkerActions* actions) { return core.Registered(context, actions); });
}

absl::Status CoreShell::Configure(const pb::ConfigureWorkerRequest& request) {
  const auto routing = Routing::Create(request.routing());
  WorkerRouting summary = {.version = request.routing().version(),
                           .generation = Generation(request.routing().generation())};
  for (const auto& server : request.routing().servers())
    summary.servers.push_back({server.index(), server.address(), server.incarnation()});
  Outbox outbox;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    WorkerActions actions;
    status = core_.Configure(request.context(), std::move(summary), routing.status(), &actions);
    offered_ = routing.ok() ? *routing : nullptr;
    outbox = Apply(actions);
    offered_ = nullptr;
  }
  changed_.SignalAll();
  Send(std::move(outbox));
  return status;
}

absl::StatusOr<CoreShell::Installing> CoreShell::BeginInstall(const pb::RequestContext& context,
                                                              Fingerprint function) {
  Installing installing;
  absl::StatusOr<WorkerCore::InstallToken> token;
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    WorkerActions actions;
    token = core_.BeginInstall(context, &actions);
    outbox = Apply(actions);
    installing.installed = core_.has_function(function);
    installing.routing = routing_;
  }
  changed_.SignalAll();
  Send(std::move(outbox));
  MU_ASSIGN_OR_RETURN(installing.token, std::move(token));
  if (function != Fingerprint() && !installing.installed && functions() >= kMostFunctions) {
    return WithKind(
        absl::ResourceExhaustedError(absl::StrCat("this worker has ", kMostFunctions,
                                                  " functions already; define a function "
                                                  "once and schedule it many times")),
        pb::ERROR_USER, pb::ROLE_WORKER);
  }
  return installing;
}

absl::Status CoreShell::Installed(WorkerCore::InstallToken token, Fingerprint fingerprint,
                                  std::shared_ptr<WorkerFunction> function) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(core_.FunctionInstalled(token, fingerprint));
  functions_.try_emplace(fingerprint, std::move(function));
  return absl::OkStatus();
}

absl::Status CoreShell::Installed(WorkerCore::InstallToken token,
                                  std::shared_ptr<DatasetReader> dataset) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(core_.DatasetInstalled(token, dataset->dataset().id()));
  datasets_->Put(std::move(dataset));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<DatasetReader>> CoreShell::Look(const pb::RequestContext& context,
                                                               uint64_t dataset) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(core_.Look(context, dataset));
  return datasets_->Find(dataset);
}

absl::StatusOr<bool> CoreShell::OpenFeed(const pb::FeedHello& hello) {
  return Decide([&](WorkerCore& core, WorkerActions* actions) {
    return core.OpenFeed(hello.context(), {hello.stream(), hello.connection()}, actions);
  });
}

WorkerCore::RunRequest CoreShell::Resolve(const pb::RunRequest& request, const RunLeases& leases,
                                          RunInputs* inputs) {
  WorkerCore::RunRequest resolved;
  resolved.run = {.function = FunctionId(request.function()),
                  .generation = Generation(request.context().generation()),
                  .next_step = request.first_step(),
                  .steps = request.steps()};
  resolved.function = Fingerprint(request.fingerprint());
  const auto function = functions_.find(resolved.function);
  if (function == functions_.end()) return resolved;
  inputs->function = function->second;
  resolved.dataset = inputs->function->graph.dataset();
  resolved.inputs = ParseInputs(inputs->function->graph, inputs->function->read_only, request,
                                leases.batches, &inputs->args);
  if (resolved.dataset != 0) inputs->dataset = datasets_->Find(resolved.dataset);
  return resolved;
}

std::shared_ptr<FunctionRun> CoreShell::StartRun(pb::RunRequest request, RunLeases leases,
                                                 std::shared_ptr<ServerCall> call) {
  std::shared_ptr<FunctionRun> run;
  Outbox outbox;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    RunInputs inputs;
    WorkerCore::RunRequest resolved = Resolve(request, leases, &inputs);
    last_call_ = resolved.run.call = last_call_.Next();
    run = std::make_shared<FunctionRun>(last_call_, std::move(request), std::move(leases), call,
                                        std::move(inputs));
    runs_[run->id] = run;
    WorkerActions actions;
    status = core_.Run(SteadyNow(), run->request.context(), std::move(resolved), &actions);
    outbox = Apply(actions);
    if (!status.ok()) runs_.erase(run->id);
  }
  changed_.SignalAll();
  Send(std::move(outbox));
  if (status.ok()) return run;
  call->Finish(status);
  return nullptr;
}

void CoreShell::CallerGone(CallId run) {
  Decide([&](WorkerCore& core, WorkerActions* actions) {
    core.CallerGone(run, actions);
    return true;
  });
}

void CoreShell::CancelRuns(const pb::CancelRunsRequest& request, std::shared_ptr<ServerCall> call) {
  Outbox outbox;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    const CallId id = last_call_ = last_call_.Next();
    cancels_[id] = call;
    WorkerActions actions;
    status = core_.CancelRuns(request.context(), FunctionId(request.below()), id, &actions);
    outbox = Apply(actions);
    if (!status.ok()) cancels_.erase(id);
  }
  changed_.SignalAll();
  Send(std::move(outbox));
  if (!status.ok()) call->Finish(status);
}

void CoreShell::Drain(absl::Duration patience, absl::Duration most) {
  const absl::Time until = SteadyNow() + most;
  Decide([&](WorkerCore& core, WorkerActions* actions) {
    core.Drain(SteadyNow(), patience, actions);
    return true;
  });
  while (true) {
    // The run's end takes the run from a thread that has not taken the step yet, and overtakes
    // results that a thread is about to send.
    const auto may_leave = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // mutex_ is held
      return core_.may_leave_step() && sending_ == 0 && !next_.has_value();
    };
    bool over = false;
    {
      MutexLock lock(&mutex_);
      if ((core_.idle() || core_.left_step()) && sending_ == 0) return;
      over = SteadyNow() >= until;
      if (!over && !may_leave() && WaitForAlarm(until)) continue;
    }
    Decide([&](WorkerCore& core, WorkerActions* actions) {
      core.Tick(SteadyNow(), actions);  // the patience may end with all of the time
      if (may_leave()) core.LeaveStep(actions);
      return true;
    });
    if (over) return;
  }
}

bool CoreShell::WaitForAlarm(absl::Time until) {
  const absl::Duration wait = std::min(core_.alarm(), until) - SteadyNow();
  if (wait <= absl::ZeroDuration()) return false;
  if (wait == absl::InfiniteDuration()) {
    changed_.Wait(&mutex_);
  } else {
    changed_.WaitFor(&mutex_, wait);
  }
  return true;
}

void CoreShell::Shutdown() {
  Decide([&](WorkerCore& core, WorkerActions* actions) {
    core.Shutdown(actions);
    return true;
  });
}

std::optional<CoreShell::Step> CoreShell::NextRun() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (next_.has_value()) {
        const worker_action::RunStep next = *std::exchange(next_, std::nullopt);
        // The one that drains may wait for it.
        if (core_.draining()) changed_.SignalAll();
        return Step{runs_.at(next.run), next.step};
      }
      if (core_.shut_down() && core_.active() == 0) return std::nullopt;
      if (WaitForAlarm()) continue;
    }
    Decide([&](WorkerCore& core, WorkerActions* actions) {
      core.Tick(SteadyNow(), actions);
      return true;
    });
  }
}

std::optional<uint32_t> CoreShell::StepEnded(FunctionRun* run, const absl::Status& status,
                                             pb::StepResult result) {
  Outbox outbox;
  std::optional<uint32_t> step;
  {
    MutexLock lock(&mutex_);
    if (status.ok()) *run->held.add_steps() = std::move(result);
    WorkerActions actions;
    core_.StepEnded(SteadyNow(), status, &actions);
    outbox = Apply(actions);
    if (next_.has_value() && next_->run == run->id) {
      step = next_->step;
      next_.reset();
    }
  }
  Send(std::move(outbox));
  return step;
}

absl::Status CoreShell::BeginCall(bool push, PsSession* session, PsSessionOptions options,
                                  uint32_t step) {
  MutexLock lock(&mutex_);
  MU_ASSIGN_OR_RETURN(const WorkerCore::CallContext context, core_.BeginCall(push));
  options.context.set_generation(context.generation.value());
  options.context.set_low_water(context.low_water.value());
  // It forgets former interruptions: a new one comes when the lock is released.
  session->BeginFunction(std::move(options));
  session->BeginStep(step);
  session_ = session;
  return absl::OkStatus();
}

bool CoreShell::RepeatCall(const absl::Status& status) {
  MutexLock lock(&mutex_);
  session_ = nullptr;
  // The one that drains may wait for it.
  if (core_.draining()) changed_.SignalAll();
  return core_.RepeatCall(status);
}

size_t CoreShell::runs() const {
  MutexLock lock(&mutex_);
  return runs_.size();
}

size_t CoreShell::functions() const {
  MutexLock lock(&mutex_);
  return functions_.size();
}

std::shared_ptr<PsClient> CoreShell::client() const {
  MutexLock lock(&mutex_);
  return client_;
}

}  // namespace mu
