// What daemons ask the simulated coordinator, and who belongs to its cluster.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {

template <typename E>
void Coordinator::AskCore(const Message& message) {
  last_call_ = last_call_.Next();
  asked_[last_call_] = message;
  E event{last_call_, {}};
  auto& request = event.request;
  request.set_role(IsWorkerSlot(message.from) ? pb::ROLE_WORKER : pb::ROLE_PSSERVER);
  request.set_index(message.index);
  request.set_incarnation(message.from_incarnation);
  if constexpr (std::is_same_v<E, event::Register>) {
    request.set_address(absl::StrCat(message.from));
    request.set_protocol(kProtocol);
    request.set_pid(static_cast<int64_t>(message.from_incarnation));
  }
  if constexpr (std::is_same_v<E, event::Heartbeat>) {
    request.set_job(kJob);
    request.set_epoch(message.epoch);
    request.set_busy(message.moved > 0);
    request.set_moved_bytes(message.moved);
    request.set_applied_bytes(message.applied_bytes);
    request.set_most_applied_bytes(message.most_applied_bytes);
  }
  Step(std::move(event));
}

void Coordinator::HandleRequest(const Message& message) {
  handling_ = &message;
  switch (message.kind) {
    case Kind::kRegister:
      return AskCore<event::Register>(message);
    case Kind::kHeartbeat:
      return AskCore<event::Heartbeat>(message);
    case Kind::kLeave:
      return AskCore<event::Leave>(message);
    case Kind::kFeedWelcome:
    case Kind::kStepResult:
    case Kind::kRunEnded:
      return OnFeed(message);
    case Kind::kFeedBroken:
      return OnFeedBroken(WorkerId(IndexOf(message.from)), message.connection,
                          absl::UnavailableError("the connection has broken"));
    default:
      return;
  }
}

void Coordinator::Answer(mu::CallId id, const absl::Status& status, Message reply) {
  const auto asked = asked_.extract(id);
  if (asked.empty()) return;
  if (status.ok()) cluster_->truth().Announced(epoch_, reply.generation, now());
  reply.status = status;
  reply.epoch = epoch_;
  cluster_->Reply(asked.mapped(), std::move(reply));
}

void Coordinator::Do(action::AnswerRegister& a) {
  Answer(a.call, a.status,
         {.index = static_cast<uint8_t>(a.index), .generation = OnWire(a.generation)});
}

void Coordinator::Do(action::AnswerHeartbeat& a) {
  Answer(a.call, a.status, {.generation = OnWire(a.generation), .low_water = a.low_water.value()});
}

void Coordinator::Do(action::AnswerLeave& a) { Answer(a.call, absl::OkStatus(), {}); }

Coordinator::Place Coordinator::PlaceOf(pb::Role role, uint32_t index) const {
  const auto member = core_.membership().Find(role, index);
  if (!member.has_value()) return {};
  return {static_cast<Slot>(std::stoi(member->address)), member->incarnation.value()};
}

void Coordinator::Do(action::MemberJoined& a) {
  cluster_->Trace(slot_, a.member.role == pb::ROLE_WORKER ? "worker " : "server ", a.member.index,
                  " is a member");
}

void Coordinator::Do(action::MemberLost& a) {
  const bool is_worker = a.member.role == pb::ROLE_WORKER;
  cluster_->Trace(slot_, is_worker ? "worker " : "server ", a.member.index, " is lost: ", a.kind);
  if (a.kind == "hangs") Saw("lost as one that hangs");
  if (!is_worker && skips_ > 0) Saw("server lost in an empty commit");
  if (!is_worker) return cluster_->truth().StateGivenUp(static_cast<uint8_t>(a.member.index));
  if (core_.cancelling()) Saw("worker lost while cancelling");
  const Slot slot = static_cast<Slot>(std::stoi(a.member.address));
  Interrupt([slot](const Calls& calls) { return calls.messages[0].to == slot; });
  const auto feed = feeds_.find(WorkerId(a.member.index));
  if (feed != feeds_.end() && feed->second.incarnation == a.member.incarnation.value())
    DropFeed(feed->first);
}

// The stream is opened again, and nobody is there.
void Coordinator::OnConnectionLost(uint64_t incarnation) {
  for (const auto& [worker, feed] : feeds_) {
    if (feed.incarnation != incarnation) continue;
    return OnFeedBroken(worker, feed.connection, absl::UnavailableError("the process is gone"));
  }
}

void Coordinator::OnDaemonDied(uint64_t incarnation) {
  Step(event::DaemonDied{static_cast<int64_t>(incarnation), ""});
}

void Coordinator::WorkerDies(uint64_t incarnation) {
  if (core_.round_decided()) return;
  const FunctionQueue& queue = core_.queue();
  const auto is_packed = [&queue](FunctionId id) {
    const FunctionQueue::Function* const function = queue.Find(id);
    return function != nullptr && function->steps > 1 && queue.Contributes(*function);
  };
  bool dies = false, stays = false;
  for (const auto& [id, worker] : core_.workers()) {
    const std::vector<FunctionId> running = queue.RunningOn(id);
    if (std::none_of(running.begin(), running.end(), is_packed)) continue;
    (worker.member.incarnation == Incarnation(incarnation) ? dies : stays) = true;
  }
  if (dies && stays) Saw("packed contributor dies");
}

}  // namespace mu::sim
