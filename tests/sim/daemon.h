// The processes of a simulated cluster, and what workers and servers have in common.
#pragma once

#include <functional>

#include "common/client/membership_core.h"
#include "proto/coordinator.pb.h"
#include "tests/sim/coverage.h"
#include "tests/sim/message.h"

namespace mu::sim {

class Cluster;

class Process {
 public:
  Process(Cluster* cluster, Slot slot, uint64_t incarnation)
      : cluster_(cluster), slot_(slot), incarnation_(incarnation) {}
  virtual ~Process() = default;
  virtual void Start() = 0;
  virtual void Handle(const Message& message) = 0;
  // After each message and timer.
  virtual void AfterAll() {}

 protected:
  // As long as this process lives.
  void After(Time delay, const char* name, std::function<void()> run);
  void Saw(Moment moment);
  Time now() const;

  Cluster* const cluster_;
  const Slot slot_;
  const uint64_t incarnation_;
};

// Registers, heartbeats and leaves, as the product's core says.
class Daemon : public Process {
 public:
  Daemon(Cluster* cluster, Slot slot, uint64_t incarnation);

  void Start() final { Tick(); }
  void Handle(const Message& message) final;
  // Finishes what is to be finished, then leaves.
  virtual void Drain() { Leave(); }
  uint8_t index() const { return index_; }

 protected:
  // See Message::moved.
  virtual uint32_t moved() const { return 0; }
  virtual void HandleRequest(const Message& message) = 0;
  // A coordinator has taken this daemon (an answer to kRegister) or knows it (kHeartbeat).
  virtual void OnMember(const Message& reply, Time sent) = 0;
  // Says good-bye until it is answered, then the process ends; until then it stays a member.
  void Leave();
  const pb::RequestContext& Context(const Message& request);

  const uint8_t index_;
  pb::RequestContext context_;  // the last one

 private:
  void Tick();
  uint32_t Call(Kind kind);
  void CallCoordinator();
  void Answered(const Message& reply);

  MembershipCore core_;
  bool leaving_ = false;
  uint32_t call_ = 0, leave_call_ = 0;  // under way; 0: none
  Kind called_{};
};

}  // namespace mu::sim
