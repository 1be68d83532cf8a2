#include "tests/sim/daemon.h"

#include <utility>

#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr Time kOrphanTimeout = 250 * kMillisecond;

}  // namespace

void Process::After(Time delay, const char* name, std::function<void()> run) {
  cluster_->Add(delay, {slot_, incarnation_, name, std::move(run)});
}

void Process::Saw(Moment moment) { cluster_->seen().Saw(moment); }
Time Process::now() const { return cluster_->now(); }

Daemon::Daemon(Cluster* cluster, Slot slot, uint64_t incarnation)
    : Process(cluster, slot, incarnation),
      index_(IndexOf(slot)),
      core_(absl::Nanoseconds(kOrphanTimeout)) {}

uint32_t Daemon::Call(Kind kind) {
  const uint32_t call = cluster_->NextCall();
  cluster_->Send({.incarnation = incarnation_,
                  .kind = kind,
                  .from = slot_,
                  .to = cluster_->coordinator_slot(),
                  .index = index_,
                  .call = call,
                  .epoch = static_cast<uint32_t>(core_.registration().epoch()),
                  .moved = moved()});
  return call;
}

void Daemon::CallCoordinator() {
  const bool registers = core_.Send(now()) == MembershipCore::Call::kRegister;
  called_ = registers ? Kind::kRegister : Kind::kHeartbeat;
  call_ = Call(called_);
}

void Daemon::Tick() {
  After(kHeartbeatEvery, "", [this] { Tick(); });
  if (leaving_) leave_call_ = Call(Kind::kLeave);
  if (call_ != 0) {
    if (now() - core_.sent_ns() < kCallTimeout) return;
    Answered({.code = Code::kMachine});
  }
  if (core_.lost().ok()) CallCoordinator();
}

void Daemon::Leave() {
  if (core_.registration().job() == 0) return cluster_->Exit(slot_);  // nobody knows it
  leaving_ = true;
  core_.Leave();
  leave_call_ = Call(Kind::kLeave);
}

void Daemon::Handle(const Message& message) {
  const bool is_reply = message.kind == Kind::kReply;
  if (is_reply && message.request == Kind::kLeave) {
    if (message.call == leave_call_ && message.code == Code::kOk) cluster_->Exit(slot_);
  } else if (is_reply &&
             (message.request == Kind::kRegister || message.request == Kind::kHeartbeat)) {
    if (message.call == call_) Answered(message);
  } else {
    HandleRequest(message);
  }
}

void Daemon::Answered(const Message& reply) {
  call_ = 0;
  const absl::Status& status = StatusOf(reply.code);
  MembershipCore::Next next;
  if (called_ == Kind::kHeartbeat) {
    next = core_.Beaten(now(), status);
  } else if (!status.ok()) {
    next = core_.Registered(now(), status);
  } else {
    pb::RegisterReply registered;
    registered.set_job(kJob);
    registered.set_epoch(reply.epoch);
    registered.set_index(reply.index);
    next = core_.Registered(now(), registered);
  }
  switch (next) {
    case MembershipCore::Next::kTaken:
      return OnMember(reply, core_.sent_ns());
    case MembershipCore::Next::kWait:
      return;
    case MembershipCore::Next::kAtOnce:
      return CallCoordinator();
    case MembershipCore::Next::kLost:
      Saw(absl::IsUnavailable(core_.lost()) ? Moment("daemon orphaned") : Moment("daemon refused"));
      return cluster_->Exit(slot_);
  }
}

const pb::RequestContext& Daemon::Context(const Message& request) {
  context_.set_job(kJob);
  context_.set_epoch(request.epoch);
  context_.set_generation(request.generation);
  context_.set_low_water(request.low_water);
  return context_;
}

}  // namespace mu::sim
