// A look at the rows of a table that exist, piece by piece. Not thread safe.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/rpc/buffer.h"
#include "proto/psserver.pb.h"
#include "psserver/store/store.h"

namespace mu {

// The frame that answers the request, of at most `most_bytes`. INVALID_ARGUMENT for a partition
// that is not held here.
absl::StatusOr<Buffer> ExecuteScan(const StoreDirectory& directory,
                                   const muster::ScanRequest& request, uint64_t most_bytes);

}  // namespace mu
