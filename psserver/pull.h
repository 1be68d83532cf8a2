// Answers a pull: checks it whole, then gathers straight into the reply's buffer.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/rpc/buffer.h"
#include "proto/psserver.pb.h"
#include "psserver/compute_threads.h"
#include "psserver/store/store.h"

namespace mu {

// Whether the directory has all partitions that the request names.
bool HoldsAll(const StoreDirectory& directory, const muster::PullRequest& request);

// The reply's frame, with this header. `threads` share its products, one at a time, so the bits are
// the same for any number of them. INVALID_ARGUMENT for malformed requests and for replies of more
// than `most_bytes`, which are not built; OUT_OF_RANGE for ids that a table does not have.
absl::StatusOr<Buffer> ExecutePull(const StoreDirectory& directory,
                                   const muster::PullRequest& request,
                                   absl::Span<const char> payload, const muster::PullReply& header,
                                   uint64_t most_bytes, ComputeThreads* threads);

}  // namespace mu
