#include "coordinator/core/checkpoint_commit.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace mu {

using Kind = CheckpointAction::Kind;

std::string ToString(const CheckpointAction& action) {
  const std::string name = absl::StrCat("checkpoint ", action.checkpoint.value());
  switch (action.kind) {
    case Kind::kTakePosition:
      return absl::StrCat(name, ": take position");
    case Kind::kSave:
      return absl::StrCat(name, ": save server ", action.server);
    case Kind::kWriteManifest:
      return absl::StrCat(name, ": write manifest");
    case Kind::kCommitted:
      return absl::StrCat(name, ": committed");
    case Kind::kAborted:
      return absl::StrCat(name, ": aborted, ", std::string(action.reason.message()));
  }
  return "?";
}

CheckpointCommit::Actions CheckpointCommit::Begin(CheckpointNumber checkpoint,
                                                  const std::vector<uint32_t>& servers) {
  if (superseded_) {
    return {{Kind::kAborted, checkpoint, 0,
             absl::FailedPreconditionError("a newer coordinator has taken over")}};
  }
  if (phase_ != Phase::kIdle) {
    return {{Kind::kAborted, checkpoint, 0,
             absl::FailedPreconditionError("another checkpoint is being taken")}};
  }
  phase_ = Phase::kPosition;
  current_ = checkpoint;
  servers_ = saving_ = std::set<uint32_t>(servers.begin(), servers.end());
  return {{Kind::kTakePosition, checkpoint}};
}

CheckpointCommit::Actions CheckpointCommit::PositionTaken(CheckpointNumber checkpoint) {
  if (!Current(checkpoint, Phase::kPosition)) return {};
  phase_ = Phase::kSaving;
  Actions actions;
  for (const uint32_t server : servers_) actions.push_back({Kind::kSave, checkpoint, server});
  return actions;
}

CheckpointCommit::Actions CheckpointCommit::Saved(CheckpointNumber checkpoint, uint32_t server) {
  if (!Current(checkpoint, Phase::kSaving) || saving_.erase(server) == 0 || !saving_.empty())
    return {};
  phase_ = Phase::kManifest;
  return {{Kind::kWriteManifest, checkpoint}};
}

CheckpointCommit::Actions CheckpointCommit::SaveFailed(CheckpointNumber checkpoint, uint32_t server,
                                                       const absl::Status& why) {
  if (!Current(checkpoint, Phase::kSaving) || !servers_.contains(server)) return {};
  return Abort(why);
}

CheckpointCommit::Actions CheckpointCommit::ManifestWritten(CheckpointNumber checkpoint) {
  if (!Current(checkpoint, Phase::kManifest)) return {};
  phase_ = Phase::kIdle;
  return {{Kind::kCommitted, checkpoint}};
}

CheckpointCommit::Actions CheckpointCommit::ManifestFailed(CheckpointNumber checkpoint,
                                                           const absl::Status& why) {
  if (!Current(checkpoint, Phase::kManifest)) return {};
  return Abort(why);
}

CheckpointCommit::Actions CheckpointCommit::ServerLost(uint32_t server) {
  if (phase_ == Phase::kIdle || !servers_.contains(server)) return {};
  return Abort(absl::UnavailableError(absl::StrCat("server ", server, " was lost meanwhile")));
}

CheckpointCommit::Actions CheckpointCommit::FunctionsCancelled() {
  if (phase_ != Phase::kPosition && phase_ != Phase::kSaving) return {};
  return Abort(absl::UnavailableError("functions were cancelled meanwhile; take it again"));
}

CheckpointCommit::Actions CheckpointCommit::Superseded() {
  superseded_ = true;
  if (phase_ == Phase::kIdle) return {};
  return Abort(absl::FailedPreconditionError("a newer coordinator has taken over"));
}

CheckpointCommit::Actions CheckpointCommit::GiveUp(const absl::Status& why) {
  if (phase_ == Phase::kIdle) return {};
  return Abort(why);
}

CheckpointCommit::Actions CheckpointCommit::Abort(absl::Status reason) {
  phase_ = Phase::kIdle;
  return {{Kind::kAborted, current_, 0, std::move(reason)}};
}

}  // namespace mu
