// The checkpoints of a job on its disk: where they are written, which servers may go back to, which
// are bad. Thread safe; what looks at files may block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "coordinator/core/checkpoint_number.h"
#include "coordinator/core/checkpoint_rules.h"
#include "proto/checkpoint.pb.h"
#include "proto/psserver.pb.h"
#include "proto/table.pb.h"

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
  // `names_of` says what a table of it is called here; empty: it is none of this job's.
  bool UsePartitionCountsOf(
      const std::string& directory,
      const std::function<std::vector<std::string>(const std::string& table)>& names_of = nullptr);
  // Of the table with this name; 0: not known.
  uint32_t PartitionsOf(const std::string& table) const;
  // The same of the initializers of its variables and tables, seeds included.
  bool UseInitializersOf(const std::string& directory);
  // Of the variable or table with this name; nullopt: not known.
  std::optional<pb::InitializerProto> InitializerOf(const std::string& name) const;

  // The program does not continue what is below the parent.
  void StartFresh();
  bool starts_fresh() const;
  // A new folder, absolute. FAILED_PRECONDITION as CheckpointClaim has it.
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
  // A checkpoint that is being read: it is not deleted while this exists. The JobCheckpoints
  // outlives it.
  class Held {
   public:
    Held(JobCheckpoints* checkpoints, uint64_t number)
        : checkpoints_(checkpoints), number_(number) {}
    ~Held() { checkpoints_->Release(number_); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    // As it is called now.
    std::string folder() const { return checkpoints_->HeldFolder(number_); }
    // Whether this is not, or no longer, what the folder is called. Waits for a Rename under way.
    bool IsNotCalled(const std::string& folder) const;

   private:
    JobCheckpoints* const checkpoints_;
    const uint64_t number_;
  };
  // Waits for a Rename under way.
  std::shared_ptr<const Held> Hold(const std::string& folder);
  // The one that servers may go back to. NOT_FOUND as Find.
  absl::StatusOr<std::shared_ptr<const Held>> Hold(CheckpointNumber number);
  // `rename` gives the folder another name and returns it; what it was called may be another
  // checkpoint at once. Whoever may go back to it, or holds it, knows the new name then. Returns
  // that too.
  absl::StatusOr<std::string> Rename(const std::string& folder,
                                     const std::function<absl::StatusOr<std::string>()>& rename);
  // What servers take of it; null: everything.
  std::shared_ptr<const pb::TakenValuesProto> TakenFrom(CheckpointNumber number) const;

  // Its files are damaged or missing.
  void NoteBad(const std::string& folder);
  // Deletes what is old (core/checkpoint_rules.h), or moves it to who follows the run
  // (followed_checkpoints.h); ABORTED once `superseded` says that a newer coordinator has taken
  // over. None may be under way.
  absl::Status Prune(int keep, const std::function<bool()>& superseded);

 private:
  // As KnownCheckpoint has it.
  uint64_t PointIn(const std::string& folder) const;
  bool IsHeld(const std::string& folder) const;
  std::string HeldFolder(uint64_t number) const;
  void Release(uint64_t number);

  mutable Mutex renaming_;  // a folder, on the disk as well
  mutable Mutex mutex_ ABSL_ACQUIRED_AFTER(renaming_);
  std::unique_ptr<std::string> directory_ ABSL_GUARDED_BY(mutex_);  // null: none
  struct Point {
    std::string folder;
    std::shared_ptr<const pb::TakenValuesProto> take;
  };
  std::map<CheckpointNumber, Point> points_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::string> held_ ABSL_GUARDED_BY(mutex_);  // folders
  uint64_t last_held_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> bad_ ABSL_GUARDED_BY(mutex_);                   // folders
  std::map<std::string, uint32_t> partitions_ ABSL_GUARDED_BY(mutex_);  // of tables
  std::map<std::string, pb::InitializerProto> initializers_ ABSL_GUARDED_BY(mutex_);
  CheckpointClaim claim_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
