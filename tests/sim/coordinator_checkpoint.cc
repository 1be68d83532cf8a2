// The simulated coordinator's checkpoints: directories, saves, the manifest.
#include <algorithm>
#include <utility>

#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

constexpr size_t kKeep = 3;

}  // namespace

void Coordinator::TakeCheckpoint() {
  if (beginning_ || save_task_ != TaskId()) return;
  save_task_ = last_task_.Next();
  Ask({.kind = ServerTask::Kind::kSave});
}

void Coordinator::Do(action::Save& a) {
  const auto& earlier = cluster_->disk().checkpoints;
  if (beginning_ && std::any_of(earlier.begin(), earlier.end(),
                                [](const auto& c) { return c.second.committed; })) {
    // It would be taken for the job's newest state.
    return Step(event::Saved{a.checkpoint, absl::FailedPreconditionError("not continued yet")});
  }
  const uint64_t folder = ++cluster_->disk().last_checkpoint;  // made exclusively
  folders_[a.checkpoint] = folder;
  saving_ = a.checkpoint;
  attempt_ = cluster_->NextCall();
  Checkpoint& checkpoint = cluster_->disk().checkpoints[folder];
  checkpoint.number = folder;
  checkpoint.core_number = a.checkpoint;
  checkpoint.epoch = epoch_;
  checkpoint.servers = static_cast<uint8_t>(expected_servers_);
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    Begin(s,
          {.kind = Kind::kSave,
           .generation = OnWire(a.generation),
           .checkpoint = static_cast<uint32_t>(folder),
           .attempt = attempt_},
          kTries);
  }
}

void Coordinator::OnSaved(uint32_t s, const Message* reply) {
  if (reply == nullptr)
    return Step(event::Saved{saving_, absl::DeadlineExceededError("no answer")});
  if (reply->code != Code::kOk)
    return Step(event::Saved{saving_, absl::ResourceExhaustedError("the disk is full")});
  manifest_.updates[s] = reply->updates;
  const bool open = std::any_of(calls_.begin(), calls_.end(),
                                [](const Call& call) { return call.request.kind == Kind::kSave; });
  if (!open) Step(event::Saved{saving_, absl::OkStatus()});
}

void Coordinator::Do(action::WriteManifest& a) {
  const JobPosition position = core_.PositionAfterCuts();
  manifest_.functions = position.functions;
  manifest_.data = core_.DataPositions();
  std::copy(position.acknowledged.begin(), position.acknowledged.end(),
            manifest_.acknowledged.begin());
  // A disk is slow now and then.
  const Time most = cluster_->Between(0, 9) == 0 ? 300 * kMillisecond : 3 * kMillisecond;
  After(cluster_->Between(0, most), "manifest written",
        [this, folder = folders_.at(a.checkpoint)] { ManifestDue(folder); });
}

void Coordinator::ManifestDue(uint64_t folder) {
  if (!core_.checkpoint_under_way() || folder != folders_.at(saving_)) return;
  Disk& disk = cluster_->disk();
  // Only the current epoch commits.
  if (disk.epoch != epoch_ && !cluster_->scenario().broken.server.fencing)
    return Step(event::EpochSeen{CoordinatorEpoch(disk.epoch)});
  const CheckpointNumber number = saving_;
  const auto it = disk.checkpoints.find(folder);
  if (it == disk.checkpoints.end())
    return Step(event::ManifestWritten{number, absl::NotFoundError("no such directory")});
  it->second.functions = manifest_.functions;
  it->second.data = manifest_.data;
  it->second.updates = manifest_.updates;
  it->second.acknowledged = manifest_.acknowledged;
  it->second.committed = true;
  Step(event::ManifestWritten{number, absl::OkStatus()});
}

void Coordinator::Do(action::Committed& a) {
  cluster_->Trace(slot_, "checkpoint ", a.checkpoint.value(), ": committed");
  auto& checkpoints = cluster_->disk().checkpoints;
  std::vector<uint64_t> committed;
  for (const auto& [number, checkpoint] : checkpoints) {
    if (checkpoint.committed) committed.push_back(number);
  }
  for (size_t i = 0; i + kKeep < committed.size(); ++i) checkpoints.erase(committed[i]);
  folders_.erase(folders_.begin(), folders_.lower_bound(a.oldest));
}

void Coordinator::Do(action::Aborted& a) {
  cluster_->Trace(slot_, "checkpoint ", a.checkpoint.value(), ": aborted, ", a.reason.message());
  const auto folder = folders_.extract(a.checkpoint);
  auto& checkpoints = cluster_->disk().checkpoints;
  const auto it = folder.empty() ? checkpoints.end() : checkpoints.find(folder.mapped());
  if (it != checkpoints.end() && !it->second.committed) checkpoints.erase(it);
  Drop([](const Call& call) { return call.request.kind == Kind::kSave; });
}

}  // namespace mu::sim
