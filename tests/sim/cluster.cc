#include "tests/sim/cluster.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/core/protections.h"
#include "psserver/core/protections.h"
#include "worker/core/protections.h"

namespace mu::sim {
namespace {

// From the last strike on everything must be well again within this time.
constexpr Time kProgressBound = 6000 * kMillisecond;
constexpr Time kTroubleLasts = 350 * kMillisecond;  // the longest cut, hang or absence

bool IsCall(Kind kind) { return kind >= Kind::kRegister && kind <= Kind::kInstall; }
bool IsStream(Kind kind) { return kind == Kind::kStepResult || kind == Kind::kRunEnded; }

}  // namespace

Time Cluster::Latency() { return Between(100 * kMicrosecond, 900 * kMicrosecond); }

void Cluster::SetTimer(Slot slot, Time delay, Message message) {
  message.from = message.to = slot;
  message.to_incarnation = processes_[slot].incarnation;
  events_.Add(now_ + delay, message);
}

void Cluster::Send(Message message) {
  if (message.to == kNowhere) return;  // nobody is there: the caller's time runs out
  message.sent = now_;
  message.from_incarnation = processes_[message.from].incarnation;
  Time at = now_ + Latency();
  const bool stream = IsStream(message.kind);
  const bool failing = now_ < calm_;
  if (const Time until = cut_until_[message.from][message.to]; until > now_) {
    // What is not given up arrives when the network is whole again.
    if (!stream && message.kind != Kind::kRun && Between(0, 1) == 0)
      return Trace(message.from, "lost on a cut to ", NameOf(message.to), ": ",
                   int{static_cast<int>(message.kind)});
    at = until + Latency();
  } else if (failing && PerMille(scenario_.per_mille_slow)) {
    at += Between(kMillisecond, 80 * kMillisecond);
  }
  if (failing && PerMille(stream || message.kind == Kind::kReply ? scenario_.per_mille_reply_lost
                                                                 : scenario_.per_mille_lost)) {
    Trace(message.from, "lost: ", int{static_cast<int>(message.kind)});
    // A stream breaks, and both ends notice.
    if (stream) {
      Message gone = message;
      gone.kind = Kind::kCancelRun;
      std::swap(gone.from, gone.to);
      std::swap(gone.from_incarnation, gone.to_incarnation);
      events_.Add(now_ + Latency(), gone);
      message.kind = Kind::kRunEnded;
      message.code = Code::kMachine;
    } else if (message.kind == Kind::kRun) {
      message.to_incarnation = message.from_incarnation;
      std::swap(message.from, message.to);
      message.kind = Kind::kRunEnded;
      message.code = Code::kMachine;
    } else {
      return;
    }
  }
  if (IsStream(message.kind)) {
    Time& last = stream_last_[message.from][message.to];
    last = at = std::max(at, last + 1);
  } else if (failing && message.kind != Kind::kReply && PerMille(scenario_.per_mille_repeated)) {
    Message second = message;
    second.copy = true;
    events_.Add(now_ + Latency() + Between(0, 20 * kMillisecond), second);
  }
  events_.Add(at, message);
}

void Cluster::Reply(const Message& request, Message reply) {
  if (request.copy) return;
  reply.kind = Kind::kReply;
  reply.request = request.kind;
  reply.from = request.to;
  reply.to = request.from;
  reply.to_incarnation = request.from_incarnation;
  reply.call = request.call;
  reply.server = request.server;
  Send(reply);
}

void Cluster::Deliver(const Message& message) {
  Process& process = processes_[message.to];
  if (!process.alive ||
      (message.to_incarnation != 0 && message.to_incarnation != process.incarnation)) {
    if (process.alive || message.copy) return;
    // The connection is refused.
    if (IsCall(message.kind)) {
      events_.Add(now_ + Latency(), [&] {
        Message reply{.kind = Kind::kReply, .request = message.kind, .code = Code::kMachine};
        reply.from = message.to;
        reply.to = message.from;
        reply.to_incarnation = message.from_incarnation;
        reply.call = message.call;
        reply.server = message.server;
        return reply;
      }());
    } else if (message.kind == Kind::kRun) {
      Message ended = message;
      ended.kind = Kind::kRunEnded;
      ended.code = Code::kMachine;
      ended.to_incarnation = message.from_incarnation;
      std::swap(ended.from, ended.to);
      events_.Add(now_ + Latency(), ended);
    }
    return;
  }
  if (process.hangs_until > now_) {
    // In the order in which they came.
    Trace(message.to, "hangs");
    events_.Add(process.hangs_until, message);
    return;
  }
  Dispatch(process, message);
}

void Cluster::Dispatch(Process& process, const Message& message) {
  if (trace_ && message.kind != Kind::kTick && message.request != Kind::kHeartbeat &&
      message.kind != Kind::kHeartbeat) {
    Write(message.to, absl::StrCat("< ", NameOf(message.from), " ", KindName(message)));
  }
  if (process.coordinator) return process.coordinator->Handle(message);
  if (process.worker) {
    if (message.kind == Kind::kDrain) return process.worker->Drain();
    return process.worker->Handle(message);
  }
  if (process.server) {
    if (message.kind == Kind::kDrain) return process.server->Drain();
    return process.server->Handle(message);
  }
}

void Cluster::WriteFile(const Message& save, uint8_t server,
                        std::shared_ptr<const ServerFile> file) {
  const auto it = disk_.checkpoints.find(save.checkpoint);
  if (it == disk_.checkpoints.end() || it->second.committed) return;
  it->second.checksums[server] = ChecksumOf(*file);
  it->second.files[server] = std::move(file);
}

bool Cluster::FilesAreGood(uint64_t number) const {
  const auto it = disk_.checkpoints.find(number);
  if (it == disk_.checkpoints.end() || !it->second.committed || it->second.damaged) return false;
  for (uint8_t f = 0; f < it->second.servers; ++f) {
    if (it->second.files[f] == nullptr) return false;
  }
  return true;
}

void Cluster::JobDone(Slot slot) {
  if (slot != coordinator_slot_) return Exit(slot);
  const Coordinator& coordinator = *processes_[slot].coordinator;
  std::array<const Partitions*, kMaxServers> state{};
  for (Slot s = kFirstServerSlot; s < kSlots; ++s) {
    const Process& process = processes_[s];
    if (!process.alive || !process.server) continue;
    const uint8_t index = process.server->index();
    if (process.incarnation != coordinator.incarnation_of_server(index)) continue;
    state[index] = &process.server->partitions();
    if (process.server->remembered() == 0) continue;
    // Heartbeats bring the low-water mark, some time.
    if (now_ < calm_ + 3 * kLease) return;
    truth_.Fail(absl::StrCat("server ", index, " remembers ", process.server->remembered(),
                             " pushes of finished functions"));
  }
  for (uint32_t s = 0; s < servers_; ++s) {
    if (state[s] == nullptr) return;  // lost a moment ago
  }
  done_ = true;
  coordinator.CheckMemory();
  truth_.CheckState(state, servers_, coordinator.rolled_back());
}

Outcome Cluster::Run(uint64_t seed, const Scenario& scenario, bool trace) {
  scenario_ = scenario;
  const Broken& broken = scenario.broken;
  core::broken = {.requeueing = broken.requeueing,
                  .low_water_high = broken.low_water_high,
                  .low_water_stuck = broken.low_water_stuck,
                  .commit_after_fence = broken.commit_after_fence,
                  .cancel_below_mark = broken.cancel_below_mark,
                  .late_position = broken.late_position,
                  .not_reinstalled = broken.not_reinstalled,
                  .mixed_load = broken.mixed_load};
  worker_core::broken = {.fencing = broken.fencing,
                         .resumed_early = broken.resumed_early,
                         .resumed_late = broken.resumed_late,
                         .old_routing = broken.old_routing,
                         .results_kept = broken.results_kept,
                         .generation_of_now = broken.generation_of_now,
                         .early_cancel = broken.early_cancel,
                         .any_order = broken.any_order,
                         .late_install = broken.late_install};
  server_core::broken = {.deduplication = broken.deduplication,
                         .inheritance = broken.inheritance,
                         .fencing = broken.fencing,
                         .leases = broken.leases,
                         .late_fences = broken.late_fences,
                         .old_generations = broken.old_generations,
                         .checksums = broken.checksums};
  random_ = SplitMix(HashCombine(seed, 0x72756e));
  servers_ = scenario.servers;
  now_ = 0;
  next_incarnation_ = 1;
  next_call_ = 0;
  coordinator_slot_ = 0;
  done_ = false;
  trace_ = trace;
  text_.clear();
  events_.Clear();
  routings_.clear();
  disk_.Clear();
  truth_.Begin(&scenario_);
  seen_ = {};
  for (Process& process : processes_) process.Clear();
  for (auto& row : cut_until_) row.fill(0);
  for (auto& row : stream_last_) row.fill(0);
  calm_ = 0;
  for (const auto& strike : scenario_.strikes) {
    calm_ = std::max(calm_, strike.at + kTroubleLasts);
    events_.Add(strike.at, {.kind = Kind::kStrike, .index = static_cast<uint8_t>(strike.fault)});
  }
  if (scenario_.per_mille_lost + scenario_.per_mille_reply_lost + scenario_.per_mille_repeated +
          scenario_.per_mille_slow >
      0) {
    calm_ = std::max(calm_, 1500 * kMillisecond);
  }
  StartProcess(0);
  for (uint32_t w = 0; w < scenario_.workers; ++w)
    StartProcess(static_cast<Slot>(kFirstWorkerSlot + 2 * w));
  for (uint32_t s = 0; s < scenario_.servers; ++s)
    StartProcess(static_cast<Slot>(kFirstServerSlot + 2 * s));

  Outcome outcome;
  while (!done_ && !truth_.failed()) {
    now_ = std::max(now_, events_.next());
    if (now_ > calm_ + kProgressBound) {
      std::string progress = "no coordinator";
      if (const Process& process = processes_[coordinator_slot_]; process.alive) {
        progress = process.coordinator->Progress();
      }
      truth_.Fail(absl::StrCat("no progress: the job is not done ", kProgressBound / kMillisecond,
                               " ms after the last fault; ", progress));
      break;
    }
    ++outcome.events;
    const Message message = events_.Take();
    switch (message.kind) {
      case Kind::kStrike:
        Strike(static_cast<Fault>(message.index));
        break;
      case Kind::kStartProcess:
        // A cluster manager runs one daemon of an index, unless it takes the other one for dead.
        if (message.to >= kFirstServerSlot + 2 * servers_) break;  // there are fewer by now
        if (!processes_[message.to].alive && (message.copy || !processes_[message.to ^ 1].alive))
          StartProcess(message.to);
        break;
      case Kind::kStartCoordinator:
        if (!processes_[coordinator_slot_].alive) StartCoordinator();
        break;
      case Kind::kKillProcess:
        if (!processes_[message.to ^ 1].alive) break;
        Kill(message.to);
        Restart(message.to, 5 * kMillisecond, 50 * kMillisecond);
        break;
      default:
        Deliver(message);
    }
    ReapExited();
  }
  outcome.ok = !truth_.failed();
  outcome.problem = truth_.problem();
  outcome.ended = now_;
  outcome.seen = seen_;
  if (trace_ && !outcome.ok) Write(kNowhere, absl::StrCat("FAILED: ", outcome.problem));
  outcome.trace.swap(text_);
  for (Process& process : processes_) process.Clear();
  return outcome;
}

std::string Cluster::NameOf(Slot slot) const {
  if (slot == kNowhere) return "the cluster";
  if (slot < kCoordinatorSlots) return absl::StrCat("coordinator ", slot);
  if (slot < kFirstServerSlot) {
    return absl::StrCat("worker ", (slot - kFirstWorkerSlot) / 2,
                        (slot - kFirstWorkerSlot) % 2 ? "'" : "");
  }
  return absl::StrCat("server ", (slot - kFirstServerSlot) / 2,
                      (slot - kFirstServerSlot) % 2 ? "'" : "");
}

void Cluster::Write(Slot slot, const std::string& text) {
  absl::StrAppend(
      &text_,
      absl::StrFormat("%10.3f ms  %-13s  ", static_cast<double>(now_) / kMillisecond, NameOf(slot)),
      text, "\n");
}

}  // namespace mu::sim
