#include "coordinator/frontend/model_registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/graph/nearest_name.h"
#include "coordinator/frontend/dlrm.h"
#include "coordinator/frontend/feature_models.h"
#include "coordinator/frontend/matrix_factorization.h"
#include "coordinator/frontend/model_kinds.h"

namespace mu {

std::string ModelName(const pb::ModelProto& config) {
  switch (config.kind_case()) {
    case pb::ModelProto::kDlrm:
      return "dlrm";
    case pb::ModelProto::kMatrixFactorization:
      return "matrix_factorization";
    case pb::ModelProto::kCustom:
      return config.custom().name();
    default: {
      if (const ModelKind* const kind = ModelKindOf(config)) return kind->name;
      const FeatureModelKind* const kind = FeatureModelOf(config);
      return kind == nullptr ? "" : kind->name;
    }
  }
}

ModelRegistry ModelRegistry::WithBuiltins() {
  ModelRegistry registry;
  const absl::Status dlrm = registry.Register("dlrm", [](const pb::ModelProto& config) {
    return absl::StatusOr<std::unique_ptr<Model>>(Dlrm::FromConfig(config.dlrm()));
  });
  const absl::Status factorization =
      registry.Register("matrix_factorization", [](const pb::ModelProto& config) {
        return absl::StatusOr<std::unique_ptr<Model>>(
            MatrixFactorization::FromConfig(config.matrix_factorization()));
      });
  MU_CHECK(dlrm.ok() && factorization.ok());
  for (const FeatureModelKind& kind : FeatureModelKinds()) {
    const absl::Status registered =
        registry.Register(kind.name, [&kind](const pb::ModelProto& config) {
          return FeatureModel::FromConfig(kind, (config.*kind.config)());
        });
    MU_CHECK(registered.ok());
  }
  for (const ModelKind& kind : ModelKinds()) {
    const absl::Status registered = registry.Register(kind.name, kind.create);
    MU_CHECK(registered.ok());
  }
  for (ModelDoc& doc : BuiltinModelDocs()) {
    const std::string name = doc.name;
    registry.docs_[name] = std::move(doc);
  }
  return registry;
}

absl::Status ModelRegistry::Register(const std::string& name, Factory factory) {
  if (name.empty()) return absl::InvalidArgumentError("a model needs a name");
  if (!factories_.emplace(name, std::move(factory)).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a model \"", name, "\" already; choose another name"));
  }
  return absl::OkStatus();
}

absl::Status ModelRegistry::RegisterJson(const std::string& name, JsonFactory factory) {
  return Register(name, [factory = std::move(factory)](const pb::ModelProto& config) {
    return factory(config.custom().json().empty() ? "{}" : config.custom().json());
  });
}

absl::StatusOr<std::unique_ptr<Model>> ModelRegistry::Create(const pb::ModelProto& config) const {
  const std::string name = ModelName(config);
  if (name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model: names no model; there are ", absl::StrJoin(Names(), ", ")));
  }
  const auto found = factories_.find(name);
  if (found == factories_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("model: there is no model \"", name, "\"",
                                                   DidYouMean(name, Names()), " There are ",
                                                   absl::StrJoin(Names(), ", ")));
  }
  return found->second(config);
}

const ModelDoc* ModelRegistry::Doc(const std::string& name) const {
  const auto found = docs_.find(name);
  return found == docs_.end() ? nullptr : &found->second;
}

std::vector<std::string> ModelRegistry::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories_) names.push_back(name);
  return names;
}

}  // namespace mu
