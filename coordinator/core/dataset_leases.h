// The leases of a dataset. Its workers share them, so that every record is read once an epoch; or,
// with `visitation: none`, every worker goes through all records by itself, as often as the
// dataset's `epochs` say (0: without end), in an order of its own if the dataset is shuffled. A
// pure state machine.
//
// A function keeps the batches that it was bound to, also when it moves to another worker, so that
// a step that runs again reads the same records. What a worker has read by itself is in no
// checkpoint; one that comes back under its index goes on where it was, unless a thousand others
// have left since.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/core/data_leases.h"
#include "coordinator/core/own_leases.h"

namespace mu {

class DatasetLeases {
 public:
  static constexpr size_t kMostGone = 1000;  // whose places are kept

  // `first`: the plan of epoch 0. Not used if every worker reads by itself.
  DatasetLeases(DataLayout data, DataLeases::Plan first);

  // As DataLeases has them. A worker that reads by itself waits for no plan.
  std::optional<std::vector<BatchRange>> Take(WorkerId worker, uint32_t steps);
  std::shared_ptr<const pb::LeaseProto> Upcoming(WorkerId worker);
  std::optional<uint64_t> AskForPlan(uint32_t steps);
  void Bring(DataLeases::Plan plan);
  // The worker is gone: what is left of its lease goes to others; of what it reads by itself only
  // its place is kept.
  void Forget(WorkerId worker);
  // All begin anew, at the start of this epoch. `plan`: of it, as above.
  void StartEpoch(uint64_t epoch, DataLeases::Plan plan);
  // INVALID_ARGUMENT and FAILED_PRECONDITION as DataLeases::Resume.
  absl::Status Fits(const pb::DatasetPositionProto& position, const DataLeases::Plan& plan) const;
  // At a position that fits. Nothing if every worker reads by itself.
  void Resume(const pb::DatasetPositionProto& position, const DataLeases::Plan& plan);

  const DataLayout& data() const { return data_; }
  // Null: every worker reads by itself.
  const DataLeases* shared() const { return shared_.get(); }
  // Of functions, if every worker reads by itself: batches that were given to them since the job or
  // StartEpoch began. 0 if workers share.
  uint64_t steps_taken() const { return steps_taken_; }
  // So many were taken before any of these.
  void SetStepsTaken(uint64_t steps);
  size_t readers() const { return own_.size(); }
  size_t gone() const { return left_at_.size(); }

 private:
  OwnLeases& Own(WorkerId worker);

  const DataLayout data_;
  std::unique_ptr<DataLeases> shared_;
  uint64_t first_epoch_ = 0;
  uint64_t steps_taken_ = 0;                  // of those who read by themselves
  std::shared_ptr<const BlockIndex> blocks_;  // of those who read by themselves
  std::map<WorkerId, OwnLeases> own_;
  // Of workers that are gone, the latest kMostGone: most have an index that is never used again.
  std::map<WorkerId, OwnLeases::Place> left_at_;
  std::deque<WorkerId> gone_;  // in the order of their leaving, some perhaps back
};

}  // namespace mu
