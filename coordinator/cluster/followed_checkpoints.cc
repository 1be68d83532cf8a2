#include "coordinator/cluster/followed_checkpoints.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_directory.h"

namespace mu {

std::string FollowedFolder(const std::string& run) { return JoinPath(run, "followed"); }

bool MoveToFollower(const std::string& folder) {
  const std::string parent = DirectoryOf(folder);
  if (BaseName(parent) != "checkpoints") return false;  // a program's own: no run
  const std::string followed = FollowedFolder(DirectoryOf(parent));
  absl::StatusOr<std::vector<std::string>> waiting = ListDirectory(followed);
  if (absl::IsNotFound(waiting.status())) return false;
  if (waiting.ok())
    waiting->erase(std::remove(waiting->begin(), waiting->end(), kFollowerLock), waiting->end());
  const std::string held = JoinPath(followed, BaseName(folder));
  if (!FileExists(JoinPath(folder, kManifestName)) || FileExists(held)) return false;
  if (waiting.ok() && waiting->size() >= kMostFollowed) {
    MU_LOG(WARN,
           "{} is deleted and will not be evaluated: {} checkpoints wait in {} already; start "
           "what follows the run again, or remove that folder if nobody follows the run",
           folder, waiting->size(), followed);
    return false;
  }
  const absl::Status moved = waiting.ok() ? RenameFile(folder, held) : waiting.status();
  // The follower may have taken hold of it at this moment.
  if (!moved.ok() && !FileExists(held))
    MU_LOG(WARN, "{} is deleted and will not be evaluated: {}", folder, moved);
  return moved.ok();
}

}  // namespace mu
