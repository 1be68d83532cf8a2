// The processes of a simulated cluster, and what workers and servers have in common.
#pragma once

#include <functional>
#include <list>

#include "absl/container/inlined_vector.h"
#include "common/client/call_retries.h"
#include "common/client/membership_core.h"
#include "proto/coordinator.pb.h"
#include "tests/sim/coverage.h"
#include "tests/sim/message.h"

namespace mu::sim {

class Cluster;
using Messages = absl::InlinedVector<Message, kMaxServers>;

class Process {
 public:
  Process(Cluster* cluster, Slot slot, uint64_t incarnation)
      : cluster_(cluster), slot_(slot), incarnation_(incarnation) {}
  virtual ~Process() = default;
  virtual void Start() = 0;
  void Handle(const Message& message);
  // After each message and timer.
  virtual void AfterAll() {}

 protected:
  // With the answers, or with the first error that no other try will find different.
  using Done = std::function<void(const absl::Status&, const Messages& answers)>;
  // Calls under way to other processes, all at once.
  struct Calls {
    uint32_t id = 0;
    Kind kind{};
    CallRetries retries;
    Messages messages;  // requests (`call` is 0 while it waits for its next try), then answers
    Done done;
  };
  // One try, whatever comes of it.
  static constexpr RetryPolicy kOnce = {.call_timeout = absl::Nanoseconds(kCallTimeout),
                                        .total_timeout = absl::ZeroDuration(),
                                        .bound_tries = false};

  virtual void HandleRequest(const Message& message) = 0;
  // A shell around CallRetries, as PsCallGroup is one. Returns the id.
  uint32_t CallAll(Messages requests, RetryPolicy policy, Done done);
  // These end now, with CANCELLED.
  template <typename Which>
  void Interrupt(const Which& which) {
    for (auto next = calls_.begin(); next != calls_.end();) {
      const auto calls = next++;
      if (which(*calls)) End(calls, absl::CancelledError("the call was given up"));
    }
  }
  // As long as this process lives.
  void After(Time delay, const char* name, std::function<void()> run);
  void Saw(Moment moment);
  Time now() const;

  Cluster* const cluster_;
  const Slot slot_;
  const uint64_t incarnation_;

 private:
  void Try(Message* request, const CallRetries& retries);
  void Retry(std::list<Calls>::iterator calls);
  void OnReply(const Message& reply);
  void OnAnswer(std::list<Calls>::iterator calls, size_t call, const Message& reply);
  void End(std::list<Calls>::iterator calls, const absl::Status& status);

  std::list<Calls> calls_;
};

// Registers, heartbeats and leaves, as the product's core says.
class Daemon : public Process {
 public:
  Daemon(Cluster* cluster, Slot slot, uint64_t incarnation);

  void Start() final { Tick(); }
  // Finishes what is to be finished, then leaves.
  virtual void Drain() { Leave(); }
  uint8_t index() const { return index_; }

 protected:
  // What the daemon says of itself, where the coordinator asks for it.
  virtual void FillHeartbeat(Message*) const {}
  // A coordinator has taken this daemon (an answer to kRegister) or knows it (kHeartbeat).
  virtual void OnMember(const Message& reply, Time sent) = 0;
  // Says good-bye until it is answered, then the process ends; until then it stays a member.
  void Leave();
  const pb::RequestContext& Context(const Message& request);

  const uint8_t index_;
  pb::RequestContext context_;  // the last one

 private:
  void Tick();
  void Call(Kind kind, Done done);
  void CallCoordinator();
  void CallLeave();
  void OnAnswer(Kind called, const absl::Status& status, const Message& answer);

  MembershipCore core_;
  bool calling_ = false, leaving_ = false;
};

}  // namespace mu::sim
