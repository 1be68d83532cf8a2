// A parameter server of the simulation: the product's core around partitions whose contents are the
// list of what was applied to them. It decides nothing; psserver/server*.cc is the other shell.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "psserver/core/server_core.h"
#include "tests/sim/coverage.h"
#include "tests/sim/daemon.h"
#include "tests/sim/disk.h"
#include "tests/sim/message.h"

namespace mu::sim {

class Cluster;

class Server {
 public:
  Server(Cluster* cluster, Slot slot, uint64_t incarnation, uint8_t index);

  void Start() { daemon_.Start(); }
  void Handle(const Message& message);
  void Drain() { daemon_.Leave(); }

  const Partitions& partitions() const { return partitions_; }
  uint8_t index() const { return index_; }
  // Entries of all that it remembers of pushes.
  size_t remembered() const;

 private:
  struct Work {  // a push that was admitted
    uint32_t id;
    Message request;
    AdmittedPush push;
  };
  struct Restoring {
    Message request;
    bool started = false;
    bool Reads() const { return started && !request.keep_state && request.checkpoint != 0; }
  };
  using Waiting = std::vector<std::pair<PsCallId, Message>>;

  void OnMembership(const Message& reply, Time sent);
  void Pull(const Message& request);
  void Configure(const Message& request);
  void Push(const Message& request);
  void Apply(uint32_t id);
  void Applied(uint32_t id);
  void EndPush(std::list<Work>::iterator work, const absl::Status& status);
  void Acknowledge(const Message& request, const PushAnswer& answer);
  void Fence(const Message& request);
  void Save(PsCallId call, const Message& request, SaveLine::Turn turn);
  void Prepared();
  void TakeCut();
  void Written();
  void EndSave(const SaveLine::Result& result);
  void ReplyToSave(const Message& request, const SaveLine::Result& result);
  void Restore(const Message& request, bool verified);
  void Verified(uint32_t id);
  void Loaded();
  absl::Status CheckFiles(const Message& request);
  absl::Status Load(const Message& request, InheritedMemory* memory);
  // True if the timer's work has to wait for the disk.
  bool DiskHangs(const Message& timer);
  bool Moving() const;  // it reads or writes files
  // What waits for something that has ended.
  void GoOn();
  std::list<Work>::iterator Find(uint32_t id);
  uint32_t HeldPartitions() const;
  uint64_t Updates() const;  // that its state holds
  void Refuse(const Message& request, const absl::Status& status);
  Time Now() const;
  void Saw(ServerStep step);
  const pb::RequestContext& Context(const Message& request);

  Cluster* const cluster_;
  const Slot slot_;
  const uint64_t incarnation_;
  const uint8_t index_;
  Daemon daemon_;
  ServerCore core_;
  Partitions partitions_;
  uint8_t placement_ = 0;  // among how many servers; 0: not configured
  uint32_t last_call_ = 0;
  std::list<Work> work_;
  std::vector<uint32_t> at_gate_;  // pushes that wait for a cut
  Waiting waiting_pushes_, waiting_saves_;
  std::vector<Message> fences_;
  std::optional<Message> saving_;
  bool cut_wanted_ = false;
  std::shared_ptr<const ServerFile> file_;
  std::vector<std::pair<uint32_t, Message>> verifying_;
  std::optional<Restoring> restoring_;
  uint32_t moved_ = 0;  // pieces of work with files that it has begun
  pb::RequestContext context_;
};

}  // namespace mu::sim
