// Models by the name that a job file gives them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/frontend/model.h"
#include "proto/job.pb.h"

namespace mu {

// Filled before use; then safe from all threads.
class ModelRegistry {
 public:
  using Factory =
      std::function<absl::StatusOr<std::unique_ptr<Model>>(const pb::ModelProto& config)>;
  // `json` is the map below the model's name in the job file.
  using JsonFactory =
      std::function<absl::StatusOr<std::unique_ptr<Model>>(const std::string& json)>;

  // With dlrm and matrix_factorization.
  static ModelRegistry WithBuiltins();

  // ALREADY_EXISTS for a taken name; INVALID_ARGUMENT for an empty one.
  absl::Status Register(const std::string& name, Factory factory);
  absl::Status RegisterJson(const std::string& name, JsonFactory factory);

  // INVALID_ARGUMENT: no such model (with the nearest name), or what its factory says of its keys.
  absl::StatusOr<std::unique_ptr<Model>> Create(const pb::ModelProto& config) const;
  bool Has(const std::string& name) const { return factories_.count(name) > 0; }
  std::vector<std::string> Names() const;  // sorted

 private:
  std::map<std::string, Factory> factories_;
};

// "dlrm", "matrix_factorization" or a custom model's name; empty if none is set.
std::string ModelName(const pb::ModelProto& config);

}  // namespace mu
