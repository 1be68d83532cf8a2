// The rows of an embedding table in a file, out of a running job and into one: for other programs,
// and for rows that come from elsewhere. Values only; a checkpoint has the optimizer's slots, too.
//
// The file is in the safetensors format: the tensor NAME is float32 [n, dim], the tensor "NAME.ids"
// int64 [n] says which rows these are.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

// Writes all rows that exist, and returns how many. Holds their ids in memory, and the rows of one
// piece. Join first: rows that functions change meanwhile are of different moments. The file
// appears when it is whole.
absl::StatusOr<uint64_t> ExportTable(Coordinator& coordinator, const EmbeddingTable& table,
                                     const std::string& path);

// Assigns the rows of the file, piece by piece, creating those that do not exist; returns how many.
// A file without "NAME.ids", such as `coordinator export --safetensors` writes, has the rows from 0
// on. FAILED_PRECONDITION if the file cannot be opened, NOT_FOUND if it has no tensor of the
// table's name, INVALID_ARGUMENT if it has another type or dim, or holds NaN or infinity,
// OUT_OF_RANGE for a row that the table does not have: nothing is assigned then. After an error of
// a server some pieces may have been assigned, and it says how many rows: do it again. So it does
// if what was assigned fills the memory for it before the job has begun (Coordinator::begun):
// FAILED_PRECONDITION.
//
// The coordinator keeps what was assigned until two checkpoints contain it: take one after each
// large file (Coordinator::Checkpoint).
absl::StatusOr<uint64_t> ImportTable(Coordinator& coordinator, const EmbeddingTable& table,
                                     const std::string& path);

}  // namespace mu
