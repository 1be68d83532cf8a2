// A function of the user fails, or the user cancels everything: what is not finished ends, on the
// workers first, then the servers are fenced. As coordinator/cluster/runtime_cancel.cc.
#include <algorithm>

#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

constexpr int kTries = 3;

}  // namespace

void Coordinator::UserError() {
  if (beginning_ || cancel_) return;
  for (uint64_t id = queue_.low_water().value(); id < queue_.next_id().value(); ++id) {
    const FunctionQueue::Function* function = queue_.Find(FunctionId(id));
    if (function == nullptr || function->finished) continue;
    std::vector<uint16_t> records;
    for (const auto& range : function->batches) {
      for (uint32_t i = 0; i < range.batches; ++i)
        records.push_back(RecordOf(range, range.first_batch + i));
    }
    cluster_->truth().Cancelled(epoch_, id, records);
  }
  for (const FunctionId id : queue_.CancelAll()) states_.erase(id);
  done_at_ = 0;
  cancel_.emplace();
  cancel_->below = queue_.next_id().value();
  cancel_->generation = cluster_->RoutingAt(routing_place_).generation;
  if (!cluster_->scenario().broken.commit_after_fence) Act(commit_.FunctionsCancelled());
  for (const auto& [id, link] : links_) cancel_->workers[id] = link.incarnation;
  cluster_->Trace(slot_, "cancels what is below function ", cancel_->below);
  CancelOnWorkers();
}

void Coordinator::CancelOnWorkers() {
  Cancellation& cancel = *cancel_;
  // Those that were lost meanwhile have nothing to confirm.
  std::erase_if(cancel.workers, [&](const auto& waited) {
    const auto link = links_.find(waited.first);
    return link == links_.end() || link->second.incarnation != waited.second;
  });
  if (cancel.workers.empty()) return FenceServers();
  cancel.call = cluster_->NextCall();
  cancel.until = cluster_->now() + kCallTimeout;
  for (const auto& [id, incarnation] : cancel.workers) {
    Message message = WithContext({.kind = Kind::kCancelBelow,
                                   .to = links_.at(id).slot,
                                   .index = static_cast<uint8_t>(id.value()),
                                   .call = cancel.call,
                                   .generation = cancel.generation,
                                   .function = cancel.below});
    cluster_->Send(message);
  }
}

void Coordinator::FenceServers() {
  Cancellation& cancel = *cancel_;
  cancel.fencing = true;
  cancel.tries = 0;
  cancel.call = cluster_->NextCall();
  cancel.until = cluster_->now() + kCallTimeout;
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    if (cancel.fenced[s]) continue;
    Message message = WithContext({.kind = Kind::kFence,
                                   .to = servers_[s].slot,
                                   .server = static_cast<uint8_t>(s),
                                   .call = cancel.call,
                                   .generation = cancel.generation});
    message.low_water = cancel.below;
    cluster_->Send(message);
  }
}

void Coordinator::OnCancelReply(const Message& reply) {
  if (!cancel_ || reply.call != cancel_->call) return;
  if (reply.code == Code::kMachine) return;  // tried again when the time is up
  if (reply.code == Code::kStale && reply.epoch > epoch_) return Superseded();
  if (!cancel_->fencing) {
    for (const auto& [id, link] : links_) {
      if (link.slot == reply.from) cancel_->workers.erase(id);
    }
    if (cancel_->workers.empty()) FenceServers();
    return;
  }
  // One that is in another generation refuses all that was cancelled anyway.
  cancel_->fenced[reply.server] = true;
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    if (!cancel_->fenced[s]) return;
  }
  FinishCancel();
}

void Coordinator::CheckCancel() {
  if (!cancel_ || cluster_->now() < cancel_->until) return;
  if (!cancel_->fencing) {
    if (++cancel_->tries < kTries) return CancelOnWorkers();
    const auto silent = cancel_->workers;
    for (const auto& [id, incarnation] : silent) {
      if (auto lost = membership_.Remove(pb::ROLE_WORKER, id.value(), Incarnation(incarnation)))
        WorkerLost(*lost);
    }
    return CancelOnWorkers();
  }
  const bool lost = membership_.Count(pb::ROLE_PSSERVER) < expected_servers_;
  if (!lost && !paused_) return FenceServers();
  FinishCancel();
}

void Coordinator::FinishCancel() {
  cancel_.reset();
  if (queue_.repeats_cancelled()) Act(recovery_.StateLost());
  Dispatch();
}

}  // namespace mu::sim
