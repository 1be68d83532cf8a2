// Leases read ahead of their use, and kept while several functions use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "proto/dataset.pb.h"
#include "worker/data/dataset_reader.h"

namespace mu {

// Thread safe. Holds at most `capacity_bytes` of parsed leases, beside those that callers still
// hold, and of those that were used only the last few of each data set. What has been used makes
// room first; what was read ahead and not yet used stays, and no more is read ahead until there is
// room. But leases are asked for in the order of their use: one that several later ones have
// overtaken was for a function that another worker got, and goes. Errors are not kept: whoever asks
// again reads again.
class LeaseCache {
 public:
  LeaseCache(int threads, size_t capacity_bytes);
  ~LeaseCache();  // waits for reads under way
  LeaseCache(const LeaseCache&) = delete;
  LeaseCache& operator=(const LeaseCache&) = delete;

  // Returns at once. Of many waiting requests the oldest are dropped.
  void Prefetch(std::shared_ptr<DatasetReader> reader, const muster::LeaseProto& lease);

  // Waits for a read of the same lease under way, otherwise reads in this thread. Errors as
  // DatasetReader::Read.
  absl::StatusOr<std::shared_ptr<const LeaseData>> Get(std::shared_ptr<DatasetReader> reader,
                                                       const muster::LeaseProto& lease);

  // Forgets all leases of a reader that will not be used again.
  void Drop(const DatasetReader* reader);

  size_t bytes() const;  // of the leases held now

 private:
  // The reader, and the serialised lease: whatever differs in a lease makes it another one.
  using Key = std::pair<const DatasetReader*, std::string>;
  enum class State { kWanted, kReading, kRead };
  // All fields but the first two are guarded by mutex_.
  struct Entry {
    const std::shared_ptr<DatasetReader> reader;
    const muster::LeaseProto lease;
    State state = State::kWanted;
    absl::StatusOr<std::shared_ptr<const LeaseData>> data = absl::UnknownError("not read");
    bool used = false;
    uint64_t touched = 0;
    uint64_t asked_for = 0;  // when it was to be read ahead; 0: never
    bool dropped = false;    // its reader was, while it was read
    int overtaken = 0;       // by how many that were asked for later and are used
  };
  using EntryPtr = std::shared_ptr<Entry>;
  using Entries = absl::flat_hash_map<Key, EntryPtr>;

  static Key MakeKey(const DatasetReader* reader, const muster::LeaseProto& lease);
  void ReadAhead();
  bool HasRoomToReadAhead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads without the lock held; `entry` is kReading before and kRead after.
  void ReadEntry(const Key& key, const EntryPtr& entry);
  void MarkUsed(const Key& key, Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of what the reader read ahead before `asked_for` and nobody came for.
  void ForgetOvertaken(const DatasetReader* reader, uint64_t asked_for)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All used leases of the reader but the few that were touched last.
  void ForgetUsed(const DatasetReader* reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(Entries::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The least recently touched of the used (or unused) leases that are held; end() if there is
  // none.
  Entries::iterator Oldest(bool used) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t capacity_bytes_;
  std::vector<std::thread> threads_;  // constant after construction
  mutable Mutex mutex_;
  CondVar wanted_;   // wakes the threads
  CondVar changed_;  // wakes callers of Get
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t ticks_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;         // of all held
  size_t unused_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of those read ahead and not used
  size_t last_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last one read, an estimate of the next
  size_t reading_ahead_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Key> queue_ ABSL_GUARDED_BY(mutex_);  // kWanted, and some that no longer are
  Entries entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
