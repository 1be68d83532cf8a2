// Who reads which records: hands out the batches of a dataset, lease by lease. A pure state
// machine.
//
// A worker keeps to its lease (it has parsed it); without one it gets the next of the epoch; when
// none is left it helps with the lease that has most left. Every batch is handed out once per
// epoch; a function that is lost keeps the batches that were bound to it, so nothing comes back
// here.
//
// A plan takes long to make for data of many blocks: it is asked for before it is needed, made
// elsewhere and brought.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
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
  using Plan = std::shared_ptr<const EpochPlan>;

  // Begins with `epoch`. `plan`: of this epoch; null: it is still to be brought.
  DataLeases(DataLayout data, uint64_t epoch, Plan plan);

  // Up to `steps` batches for a function that goes to `worker`; fewer, or none, at the end of the
  // data. nullopt: not before another plan was brought.
  std::optional<std::vector<BatchRange>> Take(WorkerId worker, uint32_t steps);

  // The epoch whose plan is to be made now, if a function of so many steps is the next one; each is
  // asked for once.
  std::optional<uint64_t> AskForPlan(uint32_t steps);
  // Of an epoch that was asked for; others are ignored.
  void Bring(Plan plan);

  // The lease that `worker` will probably read after those it has; null: none, or not yet.
  std::shared_ptr<const pb::LeaseProto> Upcoming(WorkerId worker) const;

  // The worker is gone: what is left of its lease goes to whoever asks next.
  void Forget(WorkerId worker);

  // What has been handed out, for another coordinator to continue after.
  pb::DatasetPositionProto Position() const;
  // To be called first, with the plan of the position's epoch. INVALID_ARGUMENT if the position is
  // of other data: other files, records, batches or order, or of leases that an earlier version
  // made. FAILED_PRECONDITION if files have other contents by now.
  absl::Status Resume(const pb::DatasetPositionProto& position);

  bool Exhausted() const;
  uint64_t epoch() const { return epoch_; }
  // Batches of the current epoch that have not been handed out.
  uint64_t left() const { return left_; }
  Plan plan() const { return plans_.empty() ? nullptr : plans_.front(); }  // of the current epoch
  const DataLayout& data() const { return data_; }

 private:
  void BeginEpoch();
  bool Plans(uint64_t epoch) const;  // it is one that will be read
  uint64_t Known() const;            // batches that are left of all plans
  bool TakeFrom(size_t lease, uint32_t* steps, std::vector<BatchRange>* out);
  using Held = std::map<WorkerId, size_t>;
  bool TakeFromHeld(Held::iterator held, uint32_t* steps, std::vector<BatchRange>* out);
  void Hold(WorkerId worker, size_t lease);
  void LetGo(Held::iterator held);
  uint32_t Left(size_t lease) const;

  // Of the data and, where earlier versions cut the epoch in another way, of how it is cut.
  uint64_t FingerprintOfPlan() const;

  const DataLayout data_;
  const uint64_t fingerprint_;
  const std::vector<uint64_t> contents_;
  uint64_t epoch_;
  std::deque<Plan> plans_;            // of this epoch and those that follow it
  bool asked_ = false;                // for the next one
  std::vector<uint32_t> next_batch_;  // parallel to plan()->leases()
  size_t next_lease_ = 0;             // the first that nobody has begun
  std::vector<size_t> orphans_;       // begun, and their workers are gone
  Held held_;
  struct MostFirst {
    bool operator()(const std::pair<uint32_t, WorkerId>& a,
                    const std::pair<uint32_t, WorkerId>& b) const {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    }
  };
  std::set<std::pair<uint32_t, WorkerId>, MostFirst> left_of_held_;  // batches, most first
  uint64_t left_ = 0;
};

}  // namespace mu
