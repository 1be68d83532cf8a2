// The coordinator of the simulation: a shell around the product's core. It brings messages to the
// core as events and carries out its actions as messages; its user schedules functions until the
// data is used up, takes checkpoints and, in a new coordinator, continues from the newest one.
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

// A generation as messages carry it: coordinators of two epochs never use the same.
inline uint32_t OnWire(Generation generation) {
  return static_cast<uint32_t>((generation.value() >> 32) * 1000 +
                               (generation.value() & 0xffffffff) + 1);
}

inline constexpr uint64_t kDataset = 1;

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
  void Do(action::MakePlan& a);
  void Do(action::InputWrong&) {}
  DataLeases::Plan PlanOf(uint64_t epoch) const;
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
  void Do(action::TaskDone& a);
  void Do(action::Configure& a);
  void Do(action::Assign& a);
  void Do(action::Load& a);
  void Do(action::UseRouting&);
  void Do(action::Serving& a);
  void Do(action::Save& a);
  void Do(action::WriteManifest& a);
  void Do(action::Committed& a);
  void Do(action::Aborted& a);
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
  // What all servers are asked at once: a round of a recovery, the first configuration, a load.
  void AskAll(std::optional<uint32_t> checkpoint, const std::vector<bool>& keep = {});
  void OnAssigned(const Message& timer);
  void OnStateReply(uint32_t server, const Message& reply);
  void StateFailed(uint32_t server, RestoreFault fault);
  void AllAnswered();
  void OnFenceReply(uint32_t server, const Message& reply);
  void CheckFence(bool late);
  void CheckCalls();
  bool NoteEpoch(const Message& reply);
  TaskId Ask(ServerTask task);
  // The user's program has created everything: it continues from the newest good checkpoint, if
  // there is one.
  void Begin();
  void Begun();
  // Checkpoints (coordinator_checkpoint.cc).
  void TakeCheckpoint();
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

  bool beginning_ = true;  // the program has not continued its job yet
  TaskId last_task_;
  TaskId beginning_task_, save_task_, assign_task_;  // 0: none
  // What the servers' `state` calls are for.
  enum class Asking { kNothing, kRound, kConfigure, kLoad } asking_ = Asking::kNothing;
  uint64_t asking_attempt_ = 0;
  RestoreRound round_;
  std::array<bool, kMaxServers> answered_{};
  std::array<uint64_t, kMaxServers> held_{};
  uint64_t begin_from_ = 0;
  std::optional<Checkpoint> begin_checkpoint_;  // that one, as it was then
  uint64_t fence_attempt_ = 0;                  // under way; 0: none
  Generation newest_;                           // that the servers were given last
  uint32_t generation_ = 0;                     // the same on the wire
  uint32_t routing_ = 0, routing_place_ = 0;
  std::map<CheckpointNumber, uint64_t> folders_;  // on the disk
  CheckpointNumber saving_;
  uint32_t attempt_ = 0;  // of its saves
  Checkpoint manifest_;
  Time done_at_ = 0;
};

}  // namespace mu::sim
