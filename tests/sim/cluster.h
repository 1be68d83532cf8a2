// A whole cluster in one thread and in virtual time: processes, the network between them, the disk,
// and what a history does to them. One seed and scenario give one history, event by event.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/env/clock.h"
#include "tests/sim/coordinator.h"
#include "tests/sim/coverage.h"
#include "tests/sim/disk.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/message.h"
#include "tests/sim/scenario.h"
#include "tests/sim/server.h"
#include "tests/sim/truth.h"
#include "tests/sim/worker.h"

namespace mu::sim {

inline constexpr uint64_t kJob = 7;
inline constexpr Time kHeartbeatEvery = 40 * kMillisecond;
inline constexpr Time kMonitorEvery = 15 * kMillisecond;
inline constexpr Time kBackupAfter = 60 * kMillisecond;  // without a result
inline constexpr Time kLease = 150 * kMillisecond;       // without a heartbeat a daemon is lost
inline constexpr Time kCallTimeout = 60 * kMillisecond;

struct Outcome {
  bool ok = true;
  std::string problem;
  uint64_t events = 0;
  Time ended = 0;
  Seen seen;
  std::string trace;
};

// Not thread safe; used for one history after the other.
class Cluster {
 public:
  Cluster() : clock_(this) {}
  Outcome Run(uint64_t seed, const Scenario& scenario, bool trace = false);

  // For the processes.
  Time now() const { return now_; }
  Clock* clock() { return &clock_; }
  const Scenario& scenario() const { return scenario_; }
  uint32_t servers() const { return servers_; }  // how many there ought to be
  Disk& disk() { return disk_; }
  Truth& truth() { return truth_; }
  Seen& seen() { return seen_; }
  Time Between(Time low, Time high) {
    return low + static_cast<Time>(random_.Below(static_cast<uint64_t>(high - low + 1)));
  }
  bool PerMille(uint32_t chance) { return chance > 0 && random_.Below(1000) < chance; }
  uint32_t NextCall() { return ++next_call_; }
  Slot coordinator_slot() const { return coordinator_slot_; }  // where daemons look for it

  // From message.from to message.to, as the network pleases. kStepResult and kRunEnded of one run
  // arrive in order or the run's caller gets a kRunEnded of kMachine.
  void Send(Message message);
  void Reply(const Message& request, Message reply);
  void SetTimer(Slot slot, Time delay, Message message);
  void Exit(Slot slot);  // the process ends by itself
  uint32_t AddRouting(const Routing& routing) {
    routings_.push_back(routing);
    return static_cast<uint32_t>(routings_.size() - 1);
  }
  const Routing& RoutingAt(uint32_t place) const { return routings_[place]; }
  void WriteFile(const Message& save, uint8_t server, std::shared_ptr<const ServerFile> file);
  // Of the process that is there, whatever the coordinator knows: a registration may come late.
  uint64_t IncarnationAt(Slot slot) const {
    return slot == kNowhere ? 0 : processes_[slot].incarnation;
  }
  const Partitions* PartitionsOf(Slot slot) const {  // null: nobody is there
    return processes_[slot].server ? &processes_[slot].server->partitions() : nullptr;
  }
  bool FilesAreGood(uint64_t checkpoint) const;
  // The coordinator in this slot has done all its work.
  void JobDone(Slot slot);
  template <typename... Args>
  void Trace(Slot slot, const Args&... args) {
    if (trace_) Write(slot, absl::StrCat(args...));
  }

 private:
  class VirtualClock final : public Clock {
   public:
    explicit VirtualClock(const Cluster* cluster) : cluster_(cluster) {}
    int64_t Now() const override { return cluster_->now_; }

   private:
    const Cluster* const cluster_;
  };
  struct Process {
    bool alive = false;
    uint64_t incarnation = 0;
    Time hangs_until = 0;
    std::optional<Coordinator> coordinator;
    std::optional<Worker> worker;
    std::optional<Server> server;
    void Clear() {
      alive = false;
      incarnation = 0;
      hangs_until = 0;
      coordinator.reset();
      worker.reset();
      server.reset();
    }
  };

  void StartProcess(Slot slot);
  void StartCoordinator();
  void Kill(Slot slot);
  void Strike(Fault fault);
  void Restart(Slot slot, Time least, Time most);
  void Cut(Slot a, Slot b, Time until);
  std::optional<Slot> PickAlive(Slot first, Slot end);
  void Deliver(const Message& message);
  void Dispatch(Process& process, const Message& message);
  void ReapExited();
  Time Latency();
  void Write(Slot slot, const std::string& text);
  std::string NameOf(Slot slot) const;

  VirtualClock clock_;
  Scenario scenario_;
  SplitMix random_{0};
  Time now_ = 0;
  uint32_t servers_ = 1;
  Time calm_ = 0;  // from then on nothing fails any more
  uint64_t next_incarnation_ = 1;
  uint32_t next_call_ = 0;
  Slot coordinator_slot_ = 0;
  bool done_ = false;
  bool trace_ = false;
  std::string text_;
  EventQueue events_;
  std::vector<Slot> exited_;
  std::vector<Routing> routings_;
  Disk disk_;
  Truth truth_;
  Seen seen_;
  std::array<Process, kSlots> processes_;
  std::array<std::array<Time, kSlots>, kSlots> cut_until_{};
  std::array<std::array<Time, kSlots>, kSlots>
      stream_last_{};  // streams between two processes are in order
};

}  // namespace mu::sim
