// The ids of a request, resolved to the partitions of this server and checked. Shared by pulls and
// pushes.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/psserver.pb.h"
#include "psserver/payload.h"
#include "psserver/store/store.h"

namespace mu {

struct RowSegment {
  const StoredTable* table;
  TablePartition* partition;
  uint32_t number;  // of the partition
  absl::Span<const int64_t> ids;
};

// Appends a segment per partition in the order of `tables`, taking their ids from `payload`.
// INVALID_ARGUMENT for keys that are malformed or not held here, OUT_OF_RANGE for ids that a table
// does not have.
absl::Status ResolveTables(const StoreDirectory& directory,
                           const google::protobuf::RepeatedPtrField<muster::TableKeys>& tables,
                           PayloadReader* payload, std::vector<RowSegment>* segments);

}  // namespace mu
