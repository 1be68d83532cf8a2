// Models by the name that a job file gives them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "coordinator/frontend/model.h"
#include "coordinator/frontend/model_doc.h"
#include "coordinator/frontend/model_options.h"
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

  // With all models that Muster brings.
  static ModelRegistry WithBuiltins();

  // ALREADY_EXISTS for a taken name; INVALID_ARGUMENT for an empty one.
  absl::Status Register(const std::string& name, Factory factory);
  absl::Status RegisterJson(const std::string& name, JsonFactory factory);
  // A model whose options are a struct with `void Describe(mu::ModelOptions&)`: they are read and
  // checked from the job file, and `coordinator describe` prints them. `what`: a sentence for that.
  template <typename Options>
  absl::Status RegisterOptions(
      const std::string& name, const std::string& what,
      std::function<absl::StatusOr<std::unique_ptr<Model>>(const Options&)> make);

  // INVALID_ARGUMENT: no such model (with the nearest name), or what its factory says of its keys.
  absl::StatusOr<std::unique_ptr<Model>> Create(const pb::ModelProto& config) const;
  bool Has(const std::string& name) const { return factories_.count(name) > 0; }
  std::vector<std::string> Names() const;  // sorted
  // Null if the model does not describe itself, or there is none of that name.
  const ModelDoc* Doc(const std::string& name) const;

 private:
  std::map<std::string, Factory> factories_;
  std::map<std::string, ModelDoc> docs_;
};

template <typename Options>
absl::Status ModelRegistry::RegisterOptions(
    const std::string& name, const std::string& what,
    std::function<absl::StatusOr<std::unique_ptr<Model>>(const Options&)> make) {
  const absl::Status registered = RegisterJson(
      name, [name, make](const std::string& json) -> absl::StatusOr<std::unique_ptr<Model>> {
        Options options;
        ModelOptions reader;
        options.Describe(reader);
        MU_RETURN_IF_ERROR(reader.Read(name, json));
        return make(options);
      });
  MU_RETURN_IF_ERROR(registered);
  Options defaults;
  ModelOptions described;
  defaults.Describe(described);
  docs_[name] = described.Doc(name, what);
  return absl::OkStatus();
}

// "dlrm", "matrix_factorization" or a custom model's name; empty if none is set.
std::string ModelName(const pb::ModelProto& config);

}  // namespace mu
