#include "tests/sim/daemon.h"

#include "tests/sim/cluster.h"

namespace mu::sim {

void Daemon::Start() {
  CallAgain(Kind::kRegister);
  cluster_->SetTimer(slot_, kHeartbeatEvery, {.kind = Kind::kTick});
}

void Daemon::Leave() {
  leaving_ = true;
  leave_call_ = Call(Kind::kLeave);
}

uint32_t Daemon::Call(Kind kind, uint32_t moved) {
  const uint32_t call = cluster_->NextCall();
  cluster_->Send({.incarnation = incarnation_,
                  .kind = kind,
                  .from = slot_,
                  .to = cluster_->coordinator_slot(),
                  .index = index_,
                  .call = call,
                  .epoch = epoch_,
                  .moved = moved});
  return call;
}

void Daemon::CallAgain(Kind kind, uint32_t moved) {
  call_ = Call(kind, moved);
  called_ = cluster_->now();
}

void Daemon::Tick(uint32_t moved) {
  cluster_->SetTimer(slot_, kHeartbeatEvery, {.kind = Kind::kTick});
  if (leaving_) leave_call_ = Call(Kind::kLeave);
  if (call_ != 0 && cluster_->now() - called_ < kCallTimeout) return;
  CallAgain(registered_ ? Kind::kHeartbeat : Kind::kRegister, moved);
}

bool Daemon::OnReply(const Message& reply, Time* sent) {
  if (reply.request == Kind::kLeave) {
    if (leaving_ && reply.call == leave_call_ && reply.code == Code::kOk) cluster_->Exit(slot_);
    return false;
  }
  if (reply.call != call_) return false;
  call_ = 0;
  *sent = called_;
  if (reply.code == Code::kMachine) return false;  // at the next tick
  if (reply.code == Code::kStale) {
    // Another process has its place.
    cluster_->Exit(slot_);
    return false;
  }
  if (reply.code != Code::kOk) {
    // The coordinator is there but does not know this daemon, or is a newer one.
    registered_ = false;
    if (reply.request == Kind::kHeartbeat) CallAgain(Kind::kRegister);
    return false;
  }
  if (reply.request == Kind::kRegister) {
    registered_ = true;
    epoch_ = reply.epoch;
  }
  return true;
}

}  // namespace mu::sim
