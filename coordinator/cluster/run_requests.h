// Runs as they are said on the stream to one worker. The blocks of a lease take kilobytes, and many
// functions read of one lease: the stream brings each lease once, under an id. Used by one thread
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "coordinator/core/batch_range.h"
#include "coordinator/core/function_queue.h"
#include "proto/worker.pb.h"

namespace mu {

class RunRequests {
 public:
  struct Run {
    StartRun start;
    pb::RequestContext context;
    Fingerprint fingerprint;
    ViewId view = {};  // whose values it reads; 0: the current ones
    uint64_t step_offset = 0, draw_offset = 0;
    uint32_t most_contributions = 0;                           // of its round
    std::shared_ptr<const std::vector<pb::TensorProto>> args;  // null: none
    std::vector<BatchRange> batches;
    std::shared_ptr<const pb::LeaseProto> upcoming;  // null: none
  };
  // INVALID_ARGUMENT (ERROR_USER): with its leases the run has more than `most_bytes`.
  static absl::Status CheckSize(const Run& run, uint64_t most_bytes);
  // Appends parts of a FeedRequest: the run, leases that are new to the stream, and the ids of
  // those that nobody but this has any more.
  void Append(const Run& run, std::string* message);
  // That the worker has: those in use, and at most as many that are not any more.
  size_t kept() const { return leases_.size(); }

 private:
  struct Lease {
    std::shared_ptr<const pb::LeaseProto> lease;  // so that no other one gets its address
    uint64_t id = 0;
  };
  uint64_t IdOf(const std::shared_ptr<const pb::LeaseProto>& lease, pb::FeedRequest* message);

  absl::flat_hash_map<const pb::LeaseProto*, Lease> leases_;
  uint64_t next_id_ = 1;
  size_t look_at_ = 64;  // so many leases: those that nobody else has are forgotten
};

}  // namespace mu
