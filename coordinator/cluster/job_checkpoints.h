// The checkpoints of a job on its disk: where they are written, which servers may go back to, which
// are bad. Thread safe; what looks at files may block.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "coordinator/core/checkpoint_number.h"
#include "proto/checkpoint.pb.h"
#include "proto/psserver.pb.h"

namespace mu {

class JobCheckpoints {
 public:
  // Numbered checkpoints are written below `directory` from now on. Tables that are created later
  // get their partitions from the newest one there that can be read.
  void Enable(const std::string& directory);
  // The directory's absolute path: servers stand elsewhere. FAILED_PRECONDITION if there is none.
  absl::StatusOr<std::string> Parent() const;

  // Takes the numbers of partitions of the checkpoint's tables. Returns false and changes nothing
  // if the manifest cannot be read.
  // `rename` says what a table of it is called here; empty: it is none of this job's.
  bool UsePartitionCountsOf(
      const std::string& directory,
      const std::function<std::string(const std::string& table)>& rename = nullptr);
  // Of the table with this name; 0: not known.
  uint32_t PartitionsOf(const std::string& table) const;

  // The program does not continue what is below the parent.
  void StartFresh();
  bool starts_fresh() const;
  // A new folder, absolute. FAILED_PRECONDITION if there are checkpoints which the job (`begun`
  // says whether it has done anything) does not continue: a new one would be taken for its newest
  // state.
  absl::StatusOr<std::string> Claim(bool begun);

  // All files and the manifest are there. Servers may go back to it from the commit on, so it has
  // to be known before. `take`: of another job's checkpoint, what this one began with.
  void Add(CheckpointNumber number, const std::string& folder,
           std::shared_ptr<const pb::TakenValuesProto> take = nullptr);
  // Older ones are not wanted any more.
  void Forget(CheckpointNumber oldest);
  // It was not committed.
  void Remove(CheckpointNumber number);
  // The folder of a checkpoint that servers may go back to. NOT_FOUND: not of this process.
  absl::StatusOr<std::string> Find(CheckpointNumber number) const;
  // Whether servers may go back to the checkpoint in this folder, by whatever path it is named, or
  // somebody holds it.
  bool IsWanted(const std::string& folder) const { return PointIn(folder) != 0 || IsHeld(folder); }
  // It is being read: it is not deleted until it was released as often.
  void Hold(const std::string& folder);
  void Release(const std::string& folder);
  // The folder has another name now.
  void Renamed(const std::string& from, const std::string& to);
  // What servers take of it; null: everything.
  std::shared_ptr<const pb::TakenValuesProto> TakenFrom(CheckpointNumber number) const;

  // Its files are damaged or missing.
  void NoteBad(const std::string& folder);
  // Deletes what is old (core/checkpoint_rules.h); ABORTED once `superseded` says that a newer
  // coordinator has taken over. None may be under way.
  absl::Status Prune(int keep, const std::function<bool()>& superseded);

 private:
  // As KnownCheckpoint has it.
  uint64_t PointIn(const std::string& folder) const;
  bool IsHeld(const std::string& folder) const;

  mutable Mutex mutex_;
  std::unique_ptr<std::string> directory_ ABSL_GUARDED_BY(mutex_);  // null: none
  struct Point {
    std::string folder;
    std::shared_ptr<const pb::TakenValuesProto> take;
  };
  std::map<CheckpointNumber, Point> points_ ABSL_GUARDED_BY(mutex_);
  std::multiset<std::string> held_ ABSL_GUARDED_BY(mutex_);             // folders
  std::set<std::string> bad_ ABSL_GUARDED_BY(mutex_);                   // folders
  std::map<std::string, uint32_t> partitions_ ABSL_GUARDED_BY(mutex_);  // of tables
  bool starts_fresh_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mu
