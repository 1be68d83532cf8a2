// Requests and actions; the steps are in worker_step.cc.
#include "tests/sim/worker.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "tests/sim/cluster.h"
#include "worker/core/refusal.h"

namespace mu::sim {
namespace {

constexpr Time kDrainPatience = 15 * kMillisecond;

Fingerprint FunctionOf(const Message& run) { return Fingerprint(1 + run.function % kFunctions); }

WorkerCore::Options CoreOptions() {
  return {.registers = true,
          .registration_patience = absl::Nanoseconds(100 * kMillisecond),
          .result_interval = absl::Nanoseconds(8 * kMillisecond)};
}

}  // namespace

Worker::Worker(Cluster* cluster, Slot slot, uint64_t incarnation)
    : Daemon(cluster, slot, incarnation), core_(CoreOptions()) {}

void Worker::HandleRequest(const Message& message) {
  switch (message.kind) {
    case Kind::kInstall:
    case Kind::kCancelBelow:
      if (core_.HoldBack(Now(), Now()) > absl::ZeroDuration()) Saw("registration awaited");
      return waiting_.push_back({now(), message});
    case Kind::kScan:
      return LookThrough(message);
    case Kind::kFeedOpen:
      return OpenFeed(message);
    case Kind::kRun:
    case Kind::kCancelRun:
      return OnFeed(message);
    case Kind::kFeedBroken:
      if (message.connection == feed_.connection) feed_.open = false;
      return;
    default:
      return;
  }
}

void Worker::OnMember(const Message& reply, Time) {
  if (reply.request == Kind::kRegister && !core_.Registered(Context(reply), &actions_).ok())
    cluster_->Exit(slot_);
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
    core_.Tick(Now(), &actions_);
  }
  if (const absl::Time alarm = core_.alarm(); alarm < absl::InfiniteFuture() && alarm != alarm_) {
    alarm_ = alarm;
    After(absl::ToInt64Nanoseconds(alarm - Now()), "alarm", [] {});
  }
  if (core_.draining() && core_.idle() && !std::exchange(left_, true)) Leave();
}

absl::Status Worker::Configure(const Routing& routing) {
  WorkerRouting summary = {.version = routing.version,
                           .generation = Generation(routing.generation)};
  for (uint8_t s = 0; s < routing.servers; ++s)
    summary.servers.push_back({s, absl::StrCat(routing.slot[s]), routing.incarnation[s]});
  const size_t before = actions_.size();
  MU_RETURN_IF_ERROR(core_.Configure(context_, std::move(summary), absl::OkStatus(), &actions_));
  if (actions_.size() > before) offered_ = routing;  // it is news
  return absl::OkStatus();
}

// Its routing, or a function, which takes a while to compile.
void Worker::Install(const Message& message) {
  Context(message);
  if (message.function == 0) {
    const absl::Status configured = Configure(cluster_->RoutingAt(message.routing));
    return cluster_->Reply(message, {.status = configured});
  }
  const auto token = core_.BeginInstall(context_, &actions_);
  if (!token.ok()) return cluster_->Reply(message, {.status = token.status()});
  if (core_.has_function(Fingerprint(message.function))) return cluster_->Reply(message, {});
  After(cluster_->Between(0, 6 * kMillisecond), "installed",
        [=, this, token = *token] { Installed(message, token); });
}

void Worker::Installed(const Message& request, WorkerCore::InstallToken token) {
  const Fingerprint function(request.function);
  if (request.function > kFunctions) {
    const auto text = absl::StrCat("bad function ", request.function - kFunctions, " is wrong");
    const absl::Status wrong = absl::InvalidArgumentError(text);
    return cluster_->Reply(request, {.status = WithKind(wrong, pb::ERROR_USER, pb::ROLE_WORKER)});
  }
  const absl::Status status = core_.FunctionInstalled(token, function);
  if (!status.ok()) Saw("compiled in vain");
  if (status.ok()) compiled_in_[function] = request.epoch;
  cluster_->Reply(request, {.status = status});
}

absl::Status Worker::CannotSee(uint32_t file) const {
  if (cluster_->HasData(slot_)) return absl::OkStatus();
  return WithInputFault(absl::NotFoundError("there is no such file"), pb::InputFault::MISSING,
                        file);
}

void Worker::LookThrough(const Message& scan) {
  // A network disk hangs now and then.
  const bool hangs = cluster_->failing() && cluster_->PerMille(50);
  After(cluster_->Between(0, (hangs ? 100 : 8) * kMillisecond), "looked through a file",
        [this, scan] {
          absl::Status status = CannotSee(scan.file);
          if (cluster_->failing() && cluster_->PerMille(30))
            status = WithKind(absl::InternalError("i/o error"), pb::ERROR_MACHINE, pb::ROLE_WORKER);
          cluster_->Reply(scan, {.status = status});
        });
}

void Worker::SendToCaller(const Message& request, Message message) {
  if (request.stream != feed_.stream || request.from_incarnation != feed_.coordinator_incarnation)
    return;  // its stream is over
  message.function = request.function;
  message.run = request.run;
  if (message.kind == Kind::kStepResult && std::exchange(garbles_, false))
    message.status = absl::InternalError("garbage");
  feed_.end.Add(std::move(message), 1);
  WriteAll();
}

void Worker::WriteAll() {
  if (!feed_.open) return;
  while (const auto* const next = feed_.end.Write()) {
    Message message = next->message;
    message.from = slot_;
    message.to = feed_.coordinator;
    message.to_incarnation = feed_.coordinator_incarnation;
    message.stream = feed_.stream;
    message.connection = feed_.connection;
    message.number = next->number;
    message.received = feed_.end.Confirm();
    cluster_->Send(std::move(message));
  }
}

void Worker::OpenFeed(const Message& message) {
  Message welcome{.to_incarnation = message.from_incarnation,
                  .kind = Kind::kFeedWelcome,
                  .from = slot_,
                  .to = message.from,
                  .stream = message.stream,
                  .connection = message.connection,
                  .job = message.job};
  absl::StatusOr<bool> is_new =
      WorkerRefusal(pb::ERROR_STALE, "another process has the address of the one that is meant");
  if (message.meant == incarnation_)
    is_new = core_.OpenFeed(Context(message), {message.stream, message.connection}, &actions_);
  if (!is_new.ok()) {
    if (message.copy) return;
    welcome.status = is_new.status();
    return cluster_->Send(std::move(welcome));
  }
  if (*is_new) {
    for (const auto& [id, open] : open_) {
      if (open.request.kind == Kind::kRun) core_.CallerGone(id, &actions_);
    }
    feed_ = {.coordinator = message.from,
             .coordinator_incarnation = message.from_incarnation,
             .stream = message.stream};
  }
  feed_.connection = message.connection;
  feed_.open = true;
  if (const absl::Status confirmed = feed_.end.Confirmed(message.received); !confirmed.ok())
    return cluster_->truth().Fail(std::string(confirmed.message()));
  feed_.end.Reconnect();
  welcome.received = feed_.end.Confirm();
  cluster_->Send(std::move(welcome));
  WriteAll();
}

void Worker::OnFeed(const Message& message) {
  if (message.connection != feed_.connection) return;
  if (const absl::Status confirmed = feed_.end.Confirmed(message.received); !confirmed.ok())
    return cluster_->truth().Fail(std::string(confirmed.message()));
  using Arrival = ResumableStream<Message>::Arrival;
  switch (feed_.end.Receive(message.number, 1)) {
    case Arrival::kNew:
      return message.kind == Kind::kRun ? AddRun(message) : CancelRun(message);
    case Arrival::kRepeat:
      return Saw("message repeated");
    case Arrival::kGap:
      return cluster_->truth().Fail(
          absl::StrCat("a stream lost a message to worker ", IndexOf(slot_)));
  }
}

void Worker::AddRun(const Message& message) {
  last_call_ = last_call_.Next();
  WorkerCore::RunRequest request;
  request.run = {.call = last_call_,
                 .function = FunctionId(message.function),
                 .generation = Generation(message.generation),
                 .next_step = message.first_step,
                 .steps = message.steps};
  request.function = FunctionOf(message);
  if (message.wrong_inputs) request.inputs = UserErrorOf(message);
  open_[last_call_] = {message, message.first_step};
  if (!arrived_.insert({message.from_incarnation, message.run}).second)
    cluster_->truth().Fail(absl::StrCat("run ", message.run, " comes twice"));
  const absl::Status status = core_.Run(Now(), Context(message), std::move(request), &actions_);
  if (!status.ok()) SendToCaller(Take(last_call_), {.kind = Kind::kRunEnded, .status = status});
}

absl::Status Worker::UserErrorOf(const Message& run) const {
  const auto text = absl::StrCat("run ", run.run, " of function ", run.function, " is wrong");
  return WithKind(absl::InvalidArgumentError(text), pb::ERROR_USER, pb::ROLE_WORKER, index_);
}

void Worker::CancelRun(const Message& message) {
  for (const auto& [id, open] : open_) {
    const Message& run = open.request;
    if (run.kind == Kind::kRun && run.from_incarnation == message.from_incarnation &&
        (message.run == 0 || run.run == message.run))
      core_.CallerGone(id, &actions_);
  }
}

void Worker::CancelBelow(const Message& message) {
  last_call_ = last_call_.Next();
  open_[last_call_] = {message};
  const absl::Status status =
      core_.CancelRuns(Context(message), FunctionId(message.function), last_call_, &actions_);
  if (!status.ok()) cluster_->Reply(Take(last_call_), {.status = status});
}

void Worker::Drain() { core_.Drain(Now(), absl::Nanoseconds(kDrainPatience), &actions_); }

void Worker::Forget() {
  std::vector<Fingerprint> others;
  for (uint64_t f = 2; f <= kFunctions; ++f)
    if (core_.has_function(Fingerprint(f))) others.push_back(Fingerprint(f));
  core_.Forget(&actions_);
  if (cluster_->Between(0, 1) == 0 || routing_.epoch != core_.epoch()) return;
  // One of its functions only: the others are still on its disk.
  if (!Configure(Routing(routing_)).ok()) return;
  const auto token = core_.BeginInstall(context_, &actions_);
  if (!token.ok()) return;
  for (const Fingerprint function : others) core_.FunctionInstalled(*token, function).IgnoreError();
}

void Worker::Do(const worker_action::SendResults& a) {
  const Message& request = open_.at(a.run).request;
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
  SendToCaller(request,
               {.kind = Kind::kRunEnded, .status = a.status, .handed_back = a.handed_back});
}

void Worker::Do(const worker_action::Cancelled& a) {
  const Message request = Take(a.call);
  CheckCancelled(a.call, request);
  cluster_->Reply(request, {});
}

void Worker::CheckBegin(const Open& run) {
  const Message& request = run.request;
  if (cluster_->scenario().broken.worker.fencing) return;
  if (compiled_in_[FunctionOf(request)] != request.epoch) {
    cluster_->truth().Fail(absl::StrCat("run ", request.run, " of epoch ", request.epoch,
                                        " executes a function of epoch ",
                                        compiled_in_[FunctionOf(request)]));
  }
  uint64_t& begun = begun_[request.from_incarnation];
  if (request.run < begun) {
    cluster_->truth().Fail(
        absl::StrCat("run ", request.run, " begins after run ", begun, ", which was sent later"));
  }
  begun = request.run;
}

void Worker::CheckCancelled(CallId id, const Message& cancel) {
  if (running_ == CallId() || id < running_) return;
  const Message& run = open_.at(running_).request;
  if (cancel.epoch == run.epoch && run.function < cancel.function &&
      Generation(cancel.generation) >= core_.generation()) {
    cluster_->truth().Fail(absl::StrCat("functions below ", cancel.function,
                                        " are reported as cancelled, but function ", run.function,
                                        " still runs"));
  }
}

}  // namespace mu::sim
