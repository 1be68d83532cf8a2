// Synchronous rounds: what is kept, and what is applied once.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "psserver/core/protections.h"
#include "psserver/core/server_core.h"

namespace mu {

PushBegun ServerCore::Refuse(absl::Status status) {
  Leave();
  return {PushBegun::Step::kAnswer, {std::move(status), false, {}}, {}};
}

PushBegun ServerCore::BeginContribution(int64_t now_ns, const pb::RequestContext& context,
                                        const PushId& push, const PushPartitions& partitions,
                                        uint64_t round, uint32_t most, PsCallId call) {
  if (absl::Status refused = Admit(now_ns, context); !refused.ok())
    return {PushBegun::Step::kAnswer, {std::move(refused), false, {}}, {}};
  if (push.function < pushes_.ledger().low_water()) return Refuse(Stale(push));
  using Place = RoundBuffer::Place;
  switch (rounds_.PlaceOf(round, push, most)) {
    case Place::kFree: {
      const auto [checking, first] = checked_.try_emplace({round, push});
      if (!first && !MU_SERVER_BROKEN(checked_twice)) {
        checking->second.push_back(call);
        Leave();
        return {PushBegun::Step::kWait, {}, {}};
      }
      PushBegun begun = {PushBegun::Step::kApply, {}, AdmittedPush{push}};
      begun.push.counts = pushes_.Count(push, partitions, &begun.push.inherited);
      return begun;
    }
    case Place::kRepeat:
      Leave();
      return {PushBegun::Step::kAnswer, Acknowledge(now_ns, /*repeated=*/true, {}), {}};
    case Place::kLate:
      return Refuse(admission_.Refuse(
          absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
          absl::StrCat("a step of function ", push.function, " comes too late for round ", round)));
    case Place::kEarly:
      return Refuse(admission_.Refuse(
          absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
          absl::StrCat("a round before round ", round, " has not been applied yet")));
    case Place::kFull:
      break;
  }
  return Refuse(
      admission_.Refuse(absl::StatusCode::kResourceExhausted, pb::ERROR_MACHINE,
                        absl::StrCat("round ", round, " has its ", most, " steps already")));
}

PushEnded ServerCore::Keep(int64_t now_ns, const PushId& push, uint64_t round, uint32_t most,
                           const absl::Status& checked, RoundBuffer::Gradients gradients) {
  Leave();
  PushEnded ended{KeepNow(now_ns, push, round, most, checked, std::move(gradients)), {}};
  const auto waiting = checked_.extract({round, push});
  if (waiting.empty()) return ended;
  PushAnswer again = ended.answer;
  again.repeated = again.status.ok();
  for (const PsCallId call : waiting.mapped()) ended.waiting.emplace_back(call, again);
  return ended;
}

PushAnswer ServerCore::KeepNow(int64_t now_ns, const PushId& push, uint64_t round, uint32_t most,
                               const absl::Status& checked, RoundBuffer::Gradients gradients) {
  if (!checked.ok()) return {checked, false, {}};
  const auto refuse = [&](const char* why) -> PushAnswer {
    return {admission_.Refuse(
                absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
                absl::StrCat("a step of function ", push.function, " of round ", round, why)),
            false,
            {}};
  };
  // It may have been fenced, or its round decided, while it was checked.
  if (push.function < pushes_.ledger().low_water()) return refuse(" has been cancelled");
  using Place = RoundBuffer::Place;
  const Place place = rounds_.PlaceOf(round, push, most);
  if (place != Place::kFree && place != Place::kRepeat) return refuse(" comes too late");
  if (place == Place::kFree) rounds_.Keep(round, push, std::move(gradients));
  return Acknowledge(now_ns, place == Place::kRepeat, {});
}

RoundTurn ServerCore::BeginRound(int64_t now_ns, const pb::RequestContext& context, uint64_t round,
                                 const std::vector<PushId>& set) {
  using Step = RoundBuffer::Turn::Step;
  if (absl::Status refused = Admit(now_ns, context); !refused.ok())
    return {RoundTurn::Step::kAnswer, {std::move(refused), false, {}}, {}};
  if (gate_.closed()) {
    Leave();
    return {RoundTurn::Step::kWait, {}, {}};
  }
  // A round that was given up with what it holds: a late copy of the request. None that is
  // committed is below the mark before all servers have answered.
  for (const PushId& push : set) {
    if (push.function < pushes_.ledger().low_water())
      return {RoundTurn::Step::kAnswer, Refuse(Stale(push)).answer, {}};
  }
  RoundBuffer::Turn turn = rounds_.Begin(round, set);
  switch (turn.step) {
    case Step::kApply:
      break;
    case Step::kRepeat:
      Leave();
      return {RoundTurn::Step::kAnswer,
              Acknowledge(now_ns, /*repeated=*/true, {.updates = turn.updates}),
              {}};
    case Step::kWait:
      Leave();
      return {RoundTurn::Step::kWait, {}, {}};
    case Step::kStale:
      return {RoundTurn::Step::kAnswer,
              Refuse(admission_.Refuse(
                         absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
                         absl::StrCat("a round after round ", round, " has been applied")))
                  .answer,
              {}};
  }
  gate_.Enter();
  dirty_ = true;
  initial_ = false;
  loaded_.reset();
  return {RoundTurn::Step::kApply, {}, std::move(turn.chosen)};
}

PushAnswer ServerCore::EndRound(int64_t now_ns, uint32_t updates) {
  rounds_.Applied(updates);
  gate_.Leave();
  Leave();
  return Acknowledge(now_ns, /*repeated=*/false, {.updates = updates});
}

}  // namespace mu
