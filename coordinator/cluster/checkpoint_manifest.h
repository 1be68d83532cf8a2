// The manifest of a checkpoint: a CheckpointProto as JSON, renamed into place last. Free of the
// cluster.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "proto/checkpoint.pb.h"
#include "proto/table.pb.h"

namespace mu {

inline constexpr uint32_t kCheckpointFormat = 1;
// Functions and leases of the position are in a file of their own (position_file.h).
inline constexpr uint32_t kPositionFileFormat = 2;

// With many functions in its position, `manifest` gets kPositionFileFormat.
absl::Status WriteManifest(const std::string& directory, const pb::CheckpointProto& manifest);
// NOT_FOUND if there is none, DATA_LOSS if it does not parse, is not as it was written (its own
// CRC32C) or is of a newer format; the message names the file. Whatever the format, the functions
// and leases are in what is returned, as of kCheckpointFormat.
absl::StatusOr<pb::CheckpointProto> ReadManifest(const std::string& directory);

// `routing` with the partitions that its variables will have, where they are not placed yet.
pb::RoutingProto WithPartitions(pb::RoutingProto routing);

// OK if what the checkpoint holds fits what the job has created: the same variables and tables by
// name, with the same types, shapes and partitions. Otherwise INVALID_ARGUMENT that names the first
// few differences.
absl::Status CheckFits(const pb::CheckpointProto& manifest, const pb::RoutingProto& routing);

}  // namespace mu
