// RunRequests as bytes. The blocks of a lease take kilobytes and go with every function that reads
// of it: they are serialised once per lease, not once per function. Not synchronised.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "coordinator/core/batch_range.h"
#include "proto/worker.pb.h"

namespace mu {

class RunRequests {
 public:
  // `header`: all but `batches` and `upcoming`. `upcoming` may be null.
  std::string Serialize(const pb::RunRequest& header, const std::vector<BatchRange>& batches,
                        const std::shared_ptr<const pb::LeaseProto>& upcoming);
  // Leases whose bytes are kept: those in use, and at most as many that are not any more.
  size_t kept() const { return leases_.size(); }

 private:
  struct Lease {
    std::shared_ptr<const pb::LeaseProto> lease;  // so that no other one gets its address
    std::string bytes;
  };
  const std::string& BytesOf(const std::shared_ptr<const pb::LeaseProto>& lease);

  absl::flat_hash_map<const pb::LeaseProto*, std::unique_ptr<const Lease>> leases_;
  size_t look_at_ = 64;  // so many leases: those that nobody else has are forgotten
};

}  // namespace mu
