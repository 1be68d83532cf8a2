// The files of one lease while it is read. A lease may have blocks of more files than a process may
// have descriptors, so only some are open at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "common/env/unique_fd.h"
#include "worker/data/data_file.h"
#include "worker/data/file_index.h"

namespace mu {

// What is known of a file and of those that are read in lockstep with it; the index (of the first)
// only if somebody needed it.
struct KnownFile {
  std::vector<DataFile> parts;
  std::shared_ptr<const FileIndex> index;
  const std::string& path() const { return parts[0].path; }
};

// Open where `fds` has descriptors.
struct OpenFile {
  KnownFile known;
  std::vector<UniqueFd> fds;  // of the parts
  uint64_t size = 0;          // of the first, unpacked
  bool sized = false;         // it has been open
};

// Not thread safe.
class OpenFiles {
 public:
  // Kept open beside those of the file that was opened last. Every thread that reads a lease may
  // have as many, and 1024 for the whole process is a usual limit.
  static constexpr size_t kMostDescriptors = 64;

  explicit OpenFiles(const FileAccess& access) : access_(access) {}

  // The file of this index in the dataset, with nothing known at first. It stays at its address.
  OpenFile& At(uint32_t file) { return files_[file]; }
  // Opens the file, which must be known, unless it is open; others may be closed for it, the least
  // recently used first. FAILED_PRECONDITION if it has changed since it was looked at or open
  // before; else errors as DataFile::Open, or INVALID_ARGUMENT: its length is not what its head
  // says.
  absl::Status Open(OpenFile* file);

 private:
  absl::Status OpenParts(OpenFile* file);

  FileAccess access_;
  std::unordered_map<uint32_t, OpenFile> files_;
  std::vector<OpenFile*> recent_;  // those that are open; the last was used last
  size_t descriptors_ = 0;         // of them
};

}  // namespace mu
