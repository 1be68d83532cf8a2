// Synchronous rounds on the simulated server.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"
#include "tests/sim/server.h"

namespace mu::sim {

const Partition* Server::FirstHeld() const {
  const auto held = std::find_if(partitions_.begin(), partitions_.end(),
                                 [](const Partition& partition) { return partition.held; });
  return held == partitions_.end() ? nullptr : &*held;
}

uint32_t Server::Version() const {
  const Partition* const held = FirstHeld();
  return held == nullptr ? 0 : static_cast<uint32_t>(held->effects.size());
}

bool Server::EndsAnEpoch(uint64_t round) const {
  const Partition* const held = FirstHeld();
  if (held == nullptr) return false;
  const uint32_t batches = cluster_->scenario().batches;
  std::map<uint32_t, uint32_t> used;  // records, by epoch
  for (const Effect& effect : held->effects) {
    if (effect.record != kNoRecord) ++used[effect.record / batches];
  }
  return std::any_of(held->effects.begin(), held->effects.end(), [&](const Effect& effect) {
    return effect.round == round && effect.record != kNoRecord &&
           used[effect.record / batches] == batches;
  });
}

void Server::Contribute(const Message& request) {
  uint32_t held = 0;
  ForEachHeld([&](uint32_t, const Partition&) { ++held; });
  const auto for_each = [&](PushPartitions::Visit visit) {
    ForEachHeld([&](uint32_t p, const Partition&) { visit(KeyOf(p)); });
  };
  const PushId id{request.function, request.step, 0};
  const PsCallId call(++last_call_);
  PushBegun begun = core_.BeginContribution(now(), Context(request), id, {held, for_each},
                                            request.round, request.most, call);
  if (begun.step == PushBegun::Step::kWait) {
    Saw("contribution waits for first");
    waiting_pushes_.emplace_back(call, request);
    return;
  }
  if (begun.step == PushBegun::Step::kAnswer) {
    if (begun.answer.repeated) Saw("contribution kept again");
    if (absl::IsFailedPrecondition(begun.answer.status)) Saw("contribution refused");
    return Acknowledge(request, begun.answer);
  }
  if (!checking_.insert({request.round, id}).second) {
    return cluster_->truth().Fail(absl::StrCat("server ", index_, " checks step ", request.step,
                                               " of function ", request.function, " for round ",
                                               request.round, " twice at a time"));
  }
  Time check = cluster_->Between(0, 300 * kMicrosecond);
  if (cluster_->failing() && cluster_->PerMille(cluster_->scenario().per_mille_slow_checks)) {
    Saw("check outlasts its call");
    check += kServerCallTimeout + cluster_->Between(0, 2 * kServerCallTimeout);
  }
  After(check, "kept", [=, this, push = std::move(begun.push)] {
    checking_.erase({request.round, id});
    const PushEnded ended = core_.Keep(now(), id, request.round, request.most, absl::OkStatus(),
                                       std::make_shared<Kept>(Kept{request, push}));
    Acknowledge(request, ended.answer);
    AcknowledgeWaiting(ended);
  });
}

void Server::CommitRound(const Message& request) {
  std::vector<PushId> set;
  for (const RoundSet::Step& step : cluster_->RoundAt(request.set).steps)
    set.push_back({step.function.value(), step.step, 0});
  const RoundTurn turn = core_.BeginRound(now(), Context(request), request.round, set);
  switch (turn.step) {
    case RoundTurn::Step::kWait:
      return rounds_.push_back(request);
    case RoundTurn::Step::kAnswer:
      if (turn.answer.repeated) Saw("round repeated");
      return cluster_->Reply(request,
                             {.status = turn.answer.status, .updates = turn.answer.counts.updates});
    case RoundTurn::Step::kApply:
      break;
  }
  After(cluster_->Between(0, 500 * kMicrosecond), "round applied",
        [=, this] { ApplyRound(request, turn); });
}

void Server::ApplyRound(const Message& request, const RoundTurn& turn) {
  const RoundSet& set = cluster_->RoundAt(request.set);
  const uint32_t version = Version();
  uint32_t updates = 0;
  for (size_t i = 0; i < turn.chosen.size(); ++i) {
    const auto fail = [&](const auto&... why) {
      cluster_->truth().Fail(absl::StrCat("server ", index_, " applies round ", request.round,
                                          ", and step ", set.steps[i].step, " of function ",
                                          set.steps[i].function.value(), " ", why...));
    };
    const auto* const kept = static_cast<const Kept*>(turn.chosen[i].get());
    if (kept == nullptr) {
      fail("is not there");
      continue;
    }
    const Message& push = kept->message;
    if (push.version != version)
      fail("has read ", push.version, " steps, where the state has ", version);
    if (push.generation != request.generation) fail("is of generation ", push.generation);
    // What reads no records counts as one.
    const uint32_t weight = std::max(1u, SamplesOf(push.records[0]));
    if (set.steps[i].weight != weight)
      fail("weighs ", set.steps[i].weight, ", where its batch has ", weight, " records");
    ForEachHeld([&](uint32_t p, Partition& partition) {
      // A step of before there were rounds, of which a cut contained a part.
      if (kept->push.IsInherited(KeyOf(p))) return;
      ++updates;
      ++partition.counter;
      partition.effects.push_back({static_cast<uint32_t>(push.function), push.step, push.records[0],
                                   static_cast<uint16_t>(push.place),
                                   static_cast<uint32_t>(request.round)});
    });
  }
  if (set.steps.size() < cluster_->rules().replicas && EndsAnEpoch(request.round))
    Saw("small round ends epoch");
  const PushAnswer answer = core_.EndRound(now(), updates);
  cluster_->Reply(request, {.status = answer.status, .updates = updates});
}

}  // namespace mu::sim
