// The simulated coordinator's tasks: it continues from a checkpoint, and takes others.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/core/job_position.h"
#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {

void Coordinator::Ask(TaskId* task, ServerTask what) {
  *task = last_task_ = last_task_.Next();
  Step(event::TaskWanted{*task, std::move(what)});
}

void Coordinator::Do(action::TaskDone& a) {
  if (a.task == save_task_) save_task_ = TaskId();
  if (a.task == assign_task_) assign_task_ = TaskId();
  if (a.task == read_task_) {
    read_task_ = TaskId();
    const FunctionQueue& queue = core_.queue();
    // While training runs, nobody waits but for what had been joined before it. It may have ended
    // in this very step.
    const bool trains = was_awaited_ || queue.IsTrainingAwaited();
    if (a.status.ok() && queue.IsRepeating(trains ? turn_ : queue.next_id()))
      cluster_->truth().Fail("values are read that functions are still to make again");
  }
  if (a.task == restore_task_) {
    restore_task_ = TaskId();
    if (a.status.ok()) ValuesRestored();
    return;
  }
  if (a.task != beginning_task_ || ended()) return;
  if (search_.has_value()) return Continue(search_->Loaded(a.status));
  if (!a.status.ok()) return Ask(&beginning_task_, {.kind = ServerTask::Kind::kReady});
  search_.emplace("the disk", CoordinatorEpoch(0));
  if (FolderIsShut()) return Continue(search_->Listed(absl::PermissionDeniedError("it is shut")));
  std::vector<std::string> complete;
  for (const auto& [folder, checkpoint] : cluster_->disk().checkpoints) {
    if (checkpoint.committed) complete.push_back(absl::StrCat(folder));
  }
  Continue(search_->Listed(complete));
}

// The program reads values whenever servers have lost some.
void Coordinator::Do(action::Serving&) {
  if (!beginning_ && !ended() && read_task_ == TaskId()) {
    blocks_ = cluster_->PerMille(500);
    Ask(&read_task_, {.kind = ServerTask::Kind::kReady, .after_repeats = true});
  }
}

void Coordinator::Continue(ResumeSearch::Next next) {
  using Next = ResumeSearch::Next;
  switch (next) {
    case Next::kRead: {
      begin_from_ = std::stoull(search_->folder());
      const auto found = cluster_->disk().checkpoints.find(begin_from_);
      if (found == cluster_->disk().checkpoints.end())
        return Continue(search_->Read(absl::NotFoundError("somebody has removed it"), {}));
      if (const absl::Status read = ReadManifest(begin_from_); !read.ok())
        return Continue(search_->Read(read, {}));
      // Its manifest, which has been read when somebody else removes it.
      begin_checkpoint_ = found->second;
      return Continue(search_->Read(absl::OkStatus(), CoordinatorEpoch(1)));
    }
    case Next::kLoad: {
      auto read = ResumePointOf(begin_checkpoint_->position, catalog_);
      if (!read.ok()) return cluster_->truth().Fail(std::string(read.status().message()));
      begin_functions_ = read->job.functions;
      auto point = std::make_shared<ResumePoint>(*std::move(read));
      for (const pb::DatasetPositionProto& position : begin_checkpoint_->position.datasets()) {
        const DataLayout& data = core_.leases(kDataset)->data();
        point->data.push_back({kDataset, position, PlanOf(data, position.epoch())});
      }
      return Ask(&beginning_task_, {.kind = ServerTask::Kind::kLoad,
                                    .loaded = begin_checkpoint_->number,
                                    .point = std::move(point)});
    }
    case Next::kSkip:
      Saw("checkpoint skipped");
      return Continue(search_->Older());
    case Next::kResume:
      return Begun();
    case Next::kFail:
      // Its user starts it again, unless no checkpoint is good.
      if (!absl::IsDataLoss(search_->error()))
        return After(0, "program ends", [this] { cluster_->Exit(slot_); });
      [[fallthrough]];
    case Next::kFresh:
      claim_.StartFresh();
      begin_from_ = 0;
      return Begun();
  }
}

void Coordinator::Begun() {
  beginning_ = false;
  beginning_task_ = TaskId();
  if (begin_from_ == 0) return cluster_->truth().NewEpoch(epoch_, nullptr);
  cluster_->truth().NewEpoch(epoch_, &*begin_checkpoint_);
  // Also those that had finished for the coordinator before: they are not in the checkpoint's
  // state.
  for (const auto& [id, function] : begin_functions_.unfinished) records_[id] = RecordsOf(function);
}

void Coordinator::TakeCheckpoints() {
  After(cluster_->scenario().checkpoint_every, "checkpoint due", [this] { TakeCheckpoints(); });
  TakeCheckpoint();
}

void Coordinator::TakeCheckpoint() {
  if (!beginning_ && save_task_ == TaskId()) Ask(&save_task_, {.kind = ServerTask::Kind::kSave});
}

void Coordinator::Do(action::Save& a) {
  Disk& disk = cluster_->disk();
  if (FolderIsShut())
    return Step(event::Saved{a.checkpoint, absl::PermissionDeniedError("no folder can be made")});
  if (claim_.MustLook(core_.queue().begun())) {
    const bool any = std::any_of(disk.checkpoints.begin(), disk.checkpoints.end(),
                                 [](const auto& c) { return c.second.committed; });
    if (const absl::Status may = claim_.Looked("the disk", any); !may.ok())
      return Step(event::Saved{a.checkpoint, may});
  }
  const uint64_t folder = ++disk.last_checkpoint;  // made exclusively
  folders_[a.checkpoint] = folder;
  disk.checkpoints[folder].number = a.checkpoint;
  disk.checkpoints[folder].servers = static_cast<uint8_t>(expected_servers_);
  CallAll(ToServers({.kind = Kind::kSave,
                     .generation = OnWire(a.generation),
                     .checkpoint = static_cast<uint32_t>(folder),
                     .attempt = cluster_->NextCall()}),
          kTries, [this, number = a.checkpoint](const absl::Status& status, const Messages&) {
            Step(event::Saved{number, status});
          });
}

pb::JobPositionProto Coordinator::ManifestPosition() const {
  pb::JobPositionProto position;
  AddJobPosition(core_.PositionAfterCuts(), &position);
  for (pb::DatasetPositionProto& dataset : core_.DataPositions())
    *position.add_datasets() = std::move(dataset);
  return position;
}

void Coordinator::Do(action::WriteManifest& a) {
  // A disk is slow now and then.
  const Time most = cluster_->Between(0, 9) == 0 ? 300 * kMillisecond : 3 * kMillisecond;
  After(cluster_->Between(0, most), "manifest written",
        [this, number = a.checkpoint, folder = folders_.at(a.checkpoint),
         position = ManifestPosition()] {
          Disk& disk = cluster_->disk();
          // Only the current epoch commits.
          if (disk.epoch != epoch_ && !cluster_->scenario().broken.server.fencing)
            return Step(event::EpochSeen{CoordinatorEpoch(disk.epoch)});
          const auto it = disk.checkpoints.find(folder);
          if (it == disk.checkpoints.end())
            return Step(event::ManifestWritten{number, absl::NotFoundError("no such directory")});
          if (disk.no_manifest > 0) {
            --disk.no_manifest;
            Saw("manifest not written");
            cluster_->Trace(slot_, "writes no manifest");
            return Step(event::ManifestWritten{number, absl::ResourceExhaustedError("no room")});
          }
          it->second.position = position;
          it->second.committed = true;
          Step(event::ManifestWritten{number, absl::OkStatus()});
        });
}

void Coordinator::Do(action::Committed& a) {
  cluster_->Trace(slot_, "checkpoint ", a.checkpoint.value(), ": committed");
  folders_.erase(folders_.begin(), folders_.lower_bound(a.oldest));
  if (beginning_) return;  // its program does not take checkpoints yet: a server leaves
  std::vector<uint64_t> folders;
  std::vector<KnownCheckpoint> known;
  for (const auto& [folder, checkpoint] : cluster_->disk().checkpoints) {
    folders.push_back(folder);
    KnownCheckpoint& one = known.emplace_back();
    one.complete = checkpoint.committed;
    one.bad = bad_.contains(folder);
    one.kept = Holds(folder);
    for (const auto& [number, its_folder] : folders_) {
      if (its_folder == folder) one.point = number.value() + 1;
    }
  }
  for (const size_t i : CheckpointsToDelete(known, cluster_->scenario().keep)) Delete(folders[i]);
}

absl::Status Coordinator::ReadManifest(uint64_t folder) {
  const auto it = cluster_->disk().checkpoints.find(folder);
  // One that is gone is found out by who reads its files.
  if (it == cluster_->disk().checkpoints.end() || !it->second.bad_manifest) return absl::OkStatus();
  Saw("manifest unreadable");
  cluster_->Trace(slot_, "cannot read the manifest of checkpoint ", folder);
  return absl::DataLossError("the manifest is damaged");
}

bool Coordinator::FolderIsShut() {
  if (now() >= cluster_->disk().shut_until) return false;
  Saw("folder is shut");
  cluster_->Trace(slot_, "the folder of checkpoints is shut");
  return true;
}

void Coordinator::Delete(uint64_t folder) {
  auto& checkpoints = cluster_->disk().checkpoints;
  if (!FolderIsShut()) {
    checkpoints.erase(folder);
  } else if (cluster_->Between(0, 1) == 0) {
    // The manifest goes first: what is left is no checkpoint.
    checkpoints.at(folder).committed = false;
  }
}

void Coordinator::Do(action::Aborted& a) {
  cluster_->Trace(slot_, "checkpoint ", a.checkpoint.value(), ": aborted, ", a.reason.message());
  const auto folder = folders_.extract(a.checkpoint);
  auto& checkpoints = cluster_->disk().checkpoints;
  const auto it = folder.empty() ? checkpoints.end() : checkpoints.find(folder.mapped());
  if (it != checkpoints.end() && !it->second.committed && !FolderIsShut()) checkpoints.erase(it);
  Interrupt([](const Calls& calls) { return calls.kind == Kind::kSave; });
}

}  // namespace mu::sim
