// The coordinator of the simulation: a shell around the product's core. It brings messages to the
// core as events and carries out its actions as messages; its user schedules functions until the
// data is used up. What it still decides by itself is how a new coordinator begins.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/core.h"
#include "tests/sim/disk.h"
#include "tests/sim/message.h"

namespace mu::sim {

class Cluster;

class Coordinator {
 public:
  Coordinator(Cluster* cluster, Slot slot);

  void Start();
  void Handle(const Message& message);

  uint32_t epoch() const { return epoch_; }
  // For the checker, once the job is done.
  void CheckMemory() const;
  uint64_t incarnation_of_server(uint32_t index) const { return servers_[index].incarnation; }
  std::string Progress() const;
  int64_t rolled_back() const { return core_.rolled_back(); }

 private:
  struct Link {  // to one incarnation of a worker
    uint64_t incarnation = 0;
    Slot slot = kNowhere;
    uint32_t install_call = 0;
    uint32_t installing = 0;  // version of the routing
    Time install_until = 0;
    std::vector<std::pair<FunctionId, RunId>> runs;  // calls that are open
    uint32_t cancel_call = 0;
    Time cancel_until = 0;
    int cancel_tries = 0;
    Message cancel;
  };
  // A call to a server, made again a few times.
  struct Call {
    uint32_t id = 0;  // 0: none
    Time until = 0;
    int tries = 0;
    Message request;
  };
  struct ServerLink {
    uint64_t incarnation = 0;  // 0: nobody
    Slot slot = kNowhere;
    uint32_t configured = 0;  // generation
    Call state, save, fence;
  };

  void Step(Event event);
  void Do(action::AnswerRegister& a);
  void Do(action::AnswerHeartbeat& a);
  void Do(action::AnswerLeave& a);
  void Do(action::MemberJoined& a);
  void Do(action::MemberLost& a);
  void Do(action::Install& a);
  void Do(action::InputWrong&) {}
  void Do(action::Scheduled& a) { states_[a.function] = 0; }
  void Do(action::Start& a);
  void Do(action::StopRun& a);
  void Do(action::Deliver& a);
  void Do(action::Finish& a) { states_.erase(a.function); }
  void Do(action::CancelOnWorkers& a);
  void Do(action::FenceServers& a);
  void Do(action::Cancelled&);
  void Do(action::Ended& a);
  void Do(action::InterruptServers&) {}
  void Do(action::Paused&);
  void Do(action::RolledBack&) {}
  void Do(action::Restore& a);
  void Do(action::SaveForLeave&) { leave_wanted_ = true; }
  void Do(action::Serving& a);
  void Do(action::Save& a);
  void Do(action::WriteManifest& a);
  void Do(action::Committed& a);
  void Do(action::Aborted& a);
  void Do(action::RepeatAssignment&) {}
  void Do(action::Note& a);

  // Members (coordinator_members.cc) and functions (coordinator.cc).
  void OnRegister(const Message& message);
  void OnHeartbeat(const Message& message);
  void OnLeave(const Message& message);
  void OnStepResult(const Message& message);
  void OnRunEnded(const Message& message);
  void OnConnectionLost(const Message& message);
  void UserError();
  void Feed();
  void CheckDone();
  uint16_t RecordOf(const BatchRange& range, uint32_t batch) const;
  void Monitor();
  Message WithContext(Message message) const;

  // Calls to workers and servers (coordinator_calls.cc).
  void SendInstall(WorkerId id, Link* link);
  void OnInstalled(const Message& reply);
  void SendCancel(WorkerId id, Link& link);
  void OnCancelReply(const Message& reply);
  void CallServer(uint32_t server, Call* call);
  void BeginCall(uint32_t server, Call* call, const Message& request);
  void OnStateReply(uint32_t server, const Message& reply);
  void StateFailed(uint32_t server, RestoreFault fault);
  void OnFenceReply(uint32_t server, const Message& reply);
  void Fenced(const absl::Status& status);
  void CheckCalls();
  bool NoteEpoch(const Message& reply);
  void NewRouting();
  void TryBegin();  // of a new coordinator
  void Begun();
  // Checkpoints (coordinator_checkpoint.cc).
  void TakeCheckpoint();
  void LeaveSaved(std::optional<CheckpointNumber> checkpoint);
  void OnSaved(uint32_t server, const Message& reply);
  void OnManifestDue(const Message& timer);

  Cluster* const cluster_;
  const Slot slot_;
  const uint32_t expected_servers_;
  const uint32_t epoch_;
  Core core_;
  std::deque<Event> events_;  // that the core has not been told of
  bool stepping_ = false;
  bool ended_ = false;
  const Message* handling_ = nullptr;
  std::map<CallId, Message> leaves_;
  CallId next_call_;
  std::map<WorkerId, Link> links_;
  std::array<ServerLink, kMaxServers> servers_;
  std::map<FunctionId, uint32_t> states_;  // of functions that somebody waits for: results so far

  bool beginning_ = true;  // the servers have not been brought to one state yet
  std::optional<RestoreRound> round_;
  std::array<bool, kMaxServers> answered_{};
  std::array<uint64_t, kMaxServers> held_{};
  uint64_t begin_from_ = 0;
  std::optional<Checkpoint> begin_checkpoint_;  // that one, as it was then
  uint64_t fence_attempt_ = 0;                  // under way; 0: none
  bool fence_broken_ = false;                   // a server that had not answered was lost
  uint32_t generation_ = 0;
  uint32_t routing_ = 0, routing_place_ = 0;
  uint64_t checkpoint_ = 0;  // that is being taken
  uint32_t attempt_ = 0;     // of its saves
  Checkpoint manifest_;
  bool leave_wanted_ = false;  // a checkpoint, for a server that leaves
  uint64_t leave_checkpoint_ = 0;
  Time done_at_ = 0;
};

}  // namespace mu::sim
