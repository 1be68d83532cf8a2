// A whole cluster in one thread and in virtual time: processes, the network between them, the disk,
// and what a history does to them. One seed and scenario give one history, event by event.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/hash.h"
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

struct Outcome {
  bool ok() const { return problem.empty(); }
  std::string problem;
  uint64_t events = 0;
  Time ended = 0;
  Seen seen;
  std::string trace;
};

// Of one history. Not thread safe.
class Cluster {
 public:
  Cluster(uint64_t seed, const Scenario& scenario, bool trace);
  Outcome Run();

  // For the processes.
  Time now() const { return now_; }
  const Scenario& scenario() const { return scenario_; }
  uint32_t servers() const { return servers_; }       // how many there ought to be
  const RoundRules& rules() const { return rules_; }  // that the user wants
  Disk& disk() { return disk_; }
  Truth& truth() { return truth_; }
  Seen& seen() { return outcome_.seen; }
  Time Between(Time low, Time high) {
    return low + static_cast<Time>(random_.Below(static_cast<uint64_t>(high - low + 1)));
  }
  bool failing() const { return now_ < calm_; }
  // On this node.
  bool HasData(Slot slot) const { return now_ >= no_data_until_[slot]; }
  bool PerMille(uint32_t chance) { return chance > 0 && random_.Below(1000) < chance; }
  uint32_t NextCall() { return ++next_call_; }
  Slot coordinator_slot() const { return coordinator_slot_; }  // where daemons look for it

  // From message.from to message.to, as the network pleases. What travels on a connection of a
  // stream (IsFeed) arrives in order; when one is lost, so are all that follow it, and both ends
  // get a kFeedBroken.
  void Send(Message message);
  void Reply(const Message& request, Message reply);
  void Add(Time delay, Timer timer) { events_.Add(now_ + delay, std::move(timer)); }
  void Exit(Slot slot);  // the process ends by itself
  uint32_t AddRouting(const Routing& routing) {
    routings_.push_back(routing);
    return static_cast<uint32_t>(routings_.size() - 1);
  }
  const Routing& RoutingAt(uint32_t place) const { return routings_[place]; }
  uint32_t AddRound(const RoundSet& set) {
    rounds_.push_back(set);
    return static_cast<uint32_t>(rounds_.size() - 1);
  }
  const RoundSet& RoundAt(uint32_t place) const { return rounds_[place]; }
  // Of the process that is there, whatever the coordinator knows: a registration may come late.
  uint64_t IncarnationAt(Slot slot) const {
    return slot == kNowhere ? 0 : places_[slot].incarnation;
  }
  const Partitions* PartitionsOf(const Message& answer) const {  // null: its server is gone
    const bool there = IncarnationAt(answer.from) == answer.from_incarnation;
    return there && places_[answer.from].alive ? &At<Server>(answer.from).partitions() : nullptr;
  }
  // False if the process that is there is this one, and has not loaded the view.
  bool HasView(Slot slot, uint64_t incarnation, uint64_t view) const {
    const bool there =
        slot != kNowhere && places_[slot].alive && places_[slot].incarnation == incarnation;
    return !there || At<Server>(slot).HasView(view);
  }
  // The coordinator in this slot has done all its work.
  void JobDone(Slot slot);
  template <typename... Args>
  void Trace(Slot slot, const Args&... args) {
    if (trace_) Write(slot, absl::StrCat(args...));
  }

 private:
  struct Place {
    std::unique_ptr<Process> process;  // dead ones stay until their handler has returned
    bool alive = false;
    uint64_t incarnation = 0;
    Time hangs_until = 0;
    std::vector<Happening> held = {};  // since it hangs, in the order in which they came
    Time deaf_until = 0;
  };
  template <typename Role>
  Role& At(Slot slot) const {
    return static_cast<Role&>(*places_[slot].process);
  }

  void StartProcess(Slot slot);
  // A cluster manager runs one daemon of an index, unless it takes the other one for dead.
  void StartDaemon(Slot slot, bool other_lives);
  void StartCoordinator();
  void StartCoordinatorAfter(Time most);
  void End(Slot slot);
  void Kill(Slot slot);
  // To the coordinator in `slot`: this daemon is dead, or its connections broke.
  void TellOfDeath(Slot daemon, Slot slot, Time delay, const char* name,
                   void (Coordinator::*tell)(uint64_t incarnation));
  void Strike(Fault fault);
  // Another job's coordinator calls a daemon, and is to be refused.
  void CallAsStranger();
  void CheckRefusal(const Message& answer);
  void Replace(Slot slot, Time until);
  void Resize();
  void ChangeRounds();
  Checkpoint* NewestCheckpoint();
  void Restart(Slot slot, Time most);
  void Cut(Slot a, Slot b, Time until);
  void CutFromCoordinators(Slot slot, Time until);
  Slot PickAlive(Slot first, Slot end);  // kNowhere: nobody
  void Happen(Happening happening);
  // A process hangs no longer, perhaps.
  void Wake(Slot slot);
  void Bounce(const Message& message);  // nobody is there
  void SendOnStream(Message message);
  // Of the connection of this message, however it comes.
  void Break(const Message& message);
  // False: it is lost with its connection.
  bool Arrives(const Message& message);
  Time Latency() { return Between(100 * kMicrosecond, 900 * kMicrosecond); }
  void Write(Slot slot, const std::string& text);

  Scenario scenario_;
  const bool trace_;
  SplitMix random_;
  Time now_ = 0;
  uint32_t servers_;
  RoundRules rules_;
  Time calm_ = 0;  // from then on nothing fails any more
  uint64_t next_incarnation_ = 1;
  uint32_t next_call_ = 0;
  Slot coordinator_slot_ = 0;
  bool done_ = false;
  EventQueue events_;
  std::vector<std::unique_ptr<Process>> dead_;
  std::vector<Routing> routings_;
  std::vector<RoundSet> rounds_;
  Disk disk_;
  Truth truth_;
  Outcome outcome_;
  std::array<Place, kSlots> places_;
  std::array<std::array<Time, kSlots>, kSlots> cut_until_{};
  std::array<Time, kSlots> no_data_until_{};
  struct Connection {
    bool up = true;
    Time last[2] = {0, 0};          // arrivals, from the coordinator and to it
    bool lost[2] = {false, false};  // what still comes of a broken one
  };
  std::map<uint32_t, Connection> connections_;  // of streams
};

}  // namespace mu::sim
