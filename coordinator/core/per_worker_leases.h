// `visitation: none`: every worker goes through all records by itself, as often as the dataset's
// `epochs` say (0: without end), in an order of its own if the dataset is shuffled. A pure state
// machine, as DataLeases is; one of these per worker.
//
// A function keeps the batches that it was bound to, also when it moves to another worker, so that
// a step that runs again reads the same records. What has been read is in no checkpoint; a worker
// that comes back under its index goes on where it was, unless a thousand others have left since.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/core/data_leases.h"
#include "proto/checkpoint.pb.h"
#include "proto/dataset.pb.h"

namespace mu {

class PerWorkerLeases {
 public:
  static constexpr size_t kMostGone = 1000;  // whose places are kept

  PerWorkerLeases(pb::DatasetProto dataset, std::vector<FileLayout> files)
      : dataset_(std::move(dataset)), files_(std::move(files)) {}

  // Up to `steps` batches of this worker's own; fewer, or none, at its end of the data.
  std::vector<BatchRange> Take(WorkerId worker, uint32_t steps) {
    return Of(worker).Take(worker, steps);
  }
  // Leases that it will probably read after those it has.
  std::vector<pb::LeaseProto> Upcoming(WorkerId worker) { return Of(worker).Upcoming(worker); }
  // The worker is gone: only its place in the data is kept.
  void Forget(WorkerId worker);
  // All workers begin anew, at the start of this epoch.
  void StartEpoch(uint64_t epoch);

  const pb::DatasetProto& dataset() const { return dataset_; }
  size_t readers() const { return leases_.size(); }
  size_t gone() const { return left_at_.size(); }

 private:
  DataLeases& Of(WorkerId worker);

  const pb::DatasetProto dataset_;
  const std::vector<FileLayout> files_;
  uint64_t first_epoch_ = 0;
  std::map<WorkerId, DataLeases> leases_;
  // Of workers that are gone, the latest kMostGone: most have an index that is never used again.
  std::map<WorkerId, pb::DatasetPositionProto> left_at_;
  std::deque<WorkerId> gone_;  // in the order of their leaving, some perhaps back
};

}  // namespace mu
