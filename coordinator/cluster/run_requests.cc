#include "coordinator/cluster/run_requests.h"

#include <algorithm>

namespace mu {
namespace {

constexpr size_t kLeastLook = 64;

}  // namespace

uint64_t RunRequests::IdOf(const std::shared_ptr<const pb::LeaseProto>& lease,
                           pb::FeedRequest* message) {
  const auto found = leases_.find(lease.get());
  if (found != leases_.end()) return found->second.id;
  if (leases_.size() >= look_at_) {
    for (auto it = leases_.begin(); it != leases_.end();) {
      const auto old = it++;
      if (old->second.lease.use_count() > 1) continue;
      message->add_forgotten_leases(old->second.id);
      leases_.erase(old);
    }
    look_at_ = std::max(kLeastLook, 2 * leases_.size());
  }
  const uint64_t id = next_id_++;
  leases_[lease.get()] = {lease, id};
  pb::FeedLease& added = *message->add_leases();
  added.set_id(id);
  *added.mutable_lease() = *lease;
  return id;
}

void RunRequests::Append(const Run& run, std::string* message) {
  pb::FeedRequest part;
  pb::RunRequest& request = *part.add_runs();
  *request.mutable_context() = run.context;
  request.set_function(run.start.function.value());
  request.set_fingerprint(run.fingerprint.value());
  request.set_first_step(run.start.first_step);
  request.set_steps(run.start.steps);
  request.set_run(run.start.run.value());
  request.set_step_offset(run.step_offset);
  if (run.args != nullptr) {
    for (const pb::TensorProto& arg : *run.args) *request.add_args() = arg;
  }
  for (const BatchRange& range : run.batches) {
    pb::RunBatches& batches = *request.add_batches();
    batches.set_lease(IdOf(range.lease, &part));
    batches.set_first_batch(range.first_batch);
    batches.set_batches(range.batches);
  }
  if (run.upcoming != nullptr) request.add_upcoming(IdOf(run.upcoming, &part));
  part.AppendToString(message);
}

}  // namespace mu
