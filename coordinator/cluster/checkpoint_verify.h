// Whether the files of a checkpoint are those that its manifest describes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/checkpoint.pb.h"

namespace mu {

// NOT_FOUND names a missing file, DATA_LOSS one whose size differs. IsCannotRead holds if this
// process cannot look at a file.
absl::Status CheckSizes(const std::string& directory, const muster::CheckpointProto& manifest);

// Reads every file whole. NOT_FOUND names a missing file, DATA_LOSS one whose size or CRC32C
// differs.
absl::Status VerifyCheckpoint(const std::string& directory,
                              const muster::CheckpointProto& manifest);

}  // namespace mu
