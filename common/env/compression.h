// Reads plain, gzip and zstd files as streams of unpacked bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mu {

enum class Compression { kNone, kGzip, kZstd };

// By the first bytes; a file that is named .gz or .zst but begins otherwise is DATA_LOSS. Errors of
// the file as file.h.
absl::StatusOr<Compression> DetectCompression(const std::string& path);

// That of a file to be written, by the end of its name: .gz, .zst.
Compression CompressionOfName(const std::string& path);

// Not thread safe.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Up to `size` bytes (> 0); 0 at the end. DATA_LOSS naming the file if it is truncated or
  // corrupt.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size) = 0;
};

// The unpacked bytes of a file; several gzip members or zstd frames in a row are one stream, to
// which zstd's skippable frames add nothing.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenUnpacked(const std::string& path);

// One gzip member (or zstd frame, with checksum; or, for kNone, the bytes themselves). `level` 1 is
// fast.
absl::StatusOr<std::string> Compress(Compression compression, const std::string& data,
                                     int level = 1);

}  // namespace mu
