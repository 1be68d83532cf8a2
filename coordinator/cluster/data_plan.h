// Cuts a dataset into blocks and groups the blocks of an epoch into leases. Pure and deterministic: the plan depends on
// the dataset and the record counts of its files alone, never on workers.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "proto/dataset.pb.h"

namespace mu {

// Records of a file's range [first, first + count) that the selection keeps.
uint64_t SelectedRecords(const pb::RecordSelectionProto& selection, uint64_t first, uint64_t count);

// A block size that gives whole batches where the data allows: a multiple of batch_size (and of the selection's modulo).
uint32_t DefaultBlockRecords(const pb::DatasetProto& dataset);

struct PlannedLease {
  pb::LeaseProto lease;
  uint64_t records = 0;  // selected ones, bad ones included
  uint32_t batches = 0;  // ceil(records / batch_size)
};

// The leases of one epoch in the order in which they are handed out. With shuffle_records > 0 blocks are scattered by
// (seed, epoch), so that a lease holds blocks of the whole dataset; else they follow the files.
class EpochPlan {
 public:
  // `file_records`: records of each file before selection. INVALID_ARGUMENT if no record is left.
  static absl::StatusOr<EpochPlan> Make(const pb::DatasetProto& dataset,
                                        const std::vector<uint64_t>& file_records, uint64_t epoch);

  const std::vector<PlannedLease>& leases() const { return leases_; }
  uint64_t batches() const { return batches_; }
  uint64_t records() const { return records_; }

 private:
  std::vector<PlannedLease> leases_;
  uint64_t batches_ = 0;
  uint64_t records_ = 0;
};

}  // namespace mu
