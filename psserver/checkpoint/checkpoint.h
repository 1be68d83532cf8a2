// One server's part of a checkpoint: a file of the partitions that it holds (docs/checkpoint_format.md), and loading the
// partitions that a server holds from the files of all servers, however many there were.
//
// Thread safe. Errors name the file: NOT_FOUND (missing, or a partition is in none of them), DATA_LOSS (size or CRC32C
// differ, or it is malformed), RESOURCE_EXHAUSTED (disk full) and what else the system says.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "psserver/store/store.h"

namespace mu {

using CheckpointFiles = google::protobuf::RepeatedPtrField<muster::CheckpointFileProto>;

// Writes `file` in `directory` (made if it is missing). The rows are those that exist when it begins; each partition is
// locked in turn, for as long as copying it takes.
absl::StatusOr<muster::CheckpointFileProto> SaveCheckpointFile(const StoreDirectory& store,
                                                               const std::string& directory, const std::string& file);

// Reads every file whole and compares size and CRC32C.
absl::Status VerifyCheckpointFiles(const std::string& directory, const CheckpointFiles& files);

// Loads what `store` holds. Returns the number of table rows loaded.
absl::StatusOr<uint64_t> LoadCheckpoint(const StoreDirectory& store, const std::string& directory,
                                        const CheckpointFiles& files);

// Names of tensors: "variables/NAME/PARTITION/PART" and "tables/NAME/PARTITION/PART".
std::string VariableTensorName(const std::string& name, uint32_t partition, const std::string& part);
std::string TableTensorName(const std::string& name, uint32_t partition, const std::string& part);
std::string SlotPart(uint32_t slot);  // "slot_K"

}  // namespace mu
