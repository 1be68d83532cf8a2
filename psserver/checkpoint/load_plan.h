// What a restore takes from which tensor of which file: found and checked before anything is
// changed.
//
// Not thread safe. Errors: as psserver/checkpoint/checkpoint.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/safetensors.h"
#include "psserver/checkpoint/checkpoint.h"

namespace mu {

class LoadPlan {
 public:
  // What is done with a tensor's bytes: part 0 is the value, part 1 + K is slot K.
  struct Use {
    const StoredVariable* variable = nullptr;
    const StoredTable* table = nullptr;
    uint32_t partition = 0;
    size_t part = 0;
    const TensorEntry* ids = nullptr;  // of a table's rows, in the same file
  };
  struct File {
    const muster::CheckpointFileProto* proto;
    SafetensorsReader reader;
    std::map<const TensorEntry*, Use> uses;
    std::vector<Use> partitions;  // taken from this file: part means nothing
  };

  // Opens the files and finds all that `store` holds; a partition that none of them has keeps what
  // it holds: it was created after they were written. DATA_LOSS if a file is damaged in a way that
  // shows, or if they have nothing of the model at all.
  static absl::StatusOr<LoadPlan> Make(const StoreDirectory& store, const std::string& directory,
                                       const CheckpointFiles& files);

  std::vector<File>& files() { return files_; }

 private:
  absl::Status Open(const std::string& directory, const CheckpointFiles& files);
  absl::Status AddVariable(const StoredVariable& variable, uint32_t p);
  absl::Status AddTable(const StoredTable& table, uint32_t p);
  // The file that has the tensor; null if none has: it is noted as absent.
  File* FileWith(const std::string& name);
  absl::Status CheckAbsent(const StoreDirectory& store) const;
  static absl::Status Expect(const File& file, const std::string& name, DType dtype,
                             const std::vector<int64_t>& shape, const TensorEntry** entry);

  std::vector<File> files_;
  std::string names_;
  std::vector<std::string> absent_;
};

// Compares the sum of a whole file with its checkpoint's.
absl::Status VerifySum(const LoadPlan::File& file);

}  // namespace mu
