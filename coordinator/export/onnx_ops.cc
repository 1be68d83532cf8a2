#include "coordinator/export/onnx_ops.h"

#include <utility>

#include "common/base/check.h"

namespace mu {
namespace {

OnnxRules MakeRules() {
  OnnxRules rules;
  AddOnnxElementwiseRules(&rules);
  AddOnnxMathRules(&rules);
  AddOnnxNeuralRules(&rules);
  AddOnnxArrayRules(&rules);
  AddOnnxParameterRules(&rules);
  return rules;
}

}  // namespace

void OnnxRules::Add(const std::string& op, EmitOnnx emit) {
  MU_CHECK(rules_.emplace(op, OnnxRule{std::move(emit), ""}).second);
}
void OnnxRules::AddSame(const std::string& op, const std::string& onnx) {
  Add(op, [onnx](OnnxOp& o) -> OnnxOutputs {
    return std::vector<std::string>{o.graph.Add(onnx, o.inputs)};
  });
}
void OnnxRules::AddNone(const std::string& op, const std::string& reason) {
  MU_CHECK(rules_.emplace(op, OnnxRule{nullptr, reason}).second);
}
const OnnxRule* OnnxRules::Find(const std::string& op) const {
  const auto it = rules_.find(op);
  return it == rules_.end() ? nullptr : &it->second;
}

const OnnxRules& AllOnnxRules() {
  static const OnnxRules& rules = *new OnnxRules(MakeRules());
  return rules;
}

}  // namespace mu
