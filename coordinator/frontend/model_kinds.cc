#include "coordinator/frontend/model_kinds.h"

#include "coordinator/frontend/cnn.h"
#include "coordinator/frontend/din.h"
#include "coordinator/frontend/mmoe.h"
#include "coordinator/frontend/resnet.h"
#include "coordinator/frontend/sasrec.h"
#include "coordinator/frontend/two_tower.h"

namespace mu {
namespace {

using Kind = pb::ModelProto;

template <typename M, auto config>
ModelKind Row(const char* name, Kind::KindCase kind) {
  return {name, kind, [](const pb::ModelProto& model) { return M::Problems((model.*config)()); },
          [](const pb::ModelProto& model) { return M::FromConfig((model.*config)()); }};
}

}  // namespace

absl::Span<const ModelKind> ModelKinds() {
  static const auto* const kinds = new std::vector<ModelKind>{
      Row<Cnn, &Kind::cnn>("cnn", Kind::kCnn),
      Row<ResNet, &Kind::resnet>("resnet", Kind::kResnet),
      Row<TwoTower, &Kind::two_tower>("two_tower", Kind::kTwoTower),
      Row<Din, &Kind::din>("din", Kind::kDin),
      Row<SasRec, &Kind::sasrec>("sasrec", Kind::kSasrec),
      Row<Mmoe, &Kind::mmoe>("mmoe", Kind::kMmoe),
  };
  return *kinds;
}

const ModelKind* ModelKindOf(const pb::ModelProto& model) {
  for (const ModelKind& kind : ModelKinds()) {
    if (kind.kind == model.kind_case()) return &kind;
  }
  return nullptr;
}

}  // namespace mu
