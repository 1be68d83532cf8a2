#include "coordinator/cluster/run_requests.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"

namespace mu {
namespace {

constexpr size_t kLeastLook = 64;
// More than these messages have without what they repeat.
constexpr uint64_t kRunBytes = 512;
constexpr uint64_t kLeaseBytes = 128;
constexpr uint64_t kBlockBytes = 64;
constexpr uint64_t kBatchesBytes = 32;
constexpr uint64_t kArgBytes = 64;

// The leases that a run names, each once.
absl::flat_hash_set<const pb::LeaseProto*> LeasesOf(const RunRequests::Run& run) {
  absl::flat_hash_set<const pb::LeaseProto*> leases;
  for (const BatchRange& range : run.batches) leases.insert(range.lease.get());
  if (run.upcoming != nullptr) leases.insert(run.upcoming.get());
  return leases;
}

}  // namespace

absl::Status RunRequests::CheckSize(const Run& run, uint64_t most_bytes) {
  uint64_t bytes = kRunBytes + kBatchesBytes * run.batches.size();
  if (run.args != nullptr) {
    for (const pb::TensorProto& arg : *run.args) bytes += kArgBytes + arg.data().size();
  }
  // A bound that costs little, for all runs but those that are nearly too large.
  uint64_t bound = bytes;
  for (const BatchRange& range : run.batches)
    bound += kLeaseBytes + kBlockBytes * static_cast<uint64_t>(range.lease->blocks_size());
  if (run.upcoming != nullptr)
    bound += kLeaseBytes + kBlockBytes * static_cast<uint64_t>(run.upcoming->blocks_size());
  if (bound <= most_bytes) return absl::OkStatus();
  for (const pb::LeaseProto* lease : LeasesOf(run)) bytes += kLeaseBytes + lease->ByteSizeLong();
  if (bytes <= most_bytes) return absl::OkStatus();
  return WithKind(
      absl::InvalidArgumentError(absl::StrCat(
          "this call of the function, with the places of its records, has ", bytes,
          " bytes, but a message has ", most_bytes,
          " at most; give it fewer steps, or make block_records of its dataset larger")),
      pb::ERROR_USER);
}

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
  request.set_draw_offset(run.draw_offset);
  request.set_view(run.view.value());
  request.set_round(run.start.round);
  request.set_most_contributions(run.most_contributions);
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
