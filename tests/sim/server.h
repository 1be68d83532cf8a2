// A parameter server of the simulation: the product's rules of admission, leases and memory of
// applied pushes around partitions whose contents are the list of what was applied to them. It
// follows psserver/server.cc step by step.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "common/env/clock.h"
#include "psserver/admission.h"
#include "psserver/store/inherited_memory.h"
#include "psserver/store/ledger.h"
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
  size_t remembered() const { return ledger_.entries() + inherited_.entries(); }
  bool serving(uint32_t generation) const { return configured_ && generation_ == generation; }

 private:
  // Which partitions had a push in the state that was restored, as it was when the push came: the
  // memory of that may be given up while the push is being applied.
  using Held = std::array<bool, kMaxPartitions>;
  struct Work {  // a push that has been admitted and is being applied, and those who wait for its
                 // end
    Message request;
    Admission::Ticket ticket;
    Held held;
    std::vector<std::pair<Message, Held>> waiting;
  };

  void OnMembership(const Message& reply, Time sent);
  void Pull(const Message& request);
  void Push(const Message& request);
  void Apply(uint32_t call);
  void Finish(Work& work);
  Held Inherited(const Message& push) const;
  void Acknowledge(const Message& request, const Held& held, bool repeated);
  void Save(const Message& request);
  void Written();
  void Restore(const Message& request);
  void Fence(const Message& request);
  void Loaded(const Message& timer);
  void Configure(const Message& request);
  void Load(const Message& request);
  void RaiseLowWater(uint64_t function);
  uint64_t Updates() const;  // that its state holds
  void Refuse(const Message& request, const absl::Status& status);
  const pb::RequestContext& Context(const Message& request);

  Cluster* const cluster_;
  const Slot slot_;
  const uint64_t incarnation_;
  const uint8_t index_;
  Daemon daemon_;
  Admission admission_;
  Ledger ledger_;
  InheritedMemory inherited_;
  Partitions partitions_;
  bool dirty_ = false;
  bool configured_ = false;
  uint8_t placement_ = 0;  // among how many servers
  uint32_t configured_epoch_ = 0;
  uint32_t generation_ = 0, epoch_ = 0;
  std::list<Work> work_;
  std::optional<Message> saving_;
  bool saving_cancelled_ = false;
  std::shared_ptr<const ServerFile> file_;
  std::vector<Message> waiting_saves_;
  uint32_t saved_attempt_ = 0;  // the last that succeeded
  uint64_t saved_updates_ = 0;
  std::optional<Message> restoring_;
  pb::RequestContext context_;
};

}  // namespace mu::sim
