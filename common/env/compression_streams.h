// The parts of compression.h, one per library. Include compression.h instead.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/env/compression.h"
#include "common/env/unique_fd.h"

namespace mu {

// A file read from its begin to its end. Not thread safe.
class FileReader {
 public:
  static absl::StatusOr<FileReader> Open(const std::string& path);
  absl::StatusOr<size_t> Read(char* buffer, size_t size);  // 0 at the end
  const std::string& path() const { return path_; }

 private:
  FileReader(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

absl::StatusOr<std::unique_ptr<ByteStream>> MakeGzipStream(FileReader file);
absl::StatusOr<std::unique_ptr<ByteStream>> MakeZstdStream(FileReader file);
absl::StatusOr<std::string> GzipCompress(const std::string& data, int level);
absl::StatusOr<std::string> ZstdCompress(const std::string& data, int level);

}  // namespace mu
