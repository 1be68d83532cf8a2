// Where a job's checkpoints lie: DIR/ckpt-00000007, numbered as they are made. One is complete if
// it has a manifest.
//
// A number is used once: a server that hangs may write its file of a checkpoint long after that has
// failed, when others with greater numbers are there. The folder of one that failed stays, empty,
// until a later one is complete.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mu {

inline constexpr char kManifestName[] = "manifest.json";

// The numbers N of what is called PREFIXN there, in order.
absl::StatusOr<std::vector<uint64_t>> NumbersIn(const std::string& parent,
                                                const std::string& prefix);
// Makes the folder of the next checkpoint below `parent`; nobody else is given the same one, in
// whatever process.
absl::StatusOr<std::string> ClaimCheckpointDirectory(const std::string& parent);
// The checkpoint in that folder has failed.
absl::Status EmptyCheckpointDirectory(const std::string& path);
// Deletes a folder, the manifest first: what is left if that is broken off is no checkpoint.
absl::Status RemoveCheckpoint(const std::string& path);
struct ListedCheckpoint {
  std::string path;
  bool complete = false;
};
// Oldest first. Not what is somebody else's file.
absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpointFolders(const std::string& parent);
// The complete ones.
absl::StatusOr<std::vector<std::string>> ListCheckpoints(const std::string& parent);

// What a user means by a path, oldest first: a checkpoint itself, or all complete ones of a run's
// directory or of its folder of checkpoints. NOT_FOUND if none of these is there; never an empty
// list.
absl::StatusOr<std::vector<std::string>> CheckpointsAt(const std::string& path);
// The newest of those.
absl::StatusOr<std::string> FindCheckpoint(const std::string& path);

}  // namespace mu
