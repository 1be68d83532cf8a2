#include "psserver/optimizer/update_rule.h"

namespace mu {

std::unique_ptr<const UpdateRule> MakeUpdateRule(const muster::OptimizerProto& full) {
  switch (full.kind_case()) {
    case muster::OptimizerProto::kSgd:
      return MakeSgd(full.sgd());
    case muster::OptimizerProto::kAdagrad:
      return MakeAdagrad(full.adagrad());
    case muster::OptimizerProto::kAdam:
      return MakeAdam(full.adam());
    case muster::OptimizerProto::kAdamw:
      return MakeAdamW(full.adamw());
    case muster::OptimizerProto::kRmsprop:
      return MakeRmsprop(full.rmsprop());
    case muster::OptimizerProto::kRowwiseAdagrad:
      return MakeRowwiseAdagrad(full.rowwise_adagrad());
    case muster::OptimizerProto::kFtrl:
      return MakeFtrl(full.ftrl());
    case muster::OptimizerProto::kLion:
      return MakeLion(full.lion());
    case muster::OptimizerProto::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

}  // namespace mu
