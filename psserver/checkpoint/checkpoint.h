// One server's part of a checkpoint: a file of the partitions that it holds
// (docs/checkpoint_format.md), and loading the partitions that a server holds from the files of all
// servers, however many there were.
//
// Thread safe. Errors name the file: DATA_LOSS (size or CRC32C differ, it is malformed, or a
// partition is in no file), RESOURCE_EXHAUSTED (disk full, no memory for the buffer) and what else
// the system says while writing. Of a file that this process cannot open or read, IsCannotRead
// (common/base/cannot_read.h) holds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "proto/psserver.pb.h"
#include "psserver/core/cut_memory.h"
#include "psserver/store/store_cut.h"

namespace mu {

using CheckpointFiles = google::protobuf::RepeatedPtrField<muster::CheckpointFileProto>;

struct SavedFile {
  muster::CheckpointFileProto file;
  uint64_t updates = 0;  // of all its partitions
};

// How a save reads the store: piece by piece, so that somebody who wants the store waits for a
// piece and never for the disk. Runs the function, if there is one, and returns OK; or returns what
// ends the save.
using ReadStore = std::function<absl::Status(const std::function<void()>& read)>;

// Writes the cut as `file` in `directory` (made if it is missing) and ends it before the file is
// synced. Touches the cut and its store only in functions that it gives to `read`.
absl::StatusOr<SavedFile> SaveCheckpointFile(StoreCut* cut, const CutMemory& memory,
                                             const std::string& directory, const std::string& file,
                                             const ReadStore& read);

// INVALID_ARGUMENT for a name that is none or leads out of the directory.
absl::Status CheckFileName(const std::string& file);

struct LoadedCheckpoint {
  uint64_t rows = 0;
  uint64_t updates = 0;
  InheritedMemory memory;  // without what is below the low-water mark
};

// Compares size and CRC32C of those files that hold something of `store`, reading them whole.
// `take`: only what is taken from them.
absl::Status VerifyCheckpointFiles(const StoreDirectory& store, const std::string& directory,
                                   const CheckpointFiles& files,
                                   const muster::TakenValuesProto* take = nullptr);

// Loads what `store` holds and compares size and CRC32C while reading: files may have changed since
// they were verified. After a failure the store holds a mixture. With `take` only what it names,
// and no memory of pushes; all else keeps what the store holds.
absl::StatusOr<LoadedCheckpoint> LoadCheckpoint(const StoreDirectory& store,
                                                const std::string& directory,
                                                const CheckpointFiles& files, uint64_t low_water,
                                                const muster::TakenValuesProto* take = nullptr);

// Loads the values of what `store`, which has no slots, holds: no memory of pushes and no numbers
// of updates. `reserve` is asked before any is loaded, with the bytes that they will have, and
// `go_on` again and again; an error of them ends the load. After a failure the store holds a
// mixture.
absl::Status LoadValues(const StoreDirectory& store, const std::string& directory,
                        const CheckpointFiles& files,
                        const std::function<absl::Status(uint64_t bytes)>& reserve,
                        const std::function<absl::Status()>& go_on);

// Of a partition's value (part 0) or slot part - 1: the variable's shape with the partition's rows,
// or [rows, width] for a slot of another width than the rows have.
std::vector<int64_t> VariablePartShape(const VariableDefinition& definition, uint32_t partition,
                                       size_t part);

}  // namespace mu
