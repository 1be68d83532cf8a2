// Unpacked copies of compressed files in a directory of bounded size, so that any part of a file
// can be read.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/env/file.h"
#include "common/env/unique_fd.h"

namespace mu {

class ChunkSink;

// Thread safe; and several processes may share a directory: a copy appears whole (written aside,
// then renamed), one process unpacks a file while the others wait, and the least recently used
// copies of all of them make room. Who does not get on with a file, as one that was stopped, is not
// waited for any longer: the others unpack it too. (What is being unpacked at the same moment does
// not see each other; the bound holds again when it is done.) A copy that somebody removes is made
// again; one that is open, or being made, stays readable. Copies are known by path, size and time
// of change.
//
// The directory may hold other files: only ours (*.unpacked and their locks) are counted or
// removed. The last user that ends removes them, and the directory if it is then empty.
class FileCache {
 public:
  // `patience`: so long a file is waited for that somebody else unpacks without getting on.
  FileCache(std::string directory, uint64_t capacity_bytes,
            absl::Duration patience = absl::Seconds(30));
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
  // Another number as a file is being unpacked, also by somebody else who is waited for, and gets
  // on.
  uint64_t moves() const { return chunks_.load(std::memory_order_relaxed); }

 private:
  std::string CopyOf(const std::string& path, const FileInfo& source) const;  // without its ending
  absl::Status Prepare();
  absl::StatusOr<UniqueFd> OpenOrMake(const std::string& path, const FileInfo& source,
                                      ChunkSink* sink, bool* fed);
  // So long, or until another thread's Open returns.
  void Pause(absl::Duration time);
  // Copies that somebody makes, or has begun.
  std::vector<std::string> Unfinished(const std::string& stem) const;
  uint64_t UnfinishedBytes(const std::string& stem) const;
  // What those left who were killed while they unpacked this file, whose lock is held.
  void RemoveUnfinished(const std::string& stem) const;
  absl::StatusOr<uint64_t> Unpack(const std::string& path, const std::string& temporary, int fd,
                                  ChunkSink* sink);
  // Removes the least recently used copies other than `keep` until they fit beside `bytes`.
  absl::Status MakeRoom(uint64_t bytes, absl::string_view keep, absl::string_view path);

  const std::string directory_;
  const uint64_t capacity_bytes_;
  const absl::Duration patience_;
  std::atomic<uint64_t> chunks_{0};  // unpacked so far, and seen to be
  Mutex pause_mutex_;
  CondVar opened_;  // a copy, or not
  Mutex mutex_;
  // Shared lock on the directory while in use; on a file that has its name, once Prepare is OK.
  UniqueFd lock_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
