// Where a job's checkpoints lie: DIR/ckpt-00000007, numbered as they are made. One is complete if it has a manifest.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mu {

inline constexpr char kManifestName[] = "manifest.json";

// A path for the next checkpoint below `parent` (made); nothing is there yet.
absl::StatusOr<std::string> NextCheckpointDirectory(const std::string& parent);
// The complete checkpoint with the largest number. NOT_FOUND if there is none.
absl::StatusOr<std::string> NewestCheckpoint(const std::string& parent);
// Complete ones, oldest first.
absl::StatusOr<std::vector<std::string>> ListCheckpoints(const std::string& parent);

// What a user means by a path, oldest first: a checkpoint itself, or all complete ones of a run's directory or of its
// folder of checkpoints. NOT_FOUND if none of these is there; never an empty list.
absl::StatusOr<std::vector<std::string>> CheckpointsAt(const std::string& path);
// The newest of those.
absl::StatusOr<std::string> FindCheckpoint(const std::string& path);

}  // namespace mu
