// Whether a checkpoint's file is the one that its checkpoint names.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/checkpoint.pb.h"
#include "psserver/core/protections.h"

namespace mu {

// `bytes`: how long the file is. DATA_LOSS.
inline absl::Status CheckFileSize(const std::string& path, uint64_t bytes,
                                  const muster::CheckpointFileProto& named) {
  if (bytes == named.bytes()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", bytes, " bytes, its checkpoint says ",
                                          named.bytes(), "; it was cut short or replaced"));
}

// `crc32c`: of all that was read of the file. DATA_LOSS.
inline absl::Status CheckFileSum(const std::string& path, uint32_t crc32c,
                                 const muster::CheckpointFileProto& named) {
  if (crc32c == named.crc32c() || MU_SERVER_BROKEN(checksums)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, " is damaged: its CRC32C is not the one of its checkpoint"));
}

}  // namespace mu
