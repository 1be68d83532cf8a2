// How much of a variable or table one call to the servers carries when a program reads or assigns
// values: more goes in several calls. So no message is too large, each arrives within the time of a
// short call, and what has to be kept of assignments grows in small pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "common/sharding/parameter_access.h"

namespace mu {

// 1.3 s on a network of 100 Mbit/s.
inline constexpr uint64_t kValuePieceBytes = uint64_t{16} << 20;

// Rows of `row_bytes` in a piece; a larger row is a piece of its own.
int64_t RowsInPiece(uint64_t row_bytes, uint64_t piece_bytes);

// As access->Pull, with as many pulls as it takes, one after the other. `read.rows` is not -1. Rows
// that others change meanwhile may be of different moments. The error of the first that fails.
absl::Status PullInPieces(ParameterAccess* access, const VariableRead& read, size_t row_bytes,
                          uint64_t piece_bytes);
absl::Status PullInPieces(ParameterAccess* access, const RowsRead& read, size_t dim,
                          uint64_t piece_bytes);

}  // namespace mu
