// The coordinator of the simulation: a shell around the product's core. It brings messages to the
// core as events and carries out its actions as messages; its user schedules functions until the
// data is used up, takes checkpoints and, in a new coordinator, continues from the newest one.
#pragma once

#include <array>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/core.h"
#include "tests/sim/daemon.h"
#include "tests/sim/disk.h"
#include "tests/sim/message.h"

namespace mu::sim {

// A generation as messages carry it: coordinators of two epochs never use the same.
inline uint32_t OnWire(Generation generation) {
  return static_cast<uint32_t>((generation.value() >> 32) * 1000 +
                               (generation.value() & 0xffffffff) + 1);
}

inline constexpr uint64_t kDataset = 1;
inline DataLeases::Plan PlanOf(const DataLayout& data, uint64_t epoch) {
  return std::make_shared<const EpochPlan>(*EpochPlan::Make(data, epoch));
}

inline constexpr int kTries = 3;  // of most calls

inline CallError ErrorOf(Code code) { return CallError::Of(StatusOf(code)); }

class Coordinator final : public Process {
 public:
  Coordinator(Cluster* cluster, Slot slot, uint64_t incarnation);

  void Start() override;
  void Handle(const Message& message) override;
  void AfterAll() override;
  void OnConnectionLost(uint64_t incarnation);
  void OnDaemonDied(Slot slot, uint64_t incarnation);
  // A function of the user fails, or the user cancels all.
  void UserError();
  // The user creates a function that workers find wrong.
  void BadFunction();

  // For the checker, once the job is done.
  void CheckMemory() const;
  uint64_t incarnation_of_server(uint32_t index) const { return servers_[index].incarnation; }
  std::string Progress() const;
  int64_t rolled_back() const { return core_.rolled_back(); }

 private:
  struct Link {                // to one incarnation of a daemon
    uint64_t incarnation = 0;  // 0: nobody
    Slot slot = kNowhere;
    uint32_t configured = 0;                         // generation of a server
    std::vector<std::pair<FunctionId, RunId>> runs;  // of a worker: calls that are open
  };
  // A call to a daemon, made again a few times.
  struct Call {
    uint32_t index = 0;  // of the daemon
    Message request;
    int tries = 0;    // that are left
    uint32_t id = 0;  // of the last one
    Time until = 0;
  };

  void Step(Event event);
  void Do(action::AnswerRegister& a);
  void Do(action::AnswerHeartbeat& a);
  void Do(action::AnswerLeave& a);
  void Do(action::MemberJoined& a);
  void Do(action::MemberLost& a);
  void Do(action::Install& a);
  void Do(action::MakePlan& a);
  void Do(action::Scheduled& a) { states_[a.function] = 0; }
  void Do(action::Start& a);
  void Do(action::StopRun& a);
  void Do(action::Deliver& a);
  void Do(action::Finish& a) { states_.erase(a.function); }
  void Do(action::CancelOnWorkers& a);
  void Do(action::FenceServers& a);
  void Do(action::Cancelled&);
  void Do(action::Paused&);
  void Do(action::Restore& a);
  void Do(action::TaskDone& a);
  void Do(action::Configure& a);
  void Do(action::Assign& a);
  void Do(action::Load& a);
  void Do(action::UseRouting&);
  void Do(action::Save& a);
  void Do(action::WriteManifest& a);
  void Do(action::Committed& a);
  void Do(action::Aborted& a);
  void Do(action::Note& a);
  template <typename A>
  void Do(A&) {}  // nothing to do

  // Members (coordinator_members.cc) and functions (coordinator.cc).
  void OnRegister(const Message& message);
  void OnHeartbeat(const Message& message);
  void OnLeave(const Message& message);
  void OnStepResult(const Message& message);
  void OnRunEnded(const StartRun& start, Code code, uint32_t epoch);
  void NoteCancelled();  // for the checker: all that has not finished
  bool AllScheduled();
  void Feed();
  void CheckDone();
  std::vector<uint16_t> RecordsOf(const FunctionQueue::Function& function) const;
  void Monitor();
  void TakeCheckpoints();
  Message WithContext(Message message) const;

  // Calls to workers and servers (coordinator_calls.cc).
  void Begin(uint32_t index, const Message& request, int tries);
  void Try(Call* call);
  void OnReply(const Message& reply);
  void Answered(const Call& call, const Message* reply);  // null: no try was answered
  void RepeatCalls();
  template <typename Is>
  void Drop(const Is& is) {
    std::erase_if(calls_, is);
  }
  void Installed(const Call& call, const Message* reply);
  // What all servers are asked at once: a round of a recovery, the first configuration, a load.
  void AskAll(std::optional<uint32_t> checkpoint, const std::vector<bool>& keep = {});
  void StateAnswered(const Call& call, const Message* reply);
  void StateFailed(absl::Status status);
  void AllAnswered();
  void FenceAnswered();
  bool NoteEpoch(const Message& reply);
  TaskId Ask(ServerTask task);
  // The user's program has created everything: it continues from the newest good checkpoint, if
  // there is one.
  void Continue();
  void Begun();
  // Checkpoints (coordinator_checkpoint.cc).
  void TakeCheckpoint();
  void OnSaved(uint32_t server, const Message* reply);
  void ManifestDue(uint64_t folder);

  const uint32_t expected_servers_;
  const uint32_t epoch_;
  Core core_;
  std::deque<Event> events_;  // that the core has not been told of
  bool stepping_ = false;
  bool ended_ = false;
  const Message* handling_ = nullptr;
  std::map<mu::CallId, Message> leaves_;
  mu::CallId next_call_;
  std::map<WorkerId, Link> links_;
  std::array<Link, kMaxServers> servers_;
  std::list<Call> calls_;
  std::map<FunctionId, uint32_t> states_;  // of functions that somebody waits for: results so far

  bool beginning_ = true;  // the program has not continued its job yet
  TaskId last_task_;
  TaskId beginning_task_, save_task_, assign_task_;  // 0: none
  // What the servers' `state` calls are for.
  enum class Asking { kNothing, kRound, kConfigure, kLoad } asking_ = Asking::kNothing;
  uint64_t asking_attempt_ = 0;
  Generation round_;
  std::array<uint64_t, kMaxServers> held_{};
  uint64_t begin_from_ = 0;
  std::optional<Checkpoint> begin_checkpoint_;  // that one, as it was then
  event::Fenced fenced_;                        // under way; attempt 0: none
  Generation newest_;                           // that the servers were given last
  uint32_t generation_ = 0;                     // the same on the wire
  uint32_t catalog_ = 0;                        // version
  uint32_t routing_ = 0, routing_place_ = 0;    // its version, and where it is
  uint8_t bad_functions_ = 0;
  std::map<CheckpointNumber, uint64_t> folders_;  // on the disk
  CheckpointNumber saving_;
  uint32_t attempt_ = 0;  // of its saves
  Checkpoint manifest_;
  Time done_at_ = 0;
};

}  // namespace mu::sim
