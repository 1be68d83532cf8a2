// What the simulated user does with training, and is told of it; evaluations are in
// coordinator_groups.cc.
#include <memory>
#include <utility>

#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

constexpr size_t kQueueBound = 3;

}  // namespace

bool Coordinator::AllScheduled() const {
  if (core_.leases(kDataset) == nullptr) return false;
  const Scenario& scenario = cluster_->scenario();
  return scenario.per_worker ? core_.queue().next_id().value() > scenario.Functions()
                             : core_.leases(kDataset)->shared()->Exhausted();
}

void Coordinator::Feed() {
  while (!beginning_ && !ended() && !core_.cancelling() && core_.queue().queued() < kQueueBound &&
         !AllScheduled()) {
    if (!cluster_->scenario().per_worker && assign_task_ == TaskId() && cluster_->PerMille(20)) {
      Ask(&assign_task_,
          {.kind = ServerTask::Kind::kAssign, .assignment = std::make_shared<Assignment>()});
    }
    FunctionWork work;
    work.steps = cluster_->scenario().steps;
    work.dataset = kDataset;
    work.trains = work.updates = true;
    Step(event::Schedule{std::move(work)});
    nothing_more_told_ = false;
  }
  // The user waits: at the end, and now and then before.
  if (!beginning_ && !ended() && cluster_->scenario().replicas > 0 && !nothing_more_told_ &&
      (AllScheduled() || cluster_->PerMille(5))) {
    nothing_more_told_ = true;
    Step(event::NothingMore{});
  }
}

void Coordinator::UserError() {
  if (!beginning_) Step(event::CancelEverything{});
}

void Coordinator::BadFunction() {
  if (beginning_) return;
  ++bad_functions_;
  Step(event::CatalogChanged{++catalog_, routing_, generation_, 1});
}

void Coordinator::Do(action::Cancelled&) {
  // At the end of all nobody waits for servers: the next coordinator restores them.
  if (!ended()) cluster_->truth().CancelReported(epoch_);
}

void Coordinator::CheckDone() {
  const FunctionQueue& queue = core_.queue();
  const bool all =
      AllScheduled() && queue.unfinished() == 0 && assign_task_ == TaskId() && EvaluationsDone();
  // Checkpoints cover everything, so that nothing is kept for a restore to an older one; then
  // heartbeats carry the low-water mark to the servers.
  if (all && queue.kept() > 0) TakeCheckpoint();
  if (!all || queue.kept() > 0) {
    done_at_ = 0;
  } else if (done_at_ == 0) {
    done_at_ = now() + 2 * kHeartbeatEvery;
  }
}

}  // namespace mu::sim
