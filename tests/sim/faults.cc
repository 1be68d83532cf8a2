// What a history does to the processes and the network.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr Slot kServersEnd = kSlots;
constexpr Slot kWorkersEnd = kFirstServerSlot;
constexpr Time kLongest = 300 * kMillisecond;

Slot OtherSlot(Slot slot) { return slot ^ 1; }

// A bit flips in it.
void Damage(std::shared_ptr<const ServerFile>* file) {
  if (*file == nullptr) return;
  auto damaged = std::make_shared<ServerFile>(**file);
  for (Partition& partition : damaged->partitions) {
    if (partition.effects.empty()) continue;
    partition.effects.back().record ^= 1;
    break;
  }
  *file = std::move(damaged);
}

}  // namespace

void Cluster::StartProcess(Slot slot) {
  Process& process = processes_[slot];
  process.Clear();
  process.alive = true;
  process.incarnation = next_incarnation_++;
  Trace(slot, "starts as incarnation ", process.incarnation);
  if (slot < kCoordinatorSlots) {
    process.coordinator.emplace(this, slot);
    process.coordinator->Start();
  } else if (slot < kWorkersEnd) {
    process.worker.emplace(this, slot, process.incarnation,
                           static_cast<uint8_t>((slot - kFirstWorkerSlot) / 2));
    process.worker->Start();
  } else {
    process.server.emplace(this, slot, process.incarnation,
                           static_cast<uint8_t>((slot - kFirstServerSlot) / 2));
    process.server->Start();
  }
}

void Cluster::StartCoordinator() {
  const Slot slot = processes_[coordinator_slot_].alive || Between(0, 1) == 0
                        ? OtherSlot(coordinator_slot_)
                        : coordinator_slot_;
  if (processes_[slot].alive) Kill(slot);
  coordinator_slot_ = slot;
  StartProcess(slot);
}

void Cluster::Kill(Slot slot) {
  Process& process = processes_[slot];
  if (!process.alive) return;
  Trace(slot, "is killed");
  // A machine that vanishes sends no reset.
  if (slot >= kFirstWorkerSlot && Between(0, 1) == 0) {
    Message news{.incarnation = process.incarnation, .kind = Kind::kConnectionLost, .index = slot};
    news.from = slot;
    for (Slot c = 0; c < kCoordinatorSlots; ++c) {
      news.to = c;
      if (cut_until_[slot][c] <= now_) events_.Add(now_ + Latency(), news);
    }
  }
  if (slot >= kFirstWorkerSlot && scenario_.told_of_deaths) {
    Message news{.incarnation = process.incarnation, .kind = Kind::kDaemonDied, .index = slot};
    news.to = news.from = coordinator_slot_;
    events_.Add(now_ + Between(kMillisecond, 10 * kMillisecond), news);
  }
  process.alive = false;
  exited_.push_back(slot);
}

void Cluster::Exit(Slot slot) {
  Process& process = processes_[slot];
  if (!process.alive) return;
  Trace(slot, "exits");
  process.alive = false;
  exited_.push_back(slot);
  if (slot == coordinator_slot_) {
    events_.Add(now_ + Between(5 * kMillisecond, 50 * kMillisecond),
                {.kind = Kind::kStartCoordinator});
  } else if (slot >= kFirstWorkerSlot) {
    Restart(slot, 5 * kMillisecond, 100 * kMillisecond);
  }
}

// A process may end in the middle of its own handler.
void Cluster::ReapExited() {
  for (const Slot slot : exited_) {
    Process& process = processes_[slot];
    if (process.alive) continue;
    process.coordinator.reset();
    process.worker.reset();
    process.server.reset();
  }
  exited_.clear();
}

void Cluster::Restart(Slot slot, Time least, Time most) {
  // Elsewhere, now and then.
  if (!processes_[OtherSlot(slot)].alive && Between(0, 2) == 0) slot = OtherSlot(slot);
  events_.Add(now_ + Between(least, most), {.kind = Kind::kStartProcess, .to = slot});
}

void Cluster::Cut(Slot a, Slot b, Time until) {
  cut_until_[a][b] = std::max(cut_until_[a][b], until);
  cut_until_[b][a] = std::max(cut_until_[b][a], until);
}

std::optional<Slot> Cluster::PickAlive(Slot first, Slot end) {
  std::array<Slot, kSlots> alive;
  size_t count = 0;
  for (Slot s = first; s < end; ++s) {
    if (processes_[s].alive) alive[count++] = s;
  }
  if (count == 0) return std::nullopt;
  return alive[random_.Below(count)];
}

void Cluster::Strike(Fault fault) {
  seen_.Saw(fault);
  const std::optional<Slot> worker = PickAlive(kFirstWorkerSlot, kWorkersEnd);
  const std::optional<Slot> server = PickAlive(kFirstServerSlot, kServersEnd);
  const Slot coordinator = coordinator_slot_;
  const Time until = now_ + Between(10 * kMillisecond, kLongest);
  Trace(kNowhere, "STRIKE: ", ToString(fault));
  const auto drain = [&](Slot slot) {
    Message drain{.kind = Kind::kDrain};
    SetTimer(slot, 0, drain);
  };
  switch (fault) {
    case Fault::kKillWorker:
      if (!worker) return;
      Kill(*worker);
      return Restart(*worker, 5 * kMillisecond, kLongest);
    case Fault::kKillServer:
      if (!server) return;
      Kill(*server);
      return Restart(*server, 5 * kMillisecond, kLongest);
    case Fault::kKillCoordinator:
      Kill(coordinator);
      return events_.Add(now_ + Between(5 * kMillisecond, 150 * kMillisecond),
                         {.kind = Kind::kStartCoordinator});
    case Fault::kHangWorker:
      if (worker) processes_[*worker].hangs_until = until;
      return;
    case Fault::kHangServer:
      if (server) processes_[*server].hangs_until = until;
      return;
    case Fault::kHangCoordinator:
      processes_[coordinator].hangs_until = until;
      return;
    case Fault::kDrainWorker:
      if (worker) drain(*worker);
      return;
    case Fault::kDrainServer:
      if (server) drain(*server);
      return;
    case Fault::kJoinWorker:
      if (scenario_.workers < kMaxWorkers) {
        StartProcess(static_cast<Slot>(kFirstWorkerSlot + 2 * scenario_.workers++));
      }
      return;
    case Fault::kReplaceServer: {
      if (!server || processes_[OtherSlot(*server)].alive) return;
      for (Slot c = 0; c < kCoordinatorSlots; ++c) Cut(*server, c, until);
      events_.Add(now_ + Between(0, until - now_),
                  {.kind = Kind::kStartProcess, .to = OtherSlot(*server), .copy = true});
      // The cluster manager ends what it has replaced as soon as it can reach it.
      return events_.Add(until, {.kind = Kind::kKillProcess, .to = *server});
    }
    case Fault::kSecondCoordinator:
      return StartCoordinator();
    case Fault::kCutWorker:
      for (Slot c = 0; worker && c < kCoordinatorSlots; ++c) Cut(*worker, c, until);
      return;
    case Fault::kCutServer:
      for (Slot c = 0; server && c < kCoordinatorSlots; ++c) Cut(*server, c, until);
      return;
    case Fault::kCutCoordinator:
      for (Slot s = kFirstWorkerSlot; s < kSlots; ++s) Cut(coordinator, s, until);
      return;
    case Fault::kCutWorkerServer:
      if (worker && server) Cut(*worker, *server, until);
      return;
    case Fault::kUserError:
      return SetTimer(coordinator, 0, {.kind = Kind::kUserError});
    case Fault::kDiskFull:
      ++disk_.full[random_.Below(servers_)];
      return;
    case Fault::kForget:
      if (worker) processes_[*worker].worker->Forget();
      return;
    case Fault::kHangDisk:
      disk_.hangs_until[random_.Below(servers_)] = now_ + Between(kLease, 6 * kLease);
      return;
    case Fault::kNoDisk:
      ++disk_.unreadable[random_.Below(servers_)];
      return;
    case Fault::kResize: {
      Kill(coordinator);
      servers_ = 1 + static_cast<uint32_t>(random_.Below(kMaxServers));
      const bool stay = Between(0, 1) == 0;
      for (Slot s = kFirstServerSlot; s < kServersEnd; ++s) {
        if (!stay || s >= kFirstServerSlot + 2 * servers_) Kill(s);
      }
      for (uint32_t s = 0; s < servers_; ++s) {
        const Slot slot = static_cast<Slot>(kFirstServerSlot + 2 * s);
        if (processes_[slot].alive || processes_[OtherSlot(slot)].alive) continue;
        Restart(slot, 5 * kMillisecond, 100 * kMillisecond);
      }
      return events_.Add(now_ + Between(5 * kMillisecond, 100 * kMillisecond),
                         {.kind = Kind::kStartCoordinator});
    }
    case Fault::kBadFile:
      for (auto it = disk_.checkpoints.rbegin(); it != disk_.checkpoints.rend(); ++it) {
        if (!it->second.committed) continue;
        it->second.damaged = true;
        return Damage(&it->second.files[random_.Below(it->second.servers)]);
      }
      return;
  }
}

}  // namespace mu::sim
