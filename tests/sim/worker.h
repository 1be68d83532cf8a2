// A worker of the simulation: runs functions step by step, pushes each step to all servers and
// streams the results. It follows worker/worker_server.cc, run_queue.cc and step_runner.cc.
#pragma once

#include <array>
#include <deque>

#include "tests/sim/daemon.h"
#include "tests/sim/message.h"
#include "worker/request_gate.h"

namespace mu::sim {

class Cluster;

class Worker {
 public:
  Worker(Cluster* cluster, Slot slot, uint64_t incarnation, uint8_t index)
      : cluster_(cluster), slot_(slot), index_(index), daemon_(cluster, slot, incarnation, index) {}

  void Start() { daemon_.Start(); }
  void Handle(const Message& message);
  // The running step is the last, the rest is handed back; then it leaves.
  void Drain();
  // It has lost what was installed.
  void Forget();

 private:
  struct RunState {
    Message request;
    uint8_t next = 0;
    bool stopped = false;
    Code why = Code::kOk;
  };

  bool Admit(const Message& message);  // false: a refusal was sent
  void Install(const Message& message);
  void AddRun(const Message& message);
  void CancelRun(const Message& message);
  void CancelBelow(const Message& message);
  void StopAll(Code why);
  void NextStep();
  void Compute();
  void PushAll();
  void PushTo(uint8_t server);
  void OnPushReply(const Message& reply);
  void OnPushTimer(const Message& timer);
  void EndRun(Code code);
  void SendToCaller(const Message& request, Message message);

  Cluster* const cluster_;
  const Slot slot_;
  const uint8_t index_;
  Daemon daemon_;
  RequestGate gate_;
  uint32_t routing_version_ = 0;
  Routing routing_;
  bool configured_ = false;
  bool draining_ = false;
  bool left_ = false;
  uint64_t cancelled_below_ = 0;  // since it was told of this generation
  std::deque<RunState> runs_;     // the first is being executed
  // The step under way.
  bool pushing_ = false;
  uint32_t step_call_ = 0;  // of its timers
  uint32_t generation_ = 0;
  Time gives_up_ = 0;
  Time retry_delay_ = 0;
  std::array<uint32_t, kMaxServers> push_call_{};  // 0: acknowledged
  std::array<uint8_t, kMaxServers> updates_{}, inherited_{};
  pb::RequestContext context_;
};

}  // namespace mu::sim
