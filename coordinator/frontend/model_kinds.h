// The models that check their own configuration: one row each. The registry, the checks of job
// files and the names of models go by it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/frontend/features.h"

namespace mu {

struct ModelKind {
  std::string name;  // below `model` in a job file
  pb::ModelProto::KindCase kind;
  // All that is wrong with the configuration.
  std::vector<ModelProblem> (*problems)(const pb::ModelProto& model);
  absl::StatusOr<std::unique_ptr<Model>> (*create)(const pb::ModelProto& model);
};

// cnn, resnet, two_tower, din, sasrec and mmoe; those that are sums of parts: feature_models.h.
absl::Span<const ModelKind> ModelKinds();
// Null if the model is another one.
const ModelKind* ModelKindOf(const pb::ModelProto& model);

}  // namespace mu
