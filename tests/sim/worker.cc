// Requests and actions; the steps are in worker_step.cc.
#include "tests/sim/worker.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr Time kDrainPatience = 15 * kMillisecond;
constexpr Time kPredecessorPatience = 20 * kMillisecond;
// There are so many functions; calls of them alternate.
constexpr uint64_t kFunctions = 2;

Fingerprint FunctionOf(const Message& run) { return Fingerprint(1 + run.function % kFunctions); }

WorkerCore::Options CoreOptions() {
  return {.registers = true,
          .registration_patience = absl::Nanoseconds(100 * kMillisecond),
          .predecessor_patience = absl::Nanoseconds(kPredecessorPatience),
          .result_interval = absl::Nanoseconds(8 * kMillisecond)};
}

Code CodeOf(const absl::Status& status) {
  if (status.ok()) return Code::kOk;
  switch (KindOf(status)) {
    case pb::ERROR_STALE:
      return Code::kStale;
    case pb::ERROR_NOT_INSTALLED:
      return Code::kNotInstalled;
    default:
      break;
  }
  const auto detail = DetailOf(status);
  return detail.has_value() && detail->role() == pb::ROLE_PSSERVER ? Code::kServerGone
                                                                   : Code::kMachine;
}

uint32_t EpochIn(const absl::Status& status) {
  const auto detail = DetailOf(status);
  return detail.has_value() ? static_cast<uint32_t>(detail->epoch()) : 0;
}

}  // namespace

Worker::Worker(Cluster* cluster, Slot slot, uint64_t incarnation, uint8_t index)
    : cluster_(cluster),
      slot_(slot),
      index_(index),
      daemon_(cluster, slot, incarnation, index),
      core_(CoreOptions()) {}

absl::Time Worker::Now() const { return absl::UnixEpoch() + absl::Nanoseconds(cluster_->now()); }

const pb::RequestContext& Worker::Context(const Message& message) {
  context_.set_job(kJob);
  context_.set_epoch(message.epoch);
  context_.set_generation(message.generation);
  context_.set_low_water(message.low_water);
  return context_;
}

void Worker::Handle(const Message& message) {
  Time sent = 0;
  switch (message.kind) {
    case Kind::kTick:
      daemon_.Tick();
      break;
    case Kind::kReply:
      if (message.request == Kind::kPush || message.request == Kind::kPull) {
        OnServerReply(message);
      } else if (daemon_.OnReply(message, &sent) && message.request == Kind::kRegister) {
        Register(message);
      }
      break;
    case Kind::kInstall:
    case Kind::kCancelBelow:
      HoldBack(message);
      break;
    case Kind::kInstalled:
      Installed(message.call);
      break;
    case Kind::kRun:
      AddRun(message);
      break;
    case Kind::kCancelRun:
      CancelRun(message);
      break;
    case Kind::kComputed:
      if (message.call == step_call_) CallServers(/*push=*/true);
      break;
    case Kind::kRetry:
    case Kind::kInterrupted:
      OnServerTimer(message);
      break;
    default:  // an alarm
      break;
  }
  AfterAll();
}

void Worker::Register(const Message& reply) {
  WorkerActions actions;
  const absl::Status status = core_.Registered(Context(reply), &actions);
  Do(std::move(actions));
  if (!status.ok()) return cluster_->Exit(slot_);
}

void Worker::HoldBack(const Message& message) {
  if (core_.HoldBack(Now(), Now()) > absl::ZeroDuration()) {
    cluster_->seen().Saw(WorkerMoment::kRegistrationAwaited);
    waiting_.push_back({cluster_->now(), message});
    return;
  }
  message.kind == Kind::kInstall ? Install(message) : CancelBelow(message);
}

void Worker::AfterAll() {
  const auto arrived = [](Time at) { return absl::UnixEpoch() + absl::Nanoseconds(at); };
  while (!waiting_.empty() &&
         core_.HoldBack(Now(), arrived(waiting_.front().first)) == absl::ZeroDuration()) {
    const Message message = waiting_.front().second;
    waiting_.erase(waiting_.begin());
    message.kind == Kind::kInstall ? Install(message) : CancelBelow(message);
  }
  while (core_.alarm() <= Now()) {
    const bool waited = core_.idle() && core_.alarm() > absl::InfinitePast();
    if (waited) cluster_->seen().Saw(WorkerMoment::kPredecessorGivenUp);
    WorkerActions actions;
    core_.Tick(Now(), &actions);
    Do(std::move(actions));
  }
  if (const absl::Time alarm = core_.alarm(); alarm < absl::InfiniteFuture() && alarm != alarm_) {
    alarm_ = alarm;
    cluster_->SetTimer(slot_, absl::ToInt64Nanoseconds(alarm - Now()), {.kind = Kind::kAlarm});
  }
  if (core_.draining() && core_.idle() && !left_) {
    left_ = true;
    daemon_.Leave();
  }
}

void Worker::Refuse(const Message& request, const absl::Status& status) {
  cluster_->Reply(request, {.code = CodeOf(status), .epoch = EpochIn(status)});
}

// Its routing, and functions, which take a while to compile.
void Worker::Install(const Message& message) {
  const Routing& routing = cluster_->RoutingAt(message.routing_place);
  WorkerRouting summary = {.version = message.routing,
                           .generation = Generation(routing.generation)};
  for (uint8_t s = 0; s < routing.servers; ++s)
    summary.servers.push_back({s, absl::StrCat(routing.slot[s]), routing.incarnation[s]});
  WorkerActions actions;
  offered_ = &routing;
  absl::Status status =
      core_.Configure(Context(message), std::move(summary), absl::OkStatus(), &actions);
  Do(std::move(actions));
  if (!status.ok()) return Refuse(message, status);
  const auto token = core_.BeginInstall(context_, &actions);
  if (!token.ok()) return Refuse(message, token.status());
  bool all = true;
  for (uint64_t f = 1; f <= kFunctions; ++f) all &= core_.has_function(Fingerprint(f));
  if (all) return cluster_->Reply(message, {.routing = message.routing});
  const uint32_t call = cluster_->NextCall();
  installing_.push_back({message, *token, call});
  cluster_->SetTimer(slot_, cluster_->Between(0, 6 * kMillisecond),
                     {.kind = Kind::kInstalled, .call = call});
}

void Worker::Installed(uint32_t call) {
  const auto it = std::find_if(installing_.begin(), installing_.end(),
                               [&](const Installing& i) { return i.call == call; });
  const Installing installing = *it;
  installing_.erase(it);
  for (uint64_t f = 1; f <= kFunctions; ++f) {
    if (absl::Status status = core_.FunctionInstalled(installing.token, Fingerprint(f));
        !status.ok()) {
      cluster_->seen().Saw(WorkerMoment::kCompiledInVain);
      return Refuse(installing.request, status);
    }
    compiled_in_[Fingerprint(f)] = installing.request.epoch;
  }
  cluster_->Reply(installing.request, {.routing = installing.request.routing});
}

void Worker::SendToCaller(const Message& request, Message message) {
  if (request.copy) return;  // the caller knows nothing of the second one
  message.from = slot_;
  message.to = request.from;
  message.to_incarnation = request.from_incarnation;
  message.function = request.function;
  message.run = request.run;
  cluster_->Send(message);
}

void Worker::AddRun(const Message& message) {
  last_call_ = last_call_.Next();
  WorkerCore::RunRequest request;
  request.run = {.call = last_call_,
                 .function = FunctionId(message.function),
                 .generation = Generation(message.generation),
                 .order = message.run,
                 .after = message.after,
                 .next_step = message.first_step,
                 .steps = message.steps};
  request.function = FunctionOf(message);
  open_.push_back({last_call_, message, message.first_step, cluster_->now()});
  arrived_.insert({message.from_incarnation, message.run});
  WorkerActions actions;
  const absl::Status status = core_.Run(Now(), Context(message), std::move(request), &actions);
  if (!status.ok()) {
    open_.pop_back();
    SendToCaller(message,
                 {.kind = Kind::kRunEnded, .code = CodeOf(status), .epoch = EpochIn(status)});
  }
  Do(std::move(actions));
  if (core_.idle() && core_.active() > 0) cluster_->seen().Saw(WorkerMoment::kPredecessorAwaited);
}

void Worker::CancelRun(const Message& message) {
  std::vector<CallId> gone;
  for (const Open& open : open_) {
    if (open.request.kind == Kind::kRun && open.request.run == message.run &&
        open.request.from_incarnation == message.from_incarnation)
      gone.push_back(open.id);
  }
  WorkerActions actions;
  for (const CallId id : gone) core_.CallerGone(id, &actions);
  Do(std::move(actions));
}

void Worker::CancelBelow(const Message& message) {
  last_call_ = last_call_.Next();
  const CallId call = last_call_;
  open_.push_back({call, message});
  WorkerActions actions;
  const absl::Status status =
      core_.CancelRuns(Context(message), FunctionId(message.function), call, &actions);
  if (!status.ok()) Refuse(Take(call), status);
  Do(std::move(actions));
}

void Worker::Drain() {
  WorkerActions actions;
  core_.Drain(Now(), absl::Nanoseconds(kDrainPatience), &actions);
  Do(std::move(actions));
  AfterAll();
}

void Worker::Forget() {
  WorkerActions actions;
  if (cluster_->Between(0, 1) == 0) {
    cluster_->Trace(slot_, "forgets what was installed");
    core_.Forget(&actions);
  } else {
    cluster_->Trace(slot_, "forgets a function");
    core_.ForgetFunction(Fingerprint(1));
  }
  Do(std::move(actions));
}

Worker::Open& Worker::Find(CallId id) {
  return *std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.id == id; });
}

Message Worker::Take(CallId id) {
  const auto it =
      std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.id == id; });
  const Message request = it->request;
  open_.erase(it);
  return request;
}

void Worker::Do(WorkerActions actions) {
  for (const WorkerAction& action : actions) {
    cluster_->seen().Saw(action);
    std::visit([this](const auto& a) { Do(a); }, action);
  }
}

void Worker::Do(const worker_action::SendResults& a) {
  const Message request = Find(a.run).request;
  if (held_.size() > 1) cluster_->seen().Saw(WorkerMoment::kResultsGrouped);
  for (const Message& result : held_) SendToCaller(request, result);
  held_.clear();
}

void Worker::Do(const worker_action::EndRun& a) {
  const Message request = Take(a.run);
  if (a.run == running_) {
    if (!held_.empty()) {
      cluster_->truth().Fail(absl::StrCat("run ", request.run, " ends without the results of ",
                                          held_.size(), " steps that were applied"));
    }
    held_.clear();
    running_ = CallId();
  }
  SendToCaller(request, {.kind = Kind::kRunEnded,
                         .code = a.handed_back ? Code::kHandedBack : CodeOf(a.status),
                         .epoch = EpochIn(a.status)});
}

void Worker::Do(const worker_action::Cancelled& a) {
  CheckCancelled(Find(a.call));
  cluster_->Reply(Take(a.call), {});
}

void Worker::CheckBegin(const Open& run) {
  const Message& request = run.request;
  if (cluster_->scenario().broken.fencing) return;
  if (compiled_in_[FunctionOf(request)] != request.epoch) {
    cluster_->truth().Fail(absl::StrCat("run ", request.run, " of epoch ", request.epoch,
                                        " executes a function of epoch ",
                                        compiled_in_[FunctionOf(request)]));
  }
  if (request.after != 0 && cluster_->now() < run.arrived + kPredecessorPatience &&
      !arrived_.contains({request.from_incarnation, request.after})) {
    cluster_->truth().Fail(absl::StrCat("run ", request.run, " begins before run ", request.after,
                                        ", which was sent first"));
  }
}

void Worker::CheckCancelled(const Open& cancel) {
  if (running_ == CallId() || cancel.request.epoch != Find(running_).request.epoch) return;
  const Open& run = Find(running_);
  if (run.id < cancel.id && run.request.function < cancel.request.function &&
      Generation(cancel.request.generation) >= core_.generation()) {
    cluster_->truth().Fail(absl::StrCat("functions below ", cancel.request.function,
                                        " are reported as cancelled, but function ",
                                        run.request.function, " still runs"));
  }
}

}  // namespace mu::sim
