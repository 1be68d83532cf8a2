// Synchronous rounds: pushes that are kept, and rounds that are applied.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/rpc/frame.h"
#include "psserver/round_mean.h"
#include "psserver/server.h"

namespace mu {

void PsServer::Contribute(const Buffer& frame, const pb::PushRequest& request,
                          absl::Span<const char> payload, const PushDone& done) {
  ScopedTimer timing(push_timer_);
  const PushId id{request.function(), request.step(), request.part()};
  const auto for_each = [&](PushPartitions::Visit visit) { VisitPartitions(request, visit); };
  PushBegun begun;
  {
    MutexLock lock(&mutex_);
    const PsCallId call(++last_call_);
    begun =
        core_.BeginContribution(Now(), request.context(), id, {CountPartitions(request), for_each},
                                request.round(), request.most_contributions(), call);
    if (begun.step == PushBegun::Step::kWait) waiting_calls_.emplace(call, done);
  }
  if (begun.step == PushBegun::Step::kWait) return;
  if (begun.step == PushBegun::Step::kAnswer) return done(ReplyOf(begun.answer));
  std::shared_ptr<const StoreDirectory> directory = store_.directory();
  absl::StatusOr<PushPlan> checked = PushPlan::Check(*directory, request, payload, &compute_);
  std::shared_ptr<const KeptPush> kept;
  if (checked.ok()) {
    checked->Skip(begun.push);
    kept = std::make_shared<const KeptPush>(
        KeptPush{frame, std::move(directory), *std::move(checked)});
  }
  const absl::Status status = Detailed(checked.status(), request.step());
  PushEnded ended;
  std::vector<PushDone> waiting;
  {
    MutexLock lock(&mutex_);
    ended = core_.Keep(Now(), id, request.round(), request.most_contributions(), status,
                       std::move(kept));
    waiting = TakeWaiting(ended);
    changed_.SignalAll();
  }
  Answer(ended, waiting, done);
}

absl::StatusOr<pb::CommitRoundReply> PsServer::CommitRound(const pb::CommitRoundRequest& request) {
  ScopedTimer timing(round_timer_);
  std::vector<PushId> set;
  uint64_t weight = 0;
  for (const auto& contribution : request.contributions()) {
    set.push_back({contribution.function(), contribution.step(), /*part=*/0});
    weight += contribution.weight();
  }
  if (!copies_.HasRoom()) WaitForCopies();
  RoundTurn turn;
  {
    MutexLock lock(&mutex_);
    while (turn = core_.BeginRound(Now(), request.context(), request.round(), set),
           turn.step == RoundTurn::Step::kWait) {
      core_.gate_closed() ? opened_.Wait(&mutex_) : changed_.Wait(&mutex_);
    }
  }
  if (turn.step == RoundTurn::Step::kApply) {
    options_.at("round");
    RoundMean mean(weight, request.sum_rows());
    for (size_t i = 0; i < turn.chosen.size(); ++i) {
      if (turn.chosen[i] == nullptr) continue;
      mean.Add(static_cast<const KeptPush*>(turn.chosen[i].get())->plan,
               request.contributions(static_cast<int>(i)).weight());
    }
    const uint32_t updates = mean.Apply();
    applied_.fetch_add(1, std::memory_order_relaxed);
    MutexLock lock(&mutex_);
    turn.answer = core_.EndRound(Now(), updates);
    changed_.SignalAll();
  }
  MU_RETURN_IF_ERROR(turn.answer.status);
  pb::CommitRoundReply reply;
  reply.set_updates(turn.answer.counts.updates);
  return reply;
}

}  // namespace mu
