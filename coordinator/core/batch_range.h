// Batches that a function reads, as the coordinator holds them. The lease is shared: many functions
// read of one, each may be kept for a repeat, and a lease's blocks take kilobytes.
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "proto/dataset.pb.h"

namespace mu {

// `batches` consecutive batches of a lease.
struct BatchRange {
  std::shared_ptr<const pb::LeaseProto> lease;  // not null
  uint32_t first_batch = 0;
  uint32_t batches = 0;
};

inline BatchRange FromProto(const pb::BatchRangeProto& proto) {
  return {std::make_shared<const pb::LeaseProto>(proto.lease()), proto.first_batch(),
          proto.batches()};
}

}  // namespace mu
