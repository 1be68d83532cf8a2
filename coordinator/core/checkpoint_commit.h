// How a checkpoint comes into being: one at a time, and complete or not at all. A pure state
// machine: events in, actions out; no clock, thread or socket.
//
//   begin -> position taken -> every server has saved -> position after the cuts -> manifest
//   written -> committed
//
// A server that is lost before the commit, a save or a manifest that fails, functions that are
// cancelled before all cuts are taken, or a newer coordinator end it: aborted. What arrives for a
// checkpoint that is not the current one is ignored.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/core/checkpoint_number.h"

namespace mu {

struct CheckpointAction {
  enum class Kind {
    kTakePosition,   // write down what is unfinished; answered by PositionTaken
    kSave,           // `server` takes its cut and writes it; answered by Saved or SaveFailed
    kWriteManifest,  // write down the position after the cuts, then the manifest; answered by
                     // ManifestWritten or -Failed
    kCommitted,      // from now on servers can go back to it
    kAborted,        // `reason`; what was written is to be removed
  };
  Kind kind;
  CheckpointNumber checkpoint;
  uint32_t server = 0;
  absl::Status reason = absl::OkStatus();
};
std::string ToString(const CheckpointAction& action);

class CheckpointCommit {
 public:
  using Actions = std::vector<CheckpointAction>;

  // FAILED_PRECONDITION as the reason of kAborted while another one is under way, or after
  // Superseded.
  Actions Begin(CheckpointNumber checkpoint, const std::vector<uint32_t>& servers);
  Actions PositionTaken(CheckpointNumber checkpoint);
  Actions Saved(CheckpointNumber checkpoint, uint32_t server);
  Actions SaveFailed(CheckpointNumber checkpoint, uint32_t server, const absl::Status& why);
  Actions ManifestWritten(CheckpointNumber checkpoint);
  Actions ManifestFailed(CheckpointNumber checkpoint, const absl::Status& why);

  Actions ServerLost(uint32_t server);
  // Functions are cancelled, and servers are about to forget which steps of earlier ones they have
  // applied: a cut that is taken after that would lack them, though the position names them.
  Actions FunctionsCancelled();
  // A coordinator of a newer epoch has taken over: nothing is committed any more.
  Actions Superseded();
  // Nothing is committed any more, since everything ends.
  Actions GiveUp(const absl::Status& why);

  bool under_way() const { return phase_ != Phase::kIdle; }

 private:
  enum class Phase { kIdle, kPosition, kSaving, kManifest };
  bool Current(CheckpointNumber checkpoint, Phase phase) const {
    return phase_ == phase && checkpoint == current_;
  }
  Actions Abort(absl::Status reason);

  Phase phase_ = Phase::kIdle;
  CheckpointNumber current_;
  std::set<uint32_t> servers_;
  std::set<uint32_t> saving_;
  bool superseded_ = false;
};

}  // namespace mu
