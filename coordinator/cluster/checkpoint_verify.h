// Whether the files of a checkpoint are those that its manifest describes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/checkpoint.pb.h"

namespace mu {

// Reads every file whole. NOT_FOUND names a missing file, DATA_LOSS one whose size or CRC32C differs.
absl::Status VerifyCheckpoint(const std::string& directory, const muster::CheckpointProto& manifest);

}  // namespace mu
