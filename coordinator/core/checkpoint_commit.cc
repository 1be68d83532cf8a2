#include "coordinator/core/checkpoint_commit.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace mu {

using Kind = CheckpointAction::Kind;
using Next = CheckpointCommit::Next;

namespace {

// Of the code with which the job ends then.
absl::Status NewerCoordinator() { return absl::AbortedError("a newer coordinator has taken over"); }

}  // namespace

Next CheckpointCommit::Begin(CheckpointNumber checkpoint) {
  MU_CHECK(!under_way());
  if (superseded_) return {{Kind::kAborted, checkpoint, NewerCoordinator()}};
  phase_ = Phase::kSaving;
  current_ = checkpoint;
  return {{Kind::kSave, checkpoint}};
}

Next CheckpointCommit::Answered(CheckpointNumber checkpoint, Phase phase,
                                const absl::Status& status, Phase next, Kind kind) {
  if (phase_ != phase || checkpoint != current_) return std::nullopt;
  if (!status.ok()) return GiveUp(status);
  phase_ = next;
  return {{kind, checkpoint}};
}

Next CheckpointCommit::Saved(CheckpointNumber checkpoint, const absl::Status& status) {
  return Answered(checkpoint, Phase::kSaving, status, Phase::kManifest, Kind::kWriteManifest);
}

Next CheckpointCommit::ManifestWritten(CheckpointNumber checkpoint, const absl::Status& status) {
  return Answered(checkpoint, Phase::kManifest, status, Phase::kIdle, Kind::kCommitted);
}

Next CheckpointCommit::ServerLost(uint32_t server) {
  return GiveUp(absl::UnavailableError(absl::StrCat("server ", server, " was lost meanwhile")));
}

Next CheckpointCommit::ServerLeaves() {
  if (phase_ != Phase::kSaving) return std::nullopt;
  return GiveUp(absl::UnavailableError("a server leaves meanwhile; take it again"));
}

Next CheckpointCommit::FunctionsCancelled() {
  if (phase_ != Phase::kSaving) return std::nullopt;
  return GiveUp(absl::UnavailableError("functions were cancelled meanwhile; take it again"));
}

Next CheckpointCommit::Superseded() {
  superseded_ = true;
  return GiveUp(NewerCoordinator());
}

Next CheckpointCommit::GiveUp(const absl::Status& why) {
  if (!under_way()) return std::nullopt;
  phase_ = Phase::kIdle;
  return {{Kind::kAborted, current_, why}};
}

}  // namespace mu
