// Checks of a model's configuration that several models share: each adds what is wrong to a list.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "coordinator/frontend/features.h"

namespace mu {

class ConfigRules {
 public:
  explicit ConfigRules(std::vector<ModelProblem>* problems) : problems_(problems) {}

  void Add(const std::string& key, std::string message, std::string remedy = "",
           bool required = false);
  // A column's name that the model cannot do without.
  void Column(const std::string& key, const std::string& name);
  void Range(const std::string& key, int64_t value, int64_t least, int64_t most,
             const std::string& remedy = "", bool required = false);
  // Widths of layers: at least one, each from 1 to 65536.
  void Widths(const std::string& key, const google::protobuf::RepeatedField<uint32_t>& widths);
  // A part of all from 0, below 1.
  void Dropout(const std::string& key, float rate);
  // What FeatureSet finds, below `key`.
  void Features(const std::string& key, const FeatureSet::Config& features);
  // Number of rows of a table.
  void Rows(const std::string& key, int64_t rows);

 private:
  std::vector<ModelProblem>* const problems_;
};

// OK if there are none, otherwise INVALID_ARGUMENT with the first: "model.NAME.KEY: ...".
absl::Status FirstProblem(const std::string& model, const std::vector<ModelProblem>& problems);

}  // namespace mu
