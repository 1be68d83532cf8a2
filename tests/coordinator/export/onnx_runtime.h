// ONNX Runtime in a process of its own: node with the package onnxruntime-node, which
// tests/coordinator/export/onnxruntime.sh installs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/common/exec/dense.h"

namespace mu::testing {

struct OnnxCase {
  std::string model;  // a file
  std::map<std::string, Dense> inputs;
};
struct OnnxAnswer {
  std::string error;  // empty: it ran
  std::map<std::string, Dense> outputs;
};

// Empty if it is there; else what is missing.
std::string OnnxRuntimeMissing();

// One answer for each case. `folder` is for its files.
absl::StatusOr<std::vector<OnnxAnswer>> RunOnnx(const std::vector<OnnxCase>& cases,
                                                const std::string& folder);

}  // namespace mu::testing
