// Which batch each step of a run reads. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/dataset.pb.h"

namespace mu {

// Batches of a lease, one after the other.
struct LeasedBatches {
  std::shared_ptr<const muster::LeaseProto> lease;
  uint32_t first_batch = 0;
  uint32_t batches = 0;
};

class StepPlan {
 public:
  // `ranges` hold the batches of all steps, from step 0; they must outlive the plan.
  explicit StepPlan(const std::vector<LeasedBatches>& ranges);

  struct Place {
    const muster::LeaseProto* lease = nullptr;  // null: the data ended before this step
    uint32_t batch = 0;                         // within the lease
  };
  Place At(uint32_t step) const;

  // The leases from the one that `first_step` reads, in the order of use.
  std::vector<const muster::LeaseProto*> LeasesFrom(uint32_t first_step) const;

 private:
  const std::vector<LeasedBatches>& ranges_;
  std::vector<uint64_t> ends_;  // step after the last of each range
};

}  // namespace mu
