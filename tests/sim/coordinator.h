// The coordinator of the simulation: the product's membership, function queue, data leases,
// recovery and commit of checkpoints, and what the runtime does around them. Its user schedules
// functions until the data is used up.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cluster/checkpoint_commit.h"
#include "coordinator/cluster/data_leases.h"
#include "coordinator/cluster/function_queue.h"
#include "coordinator/cluster/membership.h"
#include "coordinator/cluster/recovery.h"
#include "coordinator/cluster/update_ledger.h"
#include "tests/sim/disk.h"
#include "tests/sim/message.h"

namespace mu::sim {

class Cluster;

// What is being cancelled, and who has confirmed it.
struct Cancellation {
  uint64_t below = 0;
  uint32_t generation = 0;               // in which it ran
  std::map<WorkerId, uint64_t> workers;  // to confirm, with their incarnations
  bool fencing = false;                  // they have
  std::array<bool, kMaxServers> fenced{};
  uint32_t call = 0;
  Time until = 0;
  int tries = 0;
};

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
  int64_t rolled_back() const { return ledger_.rolled_back(); }

 private:
  struct Link {  // to one incarnation of a worker
    uint64_t incarnation = 0;
    Slot slot = kNowhere;
    uint32_t installed = 0;  // version of the routing
    uint32_t install_call = 0;
    uint32_t installing = 0;
    Time install_until = 0;
    std::vector<std::pair<FunctionId, RunId>> runs;
    Time last_news = 0;
  };
  struct ServerLink {
    uint64_t incarnation = 0;  // 0: nobody
    Slot slot = kNowhere;
    bool ready = false;     // recovery has been told of it
    uint32_t restored = 0;  // generation that it has answered for
    std::optional<Message> leave;
    // The call under way.
    uint32_t call = 0;
    Time call_until = 0;
    int tries = 0;
    Message request;
    uint32_t configured = 0;  // generation
    uint32_t save_call = 0;
    Time save_until = 0;
    int save_tries = 0;
  };

  // Membership (coordinator_members.cc).
  void OnRegister(const Message& message);
  void OnHeartbeat(const Message& message);
  void OnLeave(const Message& message);
  void OnDaemonDied(const Message& message);
  void OnConnectionLost(const Message& message);
  void Monitor();
  void WorkerLost(const Member& member);
  void ServerLost(const Member& member, bool may_serve);
  void Replace(uint32_t server);
  void MemberLost(const Member& member, bool may_serve);
  void Install();
  void OnInstalled(const Message& reply);

  // Functions.
  void Feed();
  void Dispatch();
  void StartOn(const StartRun& start);
  void OnStepResult(const Message& message);
  void OnRunEnded(const Message& message);
  void StopRuns();
  uint16_t RecordOf(const BatchRange& range, uint32_t batch) const;
  void CheckDone();

  // Cancelling (coordinator_cancel.cc).
  void UserError();
  void CancelOnWorkers();
  void FenceServers();
  void OnCancelReply(const Message& reply);
  void CheckCancel();
  void FinishCancel();

  // Servers' state (coordinator_servers.cc).
  void TryBegin();  // of a new coordinator
  void Begun();
  void Act(const Recovery::Actions& actions);
  void Act(const CheckpointCommit::Actions& actions);
  void CallServer(uint32_t server, const Message& request);
  void OnServerReply(uint32_t server, const Message& reply);
  void ServerCallFailed(uint32_t server, Recovery::Failure failure);
  void FinishRestores();
  void CheckCalls();
  void TakeCheckpoint();
  void SendSave(uint32_t server);
  void OnSaved(uint32_t server, const Message& reply);
  void OnManifestDue(const Message& timer);
  void NewRouting();
  Message WithContext(Message message) const;
  void Superseded();

  Cluster* const cluster_;
  const Slot slot_;
  const uint32_t expected_servers_;
  uint32_t epoch_ = 0;
  Membership membership_;
  std::unique_ptr<DataLeases> leases_;
  FunctionQueue queue_;
  Recovery recovery_;
  CheckpointCommit commit_;
  UpdateLedger ledger_;
  std::map<WorkerId, Link> links_;
  std::array<ServerLink, kMaxServers> servers_;
  std::map<FunctionId, uint32_t> states_;  // of functions that somebody waits for: results so far

  std::optional<Cancellation> cancel_;  // under way

  bool beginning_ = true;  // the servers have not been brought to one state yet
  bool begin_round_ = false;
  std::array<bool, kMaxServers> begun_{};
  std::array<uint64_t, kMaxServers> held_{};
  uint64_t begin_from_ = 0;
  std::optional<Checkpoint> begin_checkpoint_;  // that one, as it was then
  bool paused_ = false;
  uint32_t generation_ = 0;
  uint32_t routing_ = 0, routing_place_ = 0;
  uint64_t checkpoint_ = 0;  // that is being taken
  uint32_t attempt_ = 0;     // of its saves
  FunctionQueue::Position begun_position_;
  Checkpoint manifest_;
  bool leave_wanted_ = false;  // a checkpoint, for a server that leaves
  uint64_t leave_checkpoint_ = 0;
  Time done_at_ = 0;
  Time leases_out_ = 0;  // of servers that were lost and may still live
  pb::RegisterRequest register_;
  pb::HeartbeatRequest heartbeat_;
};

}  // namespace mu::sim
