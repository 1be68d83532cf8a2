// An ONNX graph as a file, with the values of a checkpoint in it or beside it.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/export/checkpoint_values.h"
#include "coordinator/export/onnx_graph.h"

namespace mu {

// A protobuf message has less than 2 GiB.
inline constexpr uint64_t kMostBytesInside = 2'000'000'000;
inline constexpr uint64_t kDefaultBytesInside = uint64_t{1} << 30;

// Beside the model at `path`: what is too much to be inside.
std::string OnnxDataPath(const std::string& path);

struct OnnxFiles {
  std::string model;
  std::string data;  // empty: all values are in the model
  uint64_t bytes_inside = 0;
  uint64_t bytes_beside = 0;
};

// Writes PATH and, if the variables and tables have more than `most_inside` bytes together,
// PATH.data with the largest of them (ONNX's external data): those that fit in, the smallest first,
// are inside. A model that is there can be loaded, with its own data: both files are whole before
// either gets its name; then an earlier model goes, the data comes, and the model comes last.
// Memory: what is inside and a piece. `metadata` goes into the model's metadata_props.
absl::StatusOr<OnnxFiles> WriteOnnx(const OnnxGraph& graph, const CheckpointValues& checkpoint,
                                    const std::map<std::string, std::string>& metadata,
                                    const std::string& path,
                                    uint64_t most_inside = kDefaultBytesInside);

}  // namespace mu
