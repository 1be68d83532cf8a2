// A checkpoint under one name that is replaced again and again: DIR is a link to DIR.7, the next
// one is written into DIR.8, then the link is set to that. So DIR is a whole checkpoint at any
// moment, and no folder that servers may be reading becomes another one.
//
// A folder that was made for this has a mark, which a copy of it has not: a user's DIR.3 stays.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/cluster/job_checkpoints.h"
#include "proto/checkpoint.pb.h"

namespace mu {

// Makes the folder for the next one beside `path`.
absl::StatusOr<std::string> ClaimLinkedCheckpoint(const std::string& path);
// `path` is `folder` from now on, whatever it was (nothing, a link, a folder with a checkpoint).
// Deletes what it was, and others of these folders. What servers may go back to (`checkpoints`)
// stays until a later call.
absl::Status LinkCheckpoint(const std::string& path, const std::string& folder,
                            JobCheckpoints* checkpoints);
// The folder that `path` is now: where it is such a link, what the link names.
std::string LinkedFolder(const std::string& path);
// That folder, which stays when `path` is given another one.
std::shared_ptr<const JobCheckpoints::Held> HoldLinked(const std::string& path,
                                                       JobCheckpoints* checkpoints);
// The manifest of the checkpoint in that folder, and of none that has taken its name meanwhile.
// Errors as ReadManifest.
absl::StatusOr<pb::CheckpointProto> ReadLinkedManifest(
    const std::string& path, JobCheckpoints* checkpoints,
    std::shared_ptr<const JobCheckpoints::Held>* held);

}  // namespace mu
