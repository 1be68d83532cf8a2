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

}  // namespace mu
