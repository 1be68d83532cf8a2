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
  // One at a time: the one for a server that leaves follows the one under way.
  if (beginning_ || core_.cancelling() || core_.checkpoint_under_way() ||
      (!core_.serving() && !leave_wanted_))
    return;
  const bool leaving = std::exchange(leave_wanted_, false);
  checkpoint_ = ++cluster_->disk().last_checkpoint;
  attempt_ = cluster_->NextCall();
  leave_checkpoint_ = leaving ? checkpoint_ : 0;
  Checkpoint& checkpoint = cluster_->disk().checkpoints[checkpoint_];  // made exclusively
  checkpoint.number = checkpoint_;
  checkpoint.epoch = epoch_;
  checkpoint.servers = static_cast<uint8_t>(expected_servers_);
  Step(event::CheckpointWanted{CheckpointNumber(checkpoint_), leaving});
}

void Coordinator::Do(action::Save& a) {
  BeginCall(a.server, &servers_[a.server].save,
            {.kind = Kind::kSave,
             .generation = generation_,
             .checkpoint = static_cast<uint32_t>(a.checkpoint.value()),
             .attempt = attempt_});
}

void Coordinator::OnSaved(uint32_t s, const Message& reply) {
  Call& call = servers_[s].save;
  if (call.id == 0 || reply.call != call.id) return;
  if (reply.code == Code::kMachine) return;  // tried again when the time is up
  call.id = 0;
  if (NoteEpoch(reply)) return;
  const bool saved = reply.code == Code::kOk;
  if (saved) manifest_.updates[s] = reply.updates;
  Step(event::Saved{CheckpointNumber(call.request.checkpoint), s,
                    saved ? absl::OkStatus() : absl::ResourceExhaustedError("the disk is full")});
}

void Coordinator::Do(action::WriteManifest& a) {
  const Core::JobPosition position = core_.PositionAfterCuts();
  manifest_.functions = position.functions;
  manifest_.data = core_.leases(1)->Position();
  std::copy(position.acknowledged.begin(), position.acknowledged.end(),
            manifest_.acknowledged.begin());
  // A disk is slow now and then.
  const Time most = cluster_->Between(0, 9) == 0 ? 300 * kMillisecond : 3 * kMillisecond;
  cluster_->SetTimer(
      slot_, cluster_->Between(0, most),
      {.kind = Kind::kManifestDue, .checkpoint = static_cast<uint32_t>(a.checkpoint.value())});
}

void Coordinator::OnManifestDue(const Message& timer) {
  if (!core_.checkpoint_under_way() || timer.checkpoint != checkpoint_) return;
  Disk& disk = cluster_->disk();
  // Only the current epoch commits.
  if (disk.epoch != epoch_ && !cluster_->scenario().broken.fencing)
    return Step(event::EpochSeen{CoordinatorEpoch(disk.epoch)});
  const CheckpointNumber number(timer.checkpoint);
  const auto it = disk.checkpoints.find(timer.checkpoint);
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
  if (leave_checkpoint_ == a.checkpoint.value()) LeaveSaved(a.checkpoint);
}

void Coordinator::Do(action::Aborted& a) {
  cluster_->Trace(slot_, "checkpoint ", a.checkpoint.value(), ": aborted, ", a.reason.message());
  auto& checkpoints = cluster_->disk().checkpoints;
  const auto it = checkpoints.find(a.checkpoint.value());
  if (it != checkpoints.end() && !it->second.committed) checkpoints.erase(it);
  for (ServerLink& server : servers_) server.save.id = 0;
  if (leave_checkpoint_ == a.checkpoint.value()) LeaveSaved(std::nullopt);
}

void Coordinator::LeaveSaved(std::optional<CheckpointNumber> checkpoint) {
  leave_checkpoint_ = 0;
  Step(event::LeaveSaved{checkpoint});
}

}  // namespace mu::sim
