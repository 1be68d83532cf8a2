// Cuts a dataset into blocks and groups the blocks of an epoch into leases. Pure and deterministic:
// the plan depends on the dataset and the records of its files alone, never on workers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "proto/dataset.pb.h"

namespace mu {

// Records of a file's range [first, first + count) that the selection keeps.
uint64_t SelectedRecords(const pb::RecordSelectionProto& selection, uint64_t first, uint64_t count);

// A block size that gives whole batches where the data allows: a multiple of batch_size (and of the
// selection's modulo) unless that is too large. Leases make up for blocks of less than a batch.
uint32_t DefaultBlockRecords(const pb::DatasetProto& dataset);

// Of one file: how many records it has before selection and, if known, where each block of them
// begins.
struct FileLayout {
  FileLayout(uint64_t count) : records(count) {}  // NOLINT(google-explicit-constructor)
  explicit FileLayout(const pb::FileLayoutProto& proto);

  uint64_t records;
  uint64_t bytes = 0;
  // A hash of all that the proto says: records, length, and of each block its place and beginning.
  // Every format's look through a file finds these; of files that are read in lockstep the first
  // one's only. So a change further inside a block that keeps the length stays unseen. 0: nothing
  // is known.
  uint64_t contents = 0;
  struct Mark {
    uint64_t offset;
    uint64_t line;
  };
  std::vector<Mark> marks;           // one a block, or none
  std::vector<uint32_t> beginnings;  // as FileLayoutProto; one a mark, or none
};

// A dataset and what is in its files. Cheap to copy.
struct DataLayout {
  pb::DatasetProto dataset;                              // without its files
  std::shared_ptr<const std::vector<FileLayout>> files;  // not null

  // Of how many records are in the files, in which order and how they are cut. Paths do not matter,
  // so that data may be moved. What the records are: ContentsOf (data_contents.h).
  uint64_t Fingerprint() const;
};

// Of a lease, about, if that is a batch at least: without shuffling enough to be worth a request,
// and few enough to share work evenly.
uint64_t LeaseRecords(const pb::DatasetProto& dataset);
// Batches of a lease that had to become longer to hold one; few, for a worker keeps all its
// records.
inline constexpr uint64_t kBatchesOfLengthened = 4;
// A block of a file, with its place in the file if that is known.
pb::BlockProto BlockOf(const DataLayout& data, uint32_t file, uint64_t first, uint64_t count);

struct PlannedLease {
  std::shared_ptr<const pb::LeaseProto> lease;  // not null
  uint64_t records = 0;                         // selected ones, bad ones included
  uint32_t batches = 0;                         // ceil(records / batch_size)
};

// The leases of one epoch in the order in which they are handed out. With shuffle_records > 0
// blocks are scattered by (seed, epoch), so that a lease holds blocks of the whole dataset; else
// they follow the files. Each lease but the last holds a batch at least.
class EpochPlan {
 public:
  // INVALID_ARGUMENT if no record is left.
  static absl::StatusOr<EpochPlan> Make(const DataLayout& data, uint64_t epoch);

  // batches() of the same plan without making it; 0 if no record is left.
  static uint64_t CountBatches(const DataLayout& data, uint64_t epoch);
  // Batches of each of leases(), in the same way.
  static std::vector<uint32_t> BatchesOfLeases(const DataLayout& data, uint64_t epoch);

  uint64_t epoch() const { return epoch_; }
  const std::vector<PlannedLease>& leases() const { return leases_; }
  uint64_t batches() const { return batches_; }
  uint64_t records() const { return records_; }
  // Whether a lease would hold less than a batch if it ended at LeaseRecords, as in plans of
  // earlier versions. Without such a lease the plan is theirs.
  bool lengthened() const { return lengthened_; }

 private:
  uint64_t epoch_ = 0;
  std::vector<PlannedLease> leases_;
  uint64_t batches_ = 0;
  uint64_t records_ = 0;
  bool lengthened_ = false;
};

// Where a dataset stands; one that every worker reads by itself (visitation: none) has no such
// place.
struct DataProgress {
  uint64_t epoch = 0;
  uint64_t left = 0;  // batches of the epoch that no scheduled function will take
};
// Once functions that wait have taken so many batches as well: in order, from later epochs too, as
// DataLeases hands them out. Counts the batches of each epoch that they enter, which takes long if
// there are many blocks.
DataProgress ProgressAfter(const DataLayout& data, DataProgress at, uint64_t batches);

}  // namespace mu
