// Pushes and assignments: once each, in a cut or after it as a whole.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/client/applied_full.h"
#include "common/client/too_late.h"
#include "psserver/core/protections.h"
#include "psserver/core/server_core.h"

namespace mu {
namespace {

PushBegun Answer(PushAnswer answer) { return {PushBegun::Step::kAnswer, std::move(answer), {}}; }

PushAnswer Refusal(absl::Status status) { return {std::move(status), false, {}}; }

}  // namespace

PushBegun ServerCore::BeginPush(int64_t now_ns, const pb::RequestContext& context,
                                const PushId& push, const PushPartitions& partitions, PsCallId call,
                                PushStaleness staleness) {
  if (absl::Status refused = Admit(now_ns, context); !refused.ok())
    return Answer(Refusal(std::move(refused)));
  AdmittedPush admitted{push};
  admitted.staleness = std::move(staleness);
  admitted.counts = pushes_.Count(push, partitions, &admitted.inherited);
  return Begin(now_ns, std::move(admitted), call);
}

PushBegun ServerCore::BeginAssign(int64_t now_ns, const PsAssignment& assignment, PsCallId call) {
  places_.RaiseLowWater(pushes_.ledger().low_water());
  if (!places_.Claim(assignment.place, assignment.variable, assignment.partition,
                     assignment.value_hash, assignment.table)) {
    Leave();
    return Answer(Refusal(admission_.Refuse(
        absl::StatusCode::kInvalidArgument, pb::ERROR_USER,
        absl::StrCat("place ", assignment.place,
                     " among the functions belongs to another assignment than this one of ",
                     assignment.table ? "table '" : "variable '", assignment.name, "'"))));
  }
  AdmittedPush admitted{{assignment.place, assignment.partition, /*part=*/0}};
  admitted.assigns = true;
  const PartitionKey key{
      assignment.table ? PartitionKey::Kind::kTable : PartitionKey::Kind::kVariable,
      assignment.variable, assignment.partition};
  admitted.counts = pushes_.Count(
      admitted.id, {1, [&](PushPartitions::Visit visit) { visit(key); }}, &admitted.inherited);
  return Begin(now_ns, std::move(admitted), call);
}

PushBegun ServerCore::Begin(int64_t now_ns, AdmittedPush push, PsCallId call) {
  using Step = PushBegun::Step;
  switch (pushes_.Begin(push.id, {call, push.counts})) {
    case Ledger::Answer::kFirst:
      return {Step::kApply, {}, std::move(push)};
    case Ledger::Answer::kRepeat:
      if (MU_SERVER_BROKEN(deduplication)) return {Step::kApply, {}, std::move(push)};
      Leave();
      return Answer(Acknowledge(now_ns, /*repeated=*/true, push.counts));
    case Ledger::Answer::kInProgress:
      Leave();
      return {Step::kWait, {}, {}};
    case Ledger::Answer::kStale:
      Leave();
      return Answer(Refusal(Stale(push.id)));
    case Ledger::Answer::kFull:
      break;
  }
  Leave();
  return Answer(Refusal(Full()));
}

PushEntered ServerCore::Enter(int64_t now_ns, AdmittedPush* push) {
  using Step = PushEntered::Step;
  if (gate_.closed()) return {Step::kWait};
  if (absl::Status refused = admission_.CheckLease(now_ns); !refused.ok())
    return {Step::kRefuse, std::move(refused)};
  if (push->counts.updates == 0) return {Step::kSkip};
  if (absl::Status late = JudgeLateness(push); !late.ok()) return {Step::kRefuse, std::move(late)};
  push->entered = gate_.Enter();
  for (const PushGradient& gradient : push->staleness.gradients) clocks_.Begin(gradient.key);
  if (!push->assigns) dirty_ = true;
  initial_ = false;
  loaded_.reset();
  return {Step::kApply};
}

absl::Status ServerCore::JudgeLateness(AdmittedPush* push) const {
  for (PushGradient& gradient : push->staleness.gradients) {
    if (!gradient.read.has_value()) continue;
    gradient.late = clocks_.LatenessOf(gradient.key, *gradient.read);
    if (gradient.late <= push->staleness.max.value_or(gradient.late) || MU_SERVER_BROKEN(lateness))
      continue;
    const bool variable = gradient.key.kind == PartitionKey::Kind::kVariable;
    return WithTooLate(
        admission_.Refuse(absl::StatusCode::kAborted, pb::ERROR_STALE,
                          absl::StrCat("a gradient of the ", variable ? "variable" : "table",
                                       " with id ", gradient.key.id, " is late by ", gradient.late,
                                       " updates, and may be by ", *push->staleness.max)));
  }
  return absl::OkStatus();
}

PushEnded ServerCore::EndPush(int64_t now_ns, const AdmittedPush& push,
                              const absl::Status& applied) {
  // All that the push names had inherited it: a repeat, of which nothing need be remembered once
  // more.
  const bool repeated = push.counts.updates == 0 && push.counts.inherited > 0;
  const std::vector<PushMemory::Waiter> waiters =
      pushes_.Finish(push.id, (applied.ok() || MU_SERVER_BROKEN(refusals)) && !repeated);
  if (push.entered) {
    gate_.Leave();
    for (const PushGradient& gradient : push.staleness.gradients) clocks_.End(gradient.key);
  }
  Leave();
  const auto answer = [&](bool again, const PushCounts& counts) {
    return applied.ok() ? Acknowledge(now_ns, again, counts) : Refusal(applied);
  };
  PushEnded ended{answer(repeated, push.counts), {}};
  if (push.entered) {
    for (const PushGradient& gradient : push.staleness.gradients) {
      if (gradient.read.has_value())
        ended.answer.late = std::max(ended.answer.late.value_or(0), gradient.late);
    }
  }
  for (const PushMemory::Waiter& waiter : waiters)
    ended.waiting.emplace_back(waiter.call, answer(/*again=*/true, waiter.counts));
  return ended;
}

PushAnswer ServerCore::Acknowledge(int64_t now_ns, bool repeated, const PushCounts& counts) const {
  if (absl::Status refused = admission_.CheckLease(now_ns); !refused.ok())
    return Refusal(std::move(refused));
  return {absl::OkStatus(), repeated, counts};
}

absl::Status ServerCore::Stale(const PushId& push) const {
  return admission_.Refuse(
      absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
      absl::StrCat("an update of function ", push.function, " is refused: every function below ",
                   pushes_.ledger().low_water(), " is finished"));
}

absl::Status ServerCore::Full() const {
  return WithAppliedFull(admission_.Refuse(
      absl::StatusCode::kResourceExhausted, pb::ERROR_MACHINE,
      absl::StrCat("the memory of applied updates is full: functions from ",
                   pushes_.ledger().low_water(), " on are not covered by checkpoints yet")));
}

}  // namespace mu
