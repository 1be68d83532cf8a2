// Who reads which records: hands out the batches of a dataset, lease by lease. A pure state
// machine.
//
// A worker keeps to its lease (it has parsed it); without one it gets the next of the epoch; when
// none is left it helps with the lease that has most left. Every batch is handed out once per
// epoch; a function that is lost keeps the batches that were bound to it, so nothing comes back
// here.
#pragma once

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "coordinator/core/batch_range.h"
#include "coordinator/core/data_plan.h"
#include "proto/checkpoint.pb.h"
#include "proto/worker.pb.h"

namespace mu {

class DataLeases {
 public:
  DataLeases(pb::DatasetProto dataset, std::vector<FileLayout> files);

  // Up to `steps` batches for a function that goes to `worker`; fewer, or none, at the end of the
  // data.
  std::vector<BatchRange> Take(WorkerId worker, uint32_t steps);

  // Leases that `worker` will probably read after those it has.
  std::vector<pb::LeaseProto> Upcoming(WorkerId worker) const;

  // The worker is gone: what is left of its lease goes to whoever asks next.
  void Forget(WorkerId worker);

  bool Exhausted() const;
  uint64_t epoch() const { return epoch_; }
  const pb::DatasetProto& dataset() const { return dataset_; }
  // Batches of an epoch; the same for all but the short ones at the ends of leases.
  uint64_t BatchesInEpoch(uint64_t epoch) const;
  // Sets the position to the start of an epoch and forgets who read what.
  void StartEpoch(uint64_t epoch);

  // What has been handed out, for another coordinator to continue after.
  pb::DatasetPositionProto Position() const;
  // INVALID_ARGUMENT if the position is of other data: other files, records, batches or order.
  absl::Status Resume(const pb::DatasetPositionProto& position);
  // Batches of the current epoch that have not been handed out.
  uint64_t left() const { return left_; }

  const EpochPlan& plan() const { return plan_; }
  const absl::Status& status() const { return status_; }

 private:
  struct Cursor {
    uint32_t next_batch = 0;
  };
  void LoadEpoch();
  bool TakeFrom(size_t lease, uint32_t* steps, std::vector<BatchRange>* out);
  uint32_t Left(size_t lease) const;
  uint64_t DataFingerprint() const;

  const pb::DatasetProto dataset_;
  const std::vector<FileLayout> files_;
  absl::Status status_;
  uint64_t epoch_ = 0;
  EpochPlan plan_;
  std::vector<Cursor> cursors_;  // parallel to plan_.leases()
  size_t next_lease_ = 0;        // the first that nobody has begun
  std::vector<size_t> orphans_;  // begun, and their workers are gone
  std::map<WorkerId, size_t> held_;
  uint64_t left_ = 0;  // batches of this epoch not handed out
};

}  // namespace mu
