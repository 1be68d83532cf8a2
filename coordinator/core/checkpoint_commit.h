// How a checkpoint comes into being: one at a time, and complete or not at all. A pure state
// machine: events in, what is to be done next out; no clock, thread or socket.
//
//   begin -> every server has saved -> manifest written -> committed
//
// A server that is lost before the commit or wants to leave before all have saved, a save or a
// manifest that fails, functions that are cancelled before all cuts are taken, or a newer
// coordinator end it: aborted. What arrives for a
// checkpoint that is not the current one is ignored.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "coordinator/core/checkpoint_number.h"

namespace mu {

struct CheckpointAction {
  enum class Kind {
    kSave,           // write down what is unfinished, then every server takes its cut and writes
                     // it; answered by Saved
    kWriteManifest,  // write down the position after the cuts, then the manifest; answered by
                     // ManifestWritten
    kCommitted,      // from now on servers can go back to it
    kAborted,        // `reason`; what was written is to be removed
  };
  Kind kind;
  CheckpointNumber checkpoint;
  absl::Status reason = absl::OkStatus();
};

class CheckpointCommit {
 public:
  using Next = std::optional<CheckpointAction>;

  // While none is under way. ABORTED, as the reason of kAborted, after Superseded.
  Next Begin(CheckpointNumber checkpoint);
  // Answers; not OK: of whichever server, or of the disk.
  Next Saved(CheckpointNumber checkpoint, const absl::Status& status);
  Next ManifestWritten(CheckpointNumber checkpoint, const absl::Status& status);

  Next ServerLost(uint32_t server);
  // All servers take a new generation for it, which ends what they save. What they have saved stays
  // good.
  Next ServerLeaves();
  // Functions are cancelled, and servers are about to forget which steps of earlier ones they have
  // applied: a cut that is taken after that would lack them, though the position names them.
  Next FunctionsCancelled();
  // A coordinator of a newer epoch has taken over: nothing is committed any more.
  Next Superseded();
  // Nothing is committed any more, since everything ends.
  Next GiveUp(const absl::Status& why);

 private:
  enum class Phase { kIdle, kSaving, kManifest };
  bool under_way() const { return phase_ != Phase::kIdle; }
  // An answer to what was wanted in this phase of the checkpoint: on to the next one, or the end.
  Next Answered(CheckpointNumber checkpoint, Phase phase, const absl::Status& status, Phase next,
                CheckpointAction::Kind kind);

  Phase phase_ = Phase::kIdle;
  CheckpointNumber current_;
  bool superseded_ = false;
};

}  // namespace mu
