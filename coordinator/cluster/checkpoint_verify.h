// Whether the files of a checkpoint are those that its manifest describes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/checkpoint.pb.h"

namespace mu {

// NOT_FOUND names a missing file, DATA_LOSS one whose size differs. IsCannotRead holds if this
// process cannot look at a file, or may not read it. Of each file one byte is read, so it takes as
// long as the disk does.
absl::Status CheckSizes(const std::string& directory, const muster::CheckpointProto& manifest);

// Whether the manifest can be read, and CheckSizes: errors as those of ReadManifest and CheckSizes.
// IsDamage holds if the checkpoint is no good, for whoever reads it.
absl::Status CheckManifestAndSizes(const std::string& directory);

// Whether an error of the above, or of a load, says that a checkpoint is damaged: DATA_LOSS or
// NOT_FOUND.
bool IsDamage(const absl::Status& status);

// The newest checkpoint before `directory` in the same folder that CheckManifestAndSizes finds
// good; what its files hold is not read. Empty: there is none.
std::string NewestBefore(const std::string& directory);

// Reads every file whole. NOT_FOUND names a missing file, DATA_LOSS one whose size or CRC32C
// differs.
absl::Status VerifyCheckpoint(const std::string& directory,
                              const muster::CheckpointProto& manifest);

}  // namespace mu
