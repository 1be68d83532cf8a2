// Variables and tables of which a server holds a partition that a request names.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "psserver/store/store.h"

namespace mu {

template <typename Stored>
absl::StatusOr<const Stored*> Held(const Stored* stored, const char* kind, uint32_t id,
                                   uint32_t partition) {
  if (stored != nullptr && partition < stored->partitions.size() &&
      stored->partitions[partition] != nullptr)
    return stored;
  return absl::InvalidArgumentError(absl::StrCat("partition ", partition, " of the ", kind,
                                                 " with id ", id, " is not held here"));
}

// INVALID_ARGUMENT: not this partition.
inline absl::StatusOr<const StoredVariable*> HeldVariable(const StoreDirectory& directory,
                                                          uint32_t id, uint32_t partition) {
  return Held(directory.variable(id), "variable", id, partition);
}
inline absl::StatusOr<const StoredTable*> HeldTable(const StoreDirectory& directory, uint32_t id,
                                                    uint32_t partition) {
  return Held(directory.table(id), "table", id, partition);
}

}  // namespace mu
