// Functions and leases of a large position, in a file of their own beside the manifest. A
// coordinator that dispatches thousands of functions a second has hundreds of thousands in the
// position of one checkpoint: as JSON these take a hundred bytes and more each, and seconds to
// read. Free of the cluster.
//
// `position.bin` holds a JobPositionProto with `functions` and `leases` in protobuf's binary
// format, and then its CRC32C, 4 bytes, little endian.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"

namespace mu {

inline constexpr char kPositionFile[] = "position.bin";
// Up to here a position stays in the manifest, where a person can read it.
inline constexpr int kMostReadableFunctions = 1000;

// Synced to disk. The two fields of `position`, and no others.
absl::Status WritePositionFile(const std::string& directory,
                               const muster::JobPositionProto& position);
// DATA_LOSS if the file is missing or not as it was written; the message names it.
absl::StatusOr<muster::JobPositionProto> ReadPositionFile(const std::string& directory);

}  // namespace mu
