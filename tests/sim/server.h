// A parameter server of the simulation: the product's core around partitions whose contents are the
// list of what was applied to them. It decides nothing; psserver/server*.cc is the other shell.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "psserver/core/server_core.h"
#include "tests/sim/daemon.h"
#include "tests/sim/disk.h"
#include "tests/sim/message.h"

namespace mu::sim {

class Server final : public Daemon {
 public:
  Server(Cluster* cluster, Slot slot, uint64_t incarnation);

  const Partitions& partitions() const { return partitions_; }
  bool HasView(uint64_t view) const;
  // Entries of all that it remembers of pushes.
  size_t remembered() const;

 private:
  struct Work {  // a push that was admitted
    Message request;
    AdmittedPush push;
  };
  using Admitted = std::list<Work>::iterator;
  struct Kept {  // a contribution to a round
    Message message;
    AdmittedPush push;
  };
  using Waiting = std::vector<std::pair<PsCallId, Message>>;

  void FillHeartbeat(Message* call) const override;
  void OnMember(const Message& reply, Time sent) override;
  void HandleRequest(const Message& request) override;
  void AfterAll() override;
  void Pull(const Message& request);
  absl::Status Configure(const Message& request);
  void Push(const Message& request);
  void Contribute(const Message& request);
  void CommitRound(const Message& request);
  void ApplyRound(const Message& request, const RoundTurn& turn);
  const Partition* FirstHeld() const;  // null: it holds none
  uint32_t Version() const;            // how many steps its state has
  // With this round, which was applied last, its state has all records of an epoch.
  bool EndsAnEpoch(uint64_t round) const;
  void Apply(Admitted work);
  void EndPush(Admitted work, const absl::Status& status);
  void Acknowledge(const Message& request, const PushAnswer& answer);
  void AcknowledgeWaiting(const PushEnded& ended);
  void Fence(const Message& request);
  void Save(PsCallId call, const Message& request, SaveLine::Turn turn);
  void Prepared();
  void TakeCut();
  void Written();
  void EndSave(const SaveLine::Result& result);
  void Restore(const Message& request, bool verified);
  void Verified(const Message& request);
  void Loaded();
  absl::Status CannotSee(const char* why);  // as one that cannot read what others may
  absl::Status CheckFiles(const Message& request);
  absl::Status Load(const Message& request, InheritedMemory* memory);
  // Views (server_views.cc).
  void LoadView(const Message& request);
  void ViewLoaded(const Message& request, const ViewTable::Load& load);
  void DropView(const Message& request);
  void AskForViewsAgain();
  void PullView(const Message& request);
  // Reads or writes files, as soon as the disk does.
  void AfterFiles(Time delay, const char* name, std::function<void()> run);
  void WhenDiskMoves(const char* name, const std::function<void()>& run);
  template <typename Visit>
  void ForEachHeld(const Visit& visit) {
    for (uint32_t p = 0; p < partitions_.size(); ++p) {
      if (partitions_[p].held) visit(p, partitions_[p]);
    }
  }
  uint64_t Updates();  // that its state holds

  ServerCore core_;
  uint64_t begun_ = 0, applied_ = 0;  // updates of this process
  Partitions partitions_;
  std::map<uint64_t, Partitions> views_;
  std::vector<Message> waiting_views_;  // for another one that loads
  uint8_t placement_ = 0;               // among how many servers; 0: not configured
  uint32_t last_call_ = 0;
  std::list<Work> work_;
  std::vector<Admitted> at_gate_;  // that wait for a cut
  Waiting waiting_pushes_, waiting_saves_;
  std::set<std::pair<uint64_t, PushId>> checking_;  // contributions, each with its round
  std::vector<Message> fences_, rounds_;            // that wait
  std::optional<Message> saving_;
  bool cut_wanted_ = false;
  std::shared_ptr<const ServerFile> file_;
  std::optional<Message> restoring_;
  bool loading_ = false, is_here_ = false;  // what is being restored
  uint32_t moving_ = 0, moved_ = 0;         // pieces of work with files: under way, begun
};

}  // namespace mu::sim
