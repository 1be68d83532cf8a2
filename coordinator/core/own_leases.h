// The leases of a worker that reads a dataset by itself (`visitation: none`): one after the other,
// each made when it is needed, in an order of the worker's own if the dataset is shuffled. Whatever
// the number of blocks, a worker takes the memory of the two leases that it is at. A pure state
// machine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/core/batch_range.h"
#include "coordinator/core/data_plan.h"

namespace mu {

// Where the blocks of a dataset's files are; the same for all workers. Constant.
class BlockIndex {
 public:
  explicit BlockIndex(DataLayout data);

  const DataLayout& data() const { return data_; }
  uint64_t blocks() const { return first_of_file_.back(); }
  uint64_t blocks_of_lease() const { return blocks_of_lease_; }
  uint64_t leases() const { return (blocks() + blocks_of_lease_ - 1) / blocks_of_lease_; }
  // Its records that are selected: `*selected`, perhaps none.
  pb::BlockProto Block(uint64_t number, uint64_t* selected) const;

 private:
  const DataLayout data_;
  std::vector<uint64_t> first_of_file_;  // and their sum
  uint64_t blocks_of_lease_ = 1;
};

class OwnLeases {
 public:
  // Where a worker is.
  struct Place {
    uint64_t epoch = 0;
    uint64_t lease = 0;  // of the epoch, counted without end
    uint32_t next_batch = 0;
  };
  OwnLeases(std::shared_ptr<const BlockIndex> blocks, uint64_t seed, Place at);

  // Up to `steps` batches; fewer, or none, after the last epoch of the dataset.
  std::vector<BatchRange> Take(uint32_t steps);
  // What it will probably read after the lease that it is at; null: not yet, or nothing.
  std::shared_ptr<const pb::LeaseProto> Upcoming();
  Place place() const { return {at_.epoch, at_.lease, next_batch_}; }

 private:
  struct Made {
    Place of;
    std::shared_ptr<const pb::LeaseProto> lease;  // null: there is none, the data has ended
    uint32_t batches = 0;
  };
  // The first lease from this one on that has records.
  Made Make(Place of) const;

  const std::shared_ptr<const BlockIndex> blocks_;
  const uint64_t seed_;
  Place at_;  // of the lease below, or of where to look for it
  std::optional<Made> current_;
  std::optional<Made> next_;
  uint32_t next_batch_ = 0;
};

}  // namespace mu
