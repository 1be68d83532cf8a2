#include "coordinator/cluster/job_checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/followed_checkpoints.h"
#include "coordinator/cluster/kept_checkpoint.h"

namespace mu {
namespace {

// A program may have named it by a link or with "..".
bool IsSame(const std::string& folder, const std::string& other) {
  std::error_code unreadable;
  return folder == other || std::filesystem::equivalent(folder, other, unreadable);
}

}  // namespace

void JobCheckpoints::Enable(const std::string& directory) {
  {
    MutexLock lock(&mutex_);
    directory_ = std::make_unique<std::string>(directory);
  }
  // The newest that can be read: a restore may go back to an older one than the newest.
  const auto complete = ListCheckpoints(directory);
  for (auto i = complete.ok() ? complete->size() : 0; i > 0; --i) {
    if (UsePartitionCountsOf((*complete)[i - 1])) break;
  }
}

absl::StatusOr<std::string> JobCheckpoints::Parent() const {
  MutexLock lock(&mutex_);
  if (directory_ != nullptr) return AbsolutePath(*directory_);
  return absl::FailedPreconditionError(
      "there is no directory for checkpoints; call EnableRecovery first");
}

bool JobCheckpoints::UsePartitionCountsOf(
    const std::string& directory,
    const std::function<std::vector<std::string>(const std::string&)>& names_of) {
  const auto manifest = ReadManifest(directory);
  if (!manifest.ok()) return false;
  MutexLock lock(&mutex_);
  for (const pb::TableProto& table : manifest->tables()) {
    if (names_of == nullptr) {
      partitions_[table.name()] = table.partitions();
      continue;
    }
    for (const std::string& name : names_of(table.name())) partitions_[name] = table.partitions();
  }
  return true;
}

uint32_t JobCheckpoints::PartitionsOf(const std::string& table) const {
  MutexLock lock(&mutex_);
  const auto it = partitions_.find(table);
  return it == partitions_.end() ? 0 : it->second;
}

bool JobCheckpoints::UseInitializersOf(const std::string& directory) {
  const auto manifest = ReadManifest(directory);
  if (!manifest.ok()) return false;
  MutexLock lock(&mutex_);
  for (const pb::VariableProto& variable : manifest->variables())
    initializers_[variable.name()] = variable.initializer();
  for (const pb::TableProto& table : manifest->tables())
    initializers_[table.name()] = table.initializer();
  return true;
}

std::optional<pb::InitializerProto> JobCheckpoints::InitializerOf(const std::string& name) const {
  MutexLock lock(&mutex_);
  const auto it = initializers_.find(name);
  if (it == initializers_.end()) return std::nullopt;
  return it->second;
}

void JobCheckpoints::StartFresh() {
  MutexLock lock(&mutex_);
  claim_.StartFresh();
}

bool JobCheckpoints::starts_fresh() const {
  MutexLock lock(&mutex_);
  return claim_.fresh();
}

absl::StatusOr<std::string> JobCheckpoints::Claim(bool begun) {
  MU_ASSIGN_OR_RETURN(const std::string parent, Parent());
  const bool must_look = [&] {
    MutexLock lock(&mutex_);
    return claim_.MustLook(begun);
  }();
  if (must_look) {
    const auto earlier = ListCheckpoints(parent);
    if (!earlier.ok() && !absl::IsNotFound(earlier.status())) return earlier.status();
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(claim_.Looked(parent, earlier.ok() && !earlier->empty()));
  }
  return ClaimCheckpointDirectory(parent);
}

void JobCheckpoints::Add(CheckpointNumber number, const std::string& folder,
                         std::shared_ptr<const pb::TakenValuesProto> take) {
  MutexLock lock(&mutex_);
  points_[number] = {folder, std::move(take)};
}

void JobCheckpoints::Forget(CheckpointNumber oldest) {
  MutexLock lock(&mutex_);
  points_.erase(points_.begin(), points_.lower_bound(oldest));
}

void JobCheckpoints::Remove(CheckpointNumber number) {
  MutexLock lock(&mutex_);
  points_.erase(number);
}

absl::StatusOr<std::string> JobCheckpoints::Find(CheckpointNumber number) const {
  MutexLock lock(&mutex_);
  const auto point = points_.find(number);
  if (point != points_.end()) return point->second.folder;
  return absl::NotFoundError("the checkpoint's directory is not known");
}

uint64_t JobCheckpoints::PointIn(const std::string& folder) const {
  std::vector<std::pair<CheckpointNumber, std::string>> points;
  {
    MutexLock lock(&mutex_);
    for (const auto& [number, point] : points_) points.emplace_back(number, point.folder);
  }
  const auto same = std::find_if(points.rbegin(), points.rend(), [&folder](const auto& point) {
    return IsSame(point.second, folder);
  });
  return same == points.rend() ? 0 : same->first.value() + 1;
}

std::shared_ptr<const JobCheckpoints::Held> JobCheckpoints::Hold(const std::string& folder) {
  MutexLock renaming(&renaming_);
  uint64_t number = 0;
  {
    MutexLock lock(&mutex_);
    number = ++last_held_;
    held_[number] = folder;
  }
  return std::make_shared<const Held>(this, number);
}

absl::StatusOr<std::shared_ptr<const JobCheckpoints::Held>> JobCheckpoints::Hold(
    CheckpointNumber number) {
  MutexLock renaming(&renaming_);
  MU_ASSIGN_OR_RETURN(const std::string folder, Find(number));
  MutexLock lock(&mutex_);
  held_[++last_held_] = folder;
  return std::make_shared<const Held>(this, last_held_);
}

void JobCheckpoints::Release(uint64_t number) {
  MutexLock lock(&mutex_);
  held_.erase(number);
}

std::string JobCheckpoints::HeldFolder(uint64_t number) const {
  MutexLock lock(&mutex_);
  return held_.at(number);
}

bool JobCheckpoints::Held::IsNotCalled(const std::string& folder) const {
  MutexLock renaming(&checkpoints_->renaming_);
  return this->folder() != folder;
}

bool JobCheckpoints::IsHeld(const std::string& folder) const {
  std::map<uint64_t, std::string> held;
  {
    MutexLock lock(&mutex_);
    held = held_;
  }
  return std::any_of(held.begin(), held.end(),
                     [&folder](const auto& other) { return IsSame(other.second, folder); });
}

absl::StatusOr<std::string> JobCheckpoints::Rename(
    const std::string& folder, const std::function<absl::StatusOr<std::string>()>& rename) {
  MutexLock renaming(&renaming_);
  // Others may know it by other paths, which lead there only until it is renamed.
  std::set<std::string> names;
  {
    MutexLock lock(&mutex_);
    for (const auto& [number, point] : points_) names.insert(point.folder);
    for (const auto& [number, held] : held_) names.insert(held);
  }
  std::erase_if(names, [&folder](const std::string& other) { return !IsSame(other, folder); });
  MU_ASSIGN_OR_RETURN(std::string renamed, rename());
  MutexLock lock(&mutex_);
  for (auto& [number, point] : points_) {
    if (names.contains(point.folder)) point.folder = renamed;
  }
  for (auto& [number, held] : held_) {
    if (names.contains(held)) held = renamed;
  }
  return renamed;
}

std::shared_ptr<const pb::TakenValuesProto> JobCheckpoints::TakenFrom(
    CheckpointNumber number) const {
  MutexLock lock(&mutex_);
  const auto point = points_.find(number);
  return point == points_.end() ? nullptr : point->second.take;
}

void JobCheckpoints::NoteBad(const std::string& folder) {
  MutexLock lock(&mutex_);
  bad_.insert(folder);
}

absl::Status JobCheckpoints::Prune(int keep, const std::function<bool()>& superseded) {
  const auto found = Parent();
  if (absl::IsFailedPrecondition(found.status()) || keep <= 0) return absl::OkStatus();
  MU_ASSIGN_OR_RETURN(const std::string parent, found);
  MU_ASSIGN_OR_RETURN(const auto folders, ListCheckpointFolders(parent));
  std::set<std::string> bad;
  {
    MutexLock lock(&mutex_);
    bad = bad_;
  }
  std::vector<KnownCheckpoint> known;
  for (const auto& [folder, complete] : folders)
    known.push_back({.complete = complete,
                     .bad = bad.contains(folder),
                     .kept = IsKept(folder) || IsHeld(folder),
                     .point = PointIn(folder)});
  for (const size_t i : CheckpointsToDelete(known, static_cast<size_t>(keep))) {
    if (superseded()) return absl::AbortedError("a newer coordinator has taken over");
    if (MoveToFollower(folders[i].path)) continue;
    MU_RETURN_IF_ERROR(RemoveCheckpoint(folders[i].path));
  }
  return absl::OkStatus();
}

}  // namespace mu
