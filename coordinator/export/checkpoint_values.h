// The values of a checkpoint's variables and tables by name, read from its files, without a cluster
// (docs/checkpoint_format.md). Rows that no step has touched have their initial values.
//
// Memory is bounded by a piece of some megabytes, whatever a table's size. Thread safe once opened.
// Errors: NOT_FOUND (no checkpoint, or a file of it is missing), DATA_LOSS naming the file that is
// damaged, INVALID_ARGUMENT if the manifest describes what cannot be.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/safetensors.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "proto/checkpoint.pb.h"

namespace mu {

struct StoredValue {
  std::string name;
  DType dtype = kFloat32;
  Shape shape;  // a table's: [rows, dim]
  bool is_table = false;

  uint64_t bytes() const { return static_cast<uint64_t>(shape.elements()) * ElementSize(dtype); }
};

// Takes the bytes of a value piece by piece, in row-major order.
using ByteSink = std::function<absl::Status(absl::string_view bytes)>;

class CheckpointValues {
 public:
  // `directory` is the checkpoint itself. Compares every file's size and CRC32C with the manifest,
  // which reads the files once.
  static absl::StatusOr<CheckpointValues> Open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const muster::CheckpointProto& manifest() const { return manifest_; }
  // All variables, then all tables, each in the order of the manifest.
  const std::vector<StoredValue>& values() const { return values_; }
  const StoredValue* Find(absl::string_view name) const;  // null: there is none
  // Null if there is none.
  const muster::VariableProto* FindVariable(absl::string_view name) const;
  const muster::TableProto* FindTable(absl::string_view name) const;

  // All bytes of a value of values(), in the order of its rows.
  absl::Status Read(const StoredValue& value, const ByteSink& sink) const;

 private:
  // A tensor in one of the files; `entry` is null if no file has it.
  struct Found {
    const SafetensorsReader* file = nullptr;
    const TensorEntry* entry = nullptr;
  };

  CheckpointValues(std::string directory, muster::CheckpointProto manifest)
      : directory_(std::move(directory)), manifest_(std::move(manifest)) {}

  Found FindTensor(const std::string& name) const;
  absl::StatusOr<Found> FindTensor(const std::string& name, DType dtype,
                                   const std::vector<int64_t>& shape) const;
  absl::Status ReadVariable(const muster::VariableProto& variable, const ByteSink& sink) const;
  absl::Status ReadTable(const muster::TableProto& table, const ByteSink& sink) const;

  std::string directory_;
  muster::CheckpointProto manifest_;
  std::vector<SafetensorsReader> files_;
  std::vector<StoredValue> values_;
};

}  // namespace mu
