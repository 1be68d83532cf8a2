// Variables and tables of a checkpoint as files that other programs read: one .npy each, or all in
// one safetensors file. Written piece by piece, in bounded memory.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/export/checkpoint_values.h"

namespace mu {

// The values whose names match one of the patterns, in which `*` stands for any text; all without
// patterns. NOT_FOUND for a pattern that matches nothing, with the nearest name.
absl::StatusOr<std::vector<StoredValue>> SelectValues(const std::vector<StoredValue>& values,
                                                      const std::vector<std::string>& patterns);

// The header of a .npy file (version 1.0 of NumPy's format): row-major, little-endian, padded to a
// multiple of 64 bytes.
std::string NpyHeader(DType dtype, const Shape& shape);

// The file of each value, NAME.npy below `folder`. INVALID_ARGUMENT for a name that leads out of
// it.
absl::StatusOr<std::vector<std::string>> NpyPaths(const std::vector<StoredValue>& values,
                                                  const std::string& folder);

// Writes each value into its file of NpyPaths. The folder is made, as are the folders of a name
// with slashes. Returns the files' paths.
absl::StatusOr<std::vector<std::string>> WriteNpyFiles(const CheckpointValues& checkpoint,
                                                       const std::vector<StoredValue>& values,
                                                       const std::string& folder);

// Tensors are called as the variables and tables are, and lie in the order of `values`, those of
// larger elements first.
absl::Status WriteSafetensors(const CheckpointValues& checkpoint, std::vector<StoredValue> values,
                              const std::string& path);

}  // namespace mu
