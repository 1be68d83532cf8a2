// Unpacked copies of compressed files in a directory of bounded size, so that any part of a file
// can be read.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/mutex.h"
#include "common/env/file.h"
#include "common/env/unique_fd.h"

namespace mu {

class ChunkSink;

// Thread safe; and several processes may share a directory: a copy appears whole (written aside,
// then renamed), one process unpacks a file while the others wait, and the least recently used
// copies of all of them make room. (What is being unpacked at the same moment does not see each
// other; the bound holds again when it is done.) A copy that somebody removes is made again; one
// that is open, or being made, stays readable. Copies are known by path, size and time of change.
//
// The directory may hold other files: only ours (*.unpacked and their locks) are counted or
// removed. The last user that ends removes them, and the directory if it is then empty.
class FileCache {
 public:
  FileCache(std::string directory, uint64_t capacity_bytes);
  ~FileCache();
  FileCache(const FileCache&) = delete;
  FileCache& operator=(const FileCache&) = delete;

  // Opens the unpacked copy of `path`, which is `source` now, and makes it first where there is
  // none; then every unpacked byte passes through `sink`, if given, and *fed says whether that
  // happened. Codes: as file.h; DATA_LOSS: the file is corrupt; RESOURCE_EXHAUSTED: the copy alone
  // does not fit the capacity, or the disk is full. What the cache lacks is InputFault::DEVICE,
  // whatever its code.
  absl::StatusOr<UniqueFd> Open(const std::string& path, const FileInfo& source, ChunkSink* sink,
                                bool* fed);

  const std::string& directory() const { return directory_; }
  // Another number each time as long as a file is being unpacked, or waited for while somebody else
  // unpacks it (who watches over himself).
  uint64_t moves() const {
    return waiting_.load(std::memory_order_relaxed) > 0
               ? chunks_.fetch_add(1, std::memory_order_relaxed)
               : chunks_.load(std::memory_order_relaxed);
  }

 private:
  std::string CopyOf(const std::string& path, const FileInfo& source) const;  // without its ending
  absl::Status Prepare();
  // What those left who were killed while they unpacked this file, whose lock is held.
  void RemoveUnfinished(const std::string& stem);
  absl::StatusOr<uint64_t> Unpack(const std::string& path, const std::string& temporary, int fd,
                                  ChunkSink* sink);
  // Removes the least recently used copies other than `keep` until they fit beside `bytes`.
  absl::Status MakeRoom(uint64_t bytes, absl::string_view keep, absl::string_view path);

  const std::string directory_;
  const uint64_t capacity_bytes_;
  Mutex mutex_;
  mutable std::atomic<uint64_t> chunks_{0};  // unpacked so far
  std::atomic<int> waiting_{0};              // for another's copy
  // Shared lock on the directory while in use; on a file that has its name, once Prepare is OK.
  UniqueFd lock_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
