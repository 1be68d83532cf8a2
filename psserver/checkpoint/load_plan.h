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
#include "proto/psserver.pb.h"
#include "psserver/checkpoint/checkpoint.h"

namespace mu {

// What a load takes of a checkpoint: all under its own name, or what a warm start names.
class TakenNames {
 public:
  // Null: all.
  explicit TakenNames(const muster::TakenValuesProto* take);
  // What a variable or table is called in the files; null if nothing of it is taken.
  const std::string* Find(const std::string& own) const;
  bool all() const { return all_; }
  bool slots() const { return slots_; }

 private:
  bool all_;
  bool slots_;
  std::map<std::string, std::string> from_;  // by own name
};

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
    // Several of a tensor, where a warm start gives its values to several variables or tables.
    std::map<const TensorEntry*, std::vector<Use>> uses;
    std::vector<Use> partitions;  // taken from this file: part means nothing
  };

  // Opens the files and finds all that `store` holds; a partition that none of them has keeps what
  // it holds: it was created after they were written. DATA_LOSS if a file is damaged in a way that
  // shows, if they have nothing of the model at all, or if they lack a partition that `take` names.
  static absl::StatusOr<LoadPlan> Make(const StoreDirectory& store, const std::string& directory,
                                       const CheckpointFiles& files,
                                       const muster::TakenValuesProto* take = nullptr);

  std::vector<File>& files() { return files_; }
  const TakenNames& taken() const { return taken_; }

 private:
  explicit LoadPlan(const muster::TakenValuesProto* take) : taken_(take) {}
  absl::Status Open(const std::string& directory, const CheckpointFiles& files);
  absl::Status AddVariable(const StoredVariable& variable, uint32_t p);
  absl::Status AddTable(const StoredTable& table, uint32_t p);
  // The file that has the tensor; null if none has: it is noted as absent.
  File* FileWith(const std::string& name);
  absl::Status CheckAbsent(const StoreDirectory& store) const;
  static absl::Status Expect(const File& file, const std::string& name, DType dtype,
                             const std::vector<int64_t>& shape, const TensorEntry** entry);

  TakenNames taken_;
  std::vector<File> files_;
  std::string names_;
  std::vector<std::string> absent_;
};

// Compares the sum of a whole file with its checkpoint's.
absl::Status VerifySum(const LoadPlan::File& file);

}  // namespace mu
