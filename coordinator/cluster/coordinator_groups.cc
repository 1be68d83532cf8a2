// Groups of functions beside training.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_link.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/coordinator_impl.h"

namespace mu {
namespace {

// Calls `end` when the last copy of what it returns goes.
template <typename End>
std::shared_ptr<void> AtEnd(End end) {
  return {nullptr, [end = std::move(end)](void*) { end(); }};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const void>> Coordinator::HoldCheckpoint(
    const std::string& directory) {
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  return HoldLinked(absolute, &impl_->checkpoints);
}

absl::StatusOr<FunctionGroup> Coordinator::CreateGroup(const GroupOptions& options) {
  std::shared_ptr<ViewFiles> files;
  if (!options.checkpoint.empty()) {
    files = std::make_shared<ViewFiles>();
    MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(options.checkpoint));
    MU_ASSIGN_OR_RETURN(files->manifest,
                        ReadLinkedManifest(absolute, &impl_->checkpoints, &files->held));
    MU_RETURN_IF_ERROR(CheckFits(files->manifest, impl_->runtime->Created()));
  }
  MU_RETURN_IF_ERROR(impl_->runtime->EnsureServers());
  auto made = std::make_shared<FunctionGroup::Made>();
  made->id = impl_->runtime->MakeGroup(std::move(files));
  made->owner = this;
  made->drop = AtEnd([id = made->id, there = impl_->there] {
    MutexLock lock(&there->mutex);
    if (there->runtime != nullptr) there->runtime->DropGroup(id);
  });
  return FunctionGroup(std::move(made));
}

absl::StatusOr<GroupId> Coordinator::IdOf(const FunctionGroup& group) const {
  if (group.made_ == nullptr) return GroupId();
  if (group.made_->owner == this) return group.made_->id;
  return absl::InvalidArgumentError(
      "this group was not made by this coordinator; use what its CreateGroup returned");
}

absl::Status Coordinator::Join(const FunctionGroup& group) {
  MU_ASSIGN_OR_RETURN(const GroupId id, IdOf(group));
  return impl_->runtime->Join(id);
}

void Coordinator::Cancel(const FunctionGroup& group) {
  if (const auto id = IdOf(group); id.ok()) impl_->runtime->Cancel(*id);
}

}  // namespace mu
