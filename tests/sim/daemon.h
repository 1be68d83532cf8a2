// A daemon's side of membership in the simulation: registers, heartbeats, leaves. It follows
// common/client/membership.cc.
#pragma once

#include <functional>

#include "tests/sim/message.h"

namespace mu::sim {

class Cluster;

class Daemon {
 public:
  Daemon(Cluster* cluster, Slot slot, uint64_t incarnation, uint8_t index)
      : cluster_(cluster), slot_(slot), incarnation_(incarnation), index_(index) {}

  void Start();
  // Says good-bye until it is answered, then the process ends; until then it stays a member.
  void Leave();
  void Tick(uint32_t moved = 0);  // see Message::moved
  // The answer to a call of this daemon. True if it brings something from a coordinator: it has
  // taken the daemon (request kRegister) or knows it (kHeartbeat). `*sent`: when the request was.
  bool OnReply(const Message& reply, Time* sent);
  uint32_t epoch() const { return epoch_; }

 private:
  uint32_t Call(Kind kind, uint32_t moved = 0);
  void CallAgain(Kind kind, uint32_t moved = 0);

  Cluster* const cluster_;
  const Slot slot_;
  const uint64_t incarnation_;
  const uint8_t index_;
  bool registered_ = false;
  bool leaving_ = false;
  uint32_t epoch_ = 0;
  uint32_t call_ = 0;  // under way; 0: none
  Time called_ = 0;
  uint32_t leave_call_ = 0;
};

}  // namespace mu::sim
