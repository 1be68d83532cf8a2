#include "tests/sim/cluster.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/error_kind.h"
#include "common/rpc/refused.h"

namespace mu::sim {
namespace {

// From the last strike on everything must be well again within this time.
constexpr Time kProgressBound = 6000 * kMillisecond;
constexpr Time kTroubleLasts = 350 * kMillisecond;  // the longest cut, hang or absence

bool IsCall(Kind kind) { return kind <= Kind::kInstall; }
bool IsServerCall(Kind kind) { return kind >= Kind::kConfigure && kind <= Kind::kFence; }
// Of a connection: from the coordinator, or to it.
size_t DirectionOf(const Message& message) { return message.to < kFirstWorkerSlot ? 1 : 0; }

std::string NameOf(Slot slot) {
  if (slot == kNowhere) return "the cluster";
  if (slot < kFirstWorkerSlot) return absl::StrCat("coordinator ", slot);
  return absl::StrCat(IsWorkerSlot(slot) ? "worker " : "server ", IndexOf(slot),
                      slot % 2 != 0 ? "'" : "");
}

Message ReplyTo(const Message& request, Message reply) {
  reply.kind = Kind::kReply;
  reply.request = request.kind;
  reply.from = request.to;
  reply.to = request.from;
  reply.to_incarnation = request.from_incarnation;
  reply.call = request.call;
  reply.job = request.job;
  return reply;
}

}  // namespace

void Cluster::Send(Message message) {
  if (message.job != kJob) return CheckRefusal(message);
  if (message.to == kNowhere) return;  // nobody is there: the caller's time runs out
  if (!message.status.ok()) message.status = FromWire(std::move(message.status));
  message.from_incarnation = places_[message.from].incarnation;
  if (IsFeed(message.kind)) return SendOnStream(std::move(message));
  Time at = now_ + Latency();
  const bool failing = now_ < calm_;
  if (const Time until = cut_until_[message.from][message.to]; until > now_) {
    // What is not given up arrives when the network is whole again.
    if (Between(0, 1) == 0) return Trace(message.from, "lost on a cut to ", NameOf(message.to));
    at = until + Latency();
  } else if (failing && PerMille(scenario_.per_mille_slow)) {
    at += Between(kMillisecond, 80 * kMillisecond);
  }
  if (failing && PerMille(message.kind == Kind::kReply ? scenario_.per_mille_reply_lost
                                                       : scenario_.per_mille_lost)) {
    if (trace_) Write(message.from, absl::StrCat("lost: ", Describe(message)));
    return;
  }
  if (failing && message.kind != Kind::kReply && PerMille(scenario_.per_mille_repeated)) {
    Message second = message;
    second.copy = true;
    events_.Add(now_ + Latency() + Between(0, 20 * kMillisecond), second);
  }
  events_.Add(at, message);
}

void Cluster::SendOnStream(Message message) {
  Connection& connection = connections_[message.connection];
  if (!connection.up) return;  // both ends hear so soon
  Time at = now_ + Latency();
  const bool failing = now_ < calm_;
  if (const Time until = cut_until_[message.from][message.to]; until > now_) {
    if (Between(0, 3) == 0) return Break(message);
    at = until + Latency();
  } else if (failing && PerMille(scenario_.per_mille_slow)) {
    at += Between(kMillisecond, 80 * kMillisecond);
  }
  const bool reply = message.kind == Kind::kFeedWelcome || message.kind >= Kind::kStepResult;
  if (failing && PerMille(reply ? scenario_.per_mille_reply_lost : scenario_.per_mille_lost)) {
    if (trace_) Write(message.from, absl::StrCat("lost: ", Describe(message)));
    return Break(message);
  }
  Time& last = connection.last[DirectionOf(message)];
  last = at = std::max(at, last + 1);
  const bool opens = message.kind == Kind::kFeedOpen;
  if (failing && (message.number > 0 || opens) && PerMille(scenario_.per_mille_repeated)) {
    Message second = message;
    second.copy = true;
    // That of a beginning may come when the next connection is there.
    events_.Add(at + 1 + Between(0, (opens ? 80 : 20) * kMillisecond), second);
  }
  events_.Add(at, std::move(message));
}

void Cluster::Break(const Message& message) {
  Connection& connection = connections_[message.connection];
  if (!std::exchange(connection.up, false)) return;
  for (const bool turned : {false, true}) {
    Message broken{.kind = Kind::kFeedBroken,
                   .from = turned ? message.to : message.from,
                   .to = turned ? message.from : message.to,
                   .stream = message.stream,
                   .connection = message.connection};
    events_.Add(std::max(now_, cut_until_[broken.from][broken.to]) + Latency(), std::move(broken));
  }
}

bool Cluster::Arrives(const Message& message) {
  if (!IsFeed(message.kind)) return true;
  Connection& connection = connections_[message.connection];
  bool& lost = connection.lost[DirectionOf(message)];
  // What was on its way when the connection broke may still come, up to some place.
  lost |= !connection.up && Between(0, 1) == 0;
  return !lost;
}

void Cluster::Reply(const Message& request, Message reply) {
  if (!request.copy) Send(ReplyTo(request, std::move(reply)));
}

void Cluster::CallAsStranger() {
  const Slot slot = PickAlive(kFirstWorkerSlot, kSlots);
  if (slot == kNowhere) return;
  constexpr Kind kOfWorkers[] = {Kind::kFeedOpen, Kind::kCancelBelow, Kind::kInstall};
  constexpr Kind kOfServers[] = {Kind::kConfigure, Kind::kPull,    Kind::kPush,
                                 Kind::kSave,      Kind::kRestore, Kind::kFence};
  Message call{.to_incarnation = places_[slot].incarnation,
               .to = slot,
               .steps = 1,
               .call = NextCall(),
               .epoch = 1000,
               .generation = 1000000,
               .low_water = 1000,
               .function = 1,
               .stream = 1000,
               .connection = NextCall(),
               .meant = places_[slot].incarnation,
               .job = kOtherJob};
  call.kind = IsWorkerSlot(slot) ? kOfWorkers[random_.Below(std::size(kOfWorkers))]
                                 : kOfServers[random_.Below(std::size(kOfServers))];
  // It names servers, as ours does.
  if (call.kind == Kind::kInstall) {
    call.routing = AddRouting({});
    call.function = random_.Below(2);
  }
  events_.Add(now_ + Latency(), call);
}

void Cluster::CheckRefusal(const Message& answer) {
  const pb::ErrorKind kind = KindOf(answer.status);
  // Who has not been told of its own job refuses as well.
  const bool refused =
      !answer.status.ok() && (kind == pb::ERROR_OTHER_JOB || absl::IsUnavailable(answer.status));
  if (!refused) {
    truth_.Fail(absl::StrCat(NameOf(answer.from), " belongs to this job and does not refuse ",
                             "another job's coordinator: ", Describe(answer)));
  }
  if (kind != pb::ERROR_OTHER_JOB) return;
  seen().Saw(Moment("another job refused"));
  // With this the stranger's runs would end.
  if (answer.kind == Kind::kFeedWelcome) seen().Mark(Seen::kRunError, kind);
}

void Cluster::Bounce(const Message& message) {
  if (message.copy || message.job != kJob) return;
  if (message.kind == Kind::kFeedOpen) {
    Message refused{.kind = Kind::kFeedWelcome,
                    .status = AsRefused(FromWire(absl::UnavailableError("nobody is there"))),
                    .from = message.to,
                    .to = message.from,
                    .stream = message.stream,
                    .connection = message.connection};
    events_.Add(now_ + Latency(), std::move(refused));
  } else if (IsFeed(message.kind)) {
    Break(message);
  } else if (IsCall(message.kind)) {
    events_.Add(now_ + Latency(),
                ReplyTo(message, {.status = absl::UnavailableError("nobody is there")}));
  }
}

void Cluster::Happen(Happening happening) {
  const Message* const message = std::get_if<Message>(&happening);
  const Timer* const timer = std::get_if<Timer>(&happening);
  const Slot slot = message != nullptr ? message->to : timer->slot;
  if (slot == kNowhere) return timer->run();
  const uint64_t incarnation = message != nullptr ? message->to_incarnation : timer->incarnation;
  Place& place = places_[slot];
  if (message != nullptr && !Arrives(*message)) return;
  const bool another = incarnation != 0 && incarnation != place.incarnation;
  if (message != nullptr && (!place.alive || (another && IsFeed(message->kind))))
    return Bounce(*message);
  if (!place.alive || (incarnation != 0 && incarnation != place.incarnation)) return;
  if (place.hangs_until > now_ || !place.held.empty()) {
    Trace(slot, "hangs");
    if (place.held.empty())
      events_.Add(place.hangs_until, Timer{.run = [this, slot] { Wake(slot); }});
    place.held.push_back(std::move(happening));
    return;
  }
  if (message == nullptr) {
    if (*timer->name != 0) Trace(slot, "< ", timer->name);
    timer->run();
  } else {
    if (place.deaf_until > now_ && IsServerCall(message->kind)) return Trace(slot, "is deaf");
    if (trace_ && message->request != Kind::kHeartbeat && message->kind != Kind::kHeartbeat)
      Write(slot, absl::StrCat("< ", NameOf(message->from), " ", Describe(*message)));
    place.process->Handle(*message);
  }
  if (place.alive) place.process->AfterAll();
}

void Cluster::Wake(Slot slot) {
  Place& place = places_[slot];
  if (place.held.empty()) return;
  if (place.hangs_until > now_)
    return events_.Add(place.hangs_until, Timer{.run = [this, slot] { Wake(slot); }});
  for (Happening& held : std::exchange(place.held, {})) Happen(std::move(held));
}

void Cluster::JobDone(Slot slot) {
  if (slot != coordinator_slot_) return Exit(slot);
  const Coordinator& coordinator = At<Coordinator>(slot);
  std::array<const Partitions*, kMaxServers> state{};
  for (uint32_t s = 0; s < servers_; ++s) {
    const Coordinator::Place member = coordinator.PlaceOf(pb::ROLE_PSSERVER, s);
    if (IncarnationAt(member.slot) != member.incarnation || !places_[member.slot].alive)
      return;  // lost a moment ago
    const Server& server = At<Server>(member.slot);
    state[s] = &server.partitions();
    if (server.remembered() == 0) continue;
    // Heartbeats bring the low-water mark, some time.
    if (now_ < calm_ + 3 * kLease) return;
    truth_.Fail(absl::StrCat("server ", s, " remembers ", server.remembered(),
                             " pushes of finished functions"));
  }
  done_ = true;
  coordinator.CheckMemory();
  truth_.CheckState(state, servers_, coordinator.rolled_back());
}

Cluster::Cluster(uint64_t seed, const Scenario& scenario, bool trace)
    : scenario_(scenario),
      trace_(trace),
      random_(HashCombine(seed, 0x72756e)),
      servers_(scenario.servers),
      rules_({.replicas = scenario.replicas, .backups = scenario.backups}),
      truth_(&scenario_) {
  core::broken = scenario_.broken.coordinator;
  server_core::broken = scenario_.broken.server;
  worker_core::broken = scenario_.broken.worker;
  resumable_stream::broken = scenario_.broken.stream;
  no_data_until_.fill(scenario_.data_comes_at);
  calm_ = scenario_.data_comes_at;
  for (const auto& strike : scenario_.strikes) {
    calm_ = std::max(calm_, strike.at + kTroubleLasts);
    Add(strike.at, {.run = [this, fault = strike.fault] { Strike(fault); }});
  }
  if (scenario_.per_mille_lost + scenario_.per_mille_reply_lost + scenario_.per_mille_repeated +
          scenario_.per_mille_slow + scenario_.per_mille_slow_checks >
      0) {
    calm_ = std::max(calm_, 1500 * kMillisecond);
  }
  StartProcess(coordinator_slot_);
  for (uint32_t w = 0; w < scenario_.workers; ++w) StartProcess(WorkerSlot(w));
  for (uint32_t s = 0; s < servers_; ++s) StartProcess(ServerSlot(s));
}

Outcome Cluster::Run() {
  while (!done_ && !truth_.failed()) {
    now_ = std::max(now_, events_.next());
    if (now_ > calm_ + kProgressBound) {
      const bool alive = places_[coordinator_slot_].alive;
      truth_.Fail(
          absl::StrCat("no progress: the job is not done ", kProgressBound / kMillisecond,
                       " ms after the last fault; ",
                       alive ? At<Coordinator>(coordinator_slot_).Progress() : "no coordinator"));
      break;
    }
    ++outcome_.events;
    Happen(events_.Take());
    dead_.clear();
  }
  outcome_.problem = truth_.problem();
  outcome_.ended = now_;
  if (!outcome_.ok()) Trace(kNowhere, "FAILED: ", outcome_.problem);
  return std::move(outcome_);
}

void Cluster::Write(Slot slot, const std::string& text) {
  absl::StrAppend(
      &outcome_.trace,
      absl::StrFormat("%10.3f ms  %-13s  ", static_cast<double>(now_) / kMillisecond, NameOf(slot)),
      text, "\n");
}

}  // namespace mu::sim
