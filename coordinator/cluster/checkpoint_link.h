// A checkpoint under one name that is replaced again and again: DIR is a link to DIR.7, the next
// one is written into DIR.8, then the link is set to that. So DIR is a whole checkpoint at any
// moment, and no folder that servers may be reading becomes another one.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mu {

// Makes the folder for the next one beside `path`.
absl::StatusOr<std::string> ClaimLinkedCheckpoint(const std::string& path);
// `path` is `folder` from now on, whatever it was (nothing, a link, a folder with a checkpoint),
// and others of these folders are deleted.
absl::Status LinkCheckpoint(const std::string& path, const std::string& folder);

}  // namespace mu
