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

uint32_t EpochIn(const absl::Status& status) {
  const auto detail = DetailOf(status);
  return detail.has_value() ? static_cast<uint32_t>(detail->epoch()) : 0;
}

}  // namespace

Worker::Worker(Cluster* cluster, Slot slot, uint64_t incarnation)
    : Daemon(cluster, slot, incarnation), core_(CoreOptions()) {}

void Worker::HandleRequest(const Message& message) {
  switch (message.kind) {
    case Kind::kReply:
      return OnServerReply(message);
    case Kind::kInstall:
    case Kind::kCancelBelow:
      return HoldBack(message);
    case Kind::kRun:
      return AddRun(message);
    case Kind::kCancelRun:
      return CancelRun(message);
    default:
      return;
  }
}

void Worker::OnMember(const Message& reply, Time) {
  if (reply.request == Kind::kRegister && !core_.Registered(Context(reply), &actions_).ok())
    cluster_->Exit(slot_);
}

void Worker::HoldBack(const Message& message) {
  if (core_.HoldBack(Now(), Now()) > absl::ZeroDuration()) {
    Saw("registration awaited");
    return waiting_.push_back({now(), message});
  }
  message.kind == Kind::kInstall ? Install(message) : CancelBelow(message);
}

void Worker::AfterAll() {
  while (!waiting_.empty() &&
         core_.HoldBack(Now(), At(waiting_.front().first)) == absl::ZeroDuration()) {
    const Message message = waiting_.front().second;
    waiting_.erase(waiting_.begin());
    message.kind == Kind::kInstall ? Install(message) : CancelBelow(message);
  }
  while (!actions_.empty() || core_.alarm() <= Now()) {
    for (const WorkerAction& action : std::exchange(actions_, {})) {
      cluster_->seen().Saw(action);
      std::visit([this](const auto& a) { Do(a); }, action);
    }
    if (!actions_.empty() || core_.alarm() > Now()) continue;
    if (core_.idle() && core_.alarm() > absl::InfinitePast()) Saw("predecessor given up");
    core_.Tick(Now(), &actions_);
  }
  if (const absl::Time alarm = core_.alarm(); alarm < absl::InfiniteFuture() && alarm != alarm_) {
    alarm_ = alarm;
    After(absl::ToInt64Nanoseconds(alarm - Now()), "alarm", [] {});
  }
  if (core_.draining() && core_.idle() && !std::exchange(left_, true)) Leave();
}

void Worker::Refuse(const Message& request, const absl::Status& status) {
  cluster_->Reply(request, {.code = CodeOf(status), .epoch = EpochIn(status)});
}

absl::Status Worker::Configure(const Routing& routing) {
  WorkerRouting summary = {.version = routing.version,
                           .generation = Generation(routing.generation)};
  for (uint8_t s = 0; s < routing.servers; ++s)
    summary.servers.push_back({s, absl::StrCat(routing.slot[s]), routing.incarnation[s]});
  offered_ = routing;
  return core_.Configure(context_, std::move(summary), absl::OkStatus(), &actions_);
}

// Its routing, and functions, which take a while to compile.
void Worker::Install(const Message& message) {
  Context(message);
  if (absl::Status status = Configure(cluster_->RoutingAt(message.routing)); !status.ok())
    return Refuse(message, status);
  const auto token = core_.BeginInstall(context_, &actions_);
  if (!token.ok()) return Refuse(message, token.status());
  bool all = message.bad_functions == 0;
  for (uint64_t f = 1; f <= kFunctions; ++f) all &= core_.has_function(Fingerprint(f));
  if (all) return cluster_->Reply(message, {});
  After(cluster_->Between(0, 6 * kMillisecond), "installed",
        [=, this, token = *token] { Installed(message, token); });
}

void Worker::Installed(const Message& request, WorkerCore::InstallToken token) {
  for (uint64_t f = 1; f <= kFunctions; ++f) {
    if (absl::Status status = core_.FunctionInstalled(token, Fingerprint(f)); !status.ok()) {
      Saw("compiled in vain");
      return Refuse(request, status);
    }
    compiled_in_[Fingerprint(f)] = request.epoch;
  }
  cluster_->Reply(request, {.code = request.bad_functions > 0 ? Code::kRefused : Code::kOk});
}

void Worker::SendToCaller(const Message& request, Message message) {
  if (request.copy) return;  // the caller knows nothing of the second one
  message.from = slot_;
  message.to = request.from;
  message.to_incarnation = request.from_incarnation;
  message.function = request.function;
  message.run = request.run;
  if (message.kind == Kind::kStepResult && std::exchange(garbles_, false))
    message.code = Code::kGarbage;
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
  open_.push_back({last_call_, message, message.first_step, now()});
  arrived_.insert({message.from_incarnation, message.run});
  const absl::Status status = core_.Run(Now(), Context(message), std::move(request), &actions_);
  if (!status.ok()) {
    open_.pop_back();
    SendToCaller(message,
                 {.kind = Kind::kRunEnded, .code = CodeOf(status), .epoch = EpochIn(status)});
  }
  if (core_.idle() && core_.active() > 0) Saw("predecessor awaited");
}

void Worker::CancelRun(const Message& message) {
  for (const Open& open : open_) {
    if (open.request.kind == Kind::kRun && open.request.run == message.run &&
        open.request.from_incarnation == message.from_incarnation)
      core_.CallerGone(open.id, &actions_);
  }
}

void Worker::CancelBelow(const Message& message) {
  last_call_ = last_call_.Next();
  const CallId call = last_call_;
  open_.push_back({call, message});
  const absl::Status status =
      core_.CancelRuns(Context(message), FunctionId(message.function), call, &actions_);
  if (!status.ok()) Refuse(Take(call), status);
}

void Worker::Drain() { core_.Drain(Now(), absl::Nanoseconds(kDrainPatience), &actions_); }

void Worker::Forget() {
  core_.Forget(&actions_);
  if (cluster_->Between(0, 1) == 0 || routing_.epoch != core_.epoch()) return;
  // One of its functions only: the others are still on its disk.
  if (!Configure(Routing(routing_)).ok()) return;
  const auto token = core_.BeginInstall(context_, &actions_);
  for (uint64_t f = 2; token.ok() && f <= kFunctions; ++f)
    core_.FunctionInstalled(*token, Fingerprint(f)).IgnoreError();
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

void Worker::Do(const worker_action::SendResults& a) {
  const Message request = Find(a.run).request;
  if (held_.size() > 1) Saw("results grouped");
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
  if (cluster_->scenario().broken.worker.fencing) return;
  if (compiled_in_[FunctionOf(request)] != request.epoch) {
    cluster_->truth().Fail(absl::StrCat("run ", request.run, " of epoch ", request.epoch,
                                        " executes a function of epoch ",
                                        compiled_in_[FunctionOf(request)]));
  }
  if (request.after != 0 && now() < run.arrived + kPredecessorPatience &&
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
