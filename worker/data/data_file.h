// One file of a dataset as a worker opens it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/file.h"
#include "common/env/unique_fd.h"
#include "common/records/record_format.h"
#include "worker/data/file_cache.h"
#include "worker/data/file_index.h"
#include "worker/data/inline_files.h"

namespace mu {

bool IsSameFile(const FileInfo& a, const FileInfo& b);
// FAILED_PRECONDITION.
absl::Status FileChanged(const std::string& path);
// FAILED_PRECONDITION: it is not the file from which a lease was made. This process has not looked
// through that one, so it may as well be another copy, of this machine alone.
absl::Status FileDiffers(const std::string& path);

// What files are opened with. Both outlive their use.
struct FileAccess {
  FileCache* cache;
  InlineFiles* inline_files;
};

// What is known of a file once its head was read. Cheap to copy.
struct DataFile {
  std::string path;
  FileInfo source;  // as it was when it was first opened
  bool compressed = false;
  bool is_inline = false;  // it came with the dataset, and never changes
  std::shared_ptr<const FileFormat> format;

  // Looks at the file: its state, its head and, where `index` is not null, every record (gzip,
  // zstd: while unpacking it into the cache).
  static absl::StatusOr<DataFile> Look(const std::string& path,
                                       std::shared_ptr<const RecordFormat> format, int part,
                                       uint32_t spacing, const FileAccess& access,
                                       std::shared_ptr<const FileIndex>* index);

  // Of the unpacked bytes. FAILED_PRECONDITION if the file has changed. `sink` and `fed` as
  // FileCache::Open.
  absl::StatusOr<UniqueFd> Open(const FileAccess& access, ChunkSink* sink = nullptr,
                                bool* fed = nullptr) const;

 private:
  absl::Status CheckUnchanged() const;
};

// All of these bytes; FAILED_PRECONDITION where the file ends before.
absl::Status PreadAll(int fd, char* buffer, uint64_t size, uint64_t offset,
                      const std::string& path);
absl::StatusOr<uint64_t> SizeOfOpen(int fd, const std::string& path);

}  // namespace mu
