// What a history does to the processes and the network.
#include <algorithm>

#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr Time kLongest = 300 * kMillisecond;
Slot OtherSlot(Slot slot) { return slot ^ 1; }

// Its end is missing.
void Tear(std::shared_ptr<const ServerFile>* file) {
  if (*file == nullptr) return;
  auto torn = std::make_shared<ServerFile>(**file);
  torn->torn = true;
  *file = std::move(torn);
}

// A bit flips in it.
void Damage(std::shared_ptr<const ServerFile>* file) {
  if (*file == nullptr) return;
  auto damaged = std::make_shared<ServerFile>(**file);
  ++damaged->damage;
  for (Partition& partition : damaged->partitions) {
    if (partition.effects.empty()) continue;
    partition.effects.back().record ^= 1;
    break;
  }
  *file = std::move(damaged);
}

}  // namespace

void Cluster::StartProcess(Slot slot) {
  Place& place = places_[slot];
  place = {.alive = true, .incarnation = next_incarnation_++};
  Trace(slot, "starts as incarnation ", place.incarnation);
  if (slot < kCoordinatorSlots) {
    place.process = std::make_unique<Coordinator>(this, slot, place.incarnation);
  } else if (IsWorkerSlot(slot)) {
    place.process = std::make_unique<Worker>(this, slot, place.incarnation);
  } else {
    place.process = std::make_unique<Server>(this, slot, place.incarnation);
  }
  place.process->Start();
}

void Cluster::StartDaemon(Slot slot, bool other_lives) {
  if (slot >= ServerSlot(servers_)) return;  // there are fewer by now
  if (!places_[slot].alive && (other_lives || !places_[OtherSlot(slot)].alive)) StartProcess(slot);
}

void Cluster::StartCoordinator() {
  const Slot slot = places_[coordinator_slot_].alive || Between(0, 1) == 0
                        ? OtherSlot(coordinator_slot_)
                        : coordinator_slot_;
  Kill(slot);
  coordinator_slot_ = slot;
  StartProcess(slot);
}

void Cluster::StartCoordinatorAfter(Time most) {
  Add(Between(5 * kMillisecond, most), {.run = [this] {
        if (!places_[coordinator_slot_].alive) StartCoordinator();
      }});
}

void Cluster::End(Slot slot) {
  places_[slot].alive = false;
  for (Happening& held : std::exchange(places_[slot].held, {})) events_.Add(now_, std::move(held));
  dead_.push_back(std::move(places_[slot].process));  // perhaps in the middle of its own handler
}

void Cluster::TellOfDeath(Slot daemon, Slot slot, Time delay, const char* name,
                          void (Coordinator::*tell)(uint64_t incarnation)) {
  Add(delay, {slot, 0, name, [=, this, incarnation = places_[daemon].incarnation] {
                (At<Coordinator>(slot).*tell)(incarnation);
              }});
}

void Cluster::Kill(Slot slot) {
  if (!places_[slot].alive) return;
  Trace(slot, "is killed");
  if (IsWorkerSlot(slot) && places_[coordinator_slot_].alive)
    At<Coordinator>(coordinator_slot_).WorkerDies(places_[slot].incarnation);
  const bool is_daemon = slot >= kFirstWorkerSlot;
  // A machine that vanishes sends no reset.
  const bool reset = is_daemon && Between(0, 1) == 0;
  for (Slot c = 0; reset && c < kCoordinatorSlots; ++c) {
    if (cut_until_[slot][c] <= now_)
      TellOfDeath(slot, c, Latency(), "connection lost", &Coordinator::OnConnectionLost);
  }
  if (is_daemon && scenario_.told_of_deaths) {
    TellOfDeath(slot, coordinator_slot_, Between(kMillisecond, 10 * kMillisecond), "daemon died",
                &Coordinator::OnDaemonDied);
  }
  End(slot);
}

void Cluster::Exit(Slot slot) {
  if (!places_[slot].alive) return;
  Trace(slot, "exits");
  End(slot);
  if (slot == coordinator_slot_) {
    StartCoordinatorAfter(50 * kMillisecond);
  } else if (slot >= kFirstWorkerSlot) {
    Restart(slot, 100 * kMillisecond);
  }
}

void Cluster::Restart(Slot slot, Time most) {
  // Elsewhere, now and then.
  if (!places_[OtherSlot(slot)].alive && Between(0, 2) == 0) slot = OtherSlot(slot);
  Add(Between(5 * kMillisecond, most), {.run = [=, this] { StartDaemon(slot, false); }});
}

void Cluster::Cut(Slot a, Slot b, Time until) {
  cut_until_[a][b] = std::max(cut_until_[a][b], until);
  cut_until_[b][a] = std::max(cut_until_[b][a], until);
}

void Cluster::CutFromCoordinators(Slot slot, Time until) {
  for (Slot c = 0; c < kCoordinatorSlots; ++c) Cut(slot, c, until);
}

Slot Cluster::PickAlive(Slot first, Slot end) {
  std::array<Slot, kSlots> alive;
  size_t count = 0;
  for (Slot s = first; s < end; ++s) {
    if (places_[s].alive) alive[count++] = s;
  }
  return count == 0 ? kNowhere : alive[random_.Below(count)];
}

void Cluster::Replace(Slot slot, Time until) {
  if (places_[OtherSlot(slot)].alive) return;
  CutFromCoordinators(slot, until);
  Add(Between(0, until - now_), {.run = [=, this] { StartDaemon(OtherSlot(slot), true); }});
  // The cluster manager ends what it has replaced as soon as it can reach it.
  Add(until - now_, {.run = [=, this] {
        if (!places_[OtherSlot(slot)].alive) return;
        Kill(slot);
        Restart(slot, 50 * kMillisecond);
      }});
}

void Cluster::Resize() {
  Kill(coordinator_slot_);
  servers_ = 1 + static_cast<uint32_t>(random_.Below(kMaxServers));
  const bool stay = Between(0, 1) == 0;
  for (Slot s = kFirstServerSlot; s < kSlots; ++s) {
    if (!stay || s >= ServerSlot(servers_)) Kill(s);
  }
  for (uint32_t s = 0; s < servers_; ++s) {
    const Slot slot = ServerSlot(s);
    if (!places_[slot].alive && !places_[OtherSlot(slot)].alive) Restart(slot, 100 * kMillisecond);
  }
  StartCoordinatorAfter(100 * kMillisecond);
}

void Cluster::ChangeRounds() {
  if (scenario_.replicas == 0) return;
  const bool stops = rules_.on() && Between(0, 2) == 0;
  rules_ = {};
  if (!stops) {
    rules_.replicas = static_cast<uint32_t>(Between(1, 4));
    rules_.backups = static_cast<uint32_t>(Between(0, 2));
  }
  truth_.RoundsChange(rules_.replicas);
  Add(0, {coordinator_slot_, 0, "change rounds",
          [this, slot = coordinator_slot_] { At<Coordinator>(slot).ChangeRounds(); }});
}

Checkpoint* Cluster::NewestCheckpoint() {
  for (auto it = disk_.checkpoints.rbegin(); it != disk_.checkpoints.rend(); ++it) {
    if (it->second.committed) return &it->second;
  }
  return nullptr;
}

void Cluster::Strike(Fault fault) {
  seen().Saw(fault);
  Trace(kNowhere, "STRIKE: ", ToString(fault));
  const Slot worker = PickAlive(kFirstWorkerSlot, kFirstServerSlot);
  const Slot server = PickAlive(kFirstServerSlot, kSlots);
  const Slot victim = fault <= Fault::kForget       ? worker
                      : fault <= Fault::kDeafServer ? server
                                                    : coordinator_slot_;
  const Time until = now_ + Between(10 * kMillisecond, kLongest);
  if (victim == kNowhere) return;
  Place& place = places_[victim];
  switch (fault) {
    case Fault::kKillWorker:
    case Fault::kKillServer:
      Kill(victim);
      return Restart(victim, scenario_.slow_replacements ? 6 * kLease : kLongest);
    case Fault::kKillCoordinator:
      Kill(victim);
      return StartCoordinatorAfter(150 * kMillisecond);
    case Fault::kHangWorker:
    case Fault::kHangServer:
    case Fault::kHangCoordinator:
      place.hangs_until = until;
      return;
    case Fault::kDrainWorker:
    case Fault::kDrainServer:
      return Add(0,
                 {victim, place.incarnation, "SIGTERM", [=, this] { At<Daemon>(victim).Drain(); }});
    case Fault::kJoinWorker:
      if (scenario_.workers < kMaxWorkers) StartProcess(WorkerSlot(scenario_.workers++));
      return;
    case Fault::kReplaceWorker:
    case Fault::kReplaceServer:
      return Replace(victim, until);
    case Fault::kSecondCoordinator:
      return StartCoordinator();
    case Fault::kCutWorker:
    case Fault::kCutServer:
      return CutFromCoordinators(victim, until);
    case Fault::kCutCoordinator:
      for (Slot s = kFirstWorkerSlot; s < kSlots; ++s) Cut(victim, s, until);
      return;
    case Fault::kCutWorkerServer:
      if (server != kNowhere) Cut(worker, server, until);
      return;
    case Fault::kCancel:
      return Add(0, {victim, 0, "cancel", [=, this] { At<Coordinator>(victim).Cancel(); }});
    case Fault::kUserError:
      return Add(0,
                 {victim, 0, "user's error", [=, this] { At<Coordinator>(victim).UserError(); }});
    case Fault::kChangeRounds:
      return ChangeRounds();
    case Fault::kStranger:
      return CallAsStranger();
    case Fault::kClose:
      return Add(0, {victim, 0, "ends by itself", [=, this] { At<Coordinator>(victim).Close(); }});
    case Fault::kUserRestore:
      return Add(0, {victim, 0, "restore", [=, this] { At<Coordinator>(victim).UserRestore(); }});
    case Fault::kBadFunction:
      return Add(0,
                 {victim, 0, "bad function", [=, this] { At<Coordinator>(victim).BadFunction(); }});
    case Fault::kForget:
      return Add(0, {victim, place.incarnation, "forgets what was installed",
                     [=, this] { At<Worker>(victim).Forget(); }});
    case Fault::kNoData:
      no_data_until_[victim] = until;
      return;
    case Fault::kGarbage:
      return At<Worker>(victim).Garble();
    case Fault::kDeafServer:
      place.deaf_until = until;
      return;
    case Fault::kDiskFull:
      ++disk_.full[random_.Below(servers_)];
      return;
    case Fault::kHangDisk:
      disk_.hangs_until[random_.Below(servers_)] = now_ + Between(kLease, 6 * kLease);
      return;
    case Fault::kNoDisk:
      ++disk_.unreadable[random_.Below(servers_)];
      return;
    case Fault::kResize:
      return Resize();
    case Fault::kNoManifest:
      ++disk_.no_manifest;
      return;
    case Fault::kRenamed:
      ++disk_.renamed;
      return;
    case Fault::kBadManifest:
      if (Checkpoint* const newest = NewestCheckpoint(); newest != nullptr)
        newest->bad_manifest = true;
      return;
    case Fault::kShutFolder:
      disk_.shut_until = std::max(disk_.shut_until, until);
      return;
    case Fault::kBadFile:
    case Fault::kLostFile:
    case Fault::kTornFile:
      if (Checkpoint* const newest = NewestCheckpoint(); newest != nullptr) {
        auto& file = newest->files[random_.Below(newest->servers)];
        if (fault == Fault::kBadFile) return Damage(&file);
        fault == Fault::kTornFile ? Tear(&file) : file.reset();
      }
      return;
  }
}

}  // namespace mu::sim
