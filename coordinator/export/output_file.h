// A file that is written piece by piece and appears under its name when it is whole.
//
// Not thread safe. Errors name the path: those of common/env/file.h.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/env/unique_fd.h"

namespace mu {

class OutputFile {
 public:
  static absl::StatusOr<OutputFile> Create(const std::string& path);
  OutputFile(OutputFile&&) = default;
  ~OutputFile();  // removes what is not finished

  absl::Status Append(absl::string_view bytes);
  // Appends zeros up to a multiple of `alignment`.
  absl::Status Align(uint64_t alignment);
  // Waits until all is on the disk. Nothing is appended after it.
  absl::Status Sync();
  // After Sync: gives the file its name.
  absl::Status Place();
  // Both.
  absl::Status Finish();

  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, std::string temporary, UniqueFd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
  absl::Status Write(absl::string_view bytes);

  std::string path_;
  std::string temporary_;
  UniqueFd fd_;
  std::string buffer_;
  uint64_t size_ = 0;
};

}  // namespace mu
