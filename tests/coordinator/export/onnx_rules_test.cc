// Every op is said in ONNX, or has the reason why not.
#include <gtest/gtest.h>

#include "common/graph/op_table.h"
#include "coordinator/export/onnx_ops.h"

namespace mu {
namespace {

TEST(OnnxRules, EveryOpHasARuleOrAReason) {
  for (const OpDef* def : AllOps().All()) {
    const OnnxRule* rule = AllOnnxRules().Find(def->name);
    EXPECT_NE(rule, nullptr) << def->name
                             << ": add its rule to coordinator/export/onnx_*_ops.cc, or AddNone "
                                "with the reason (docs/how_to_add.md)";
    if (rule == nullptr) continue;
    EXPECT_NE(rule->emit == nullptr, rule->reason.empty()) << def->name;
    // Columns aside, which are the graph's inputs, and variables, only what is computed.
    EXPECT_FALSE(rule->emit != nullptr && (def->has_effect() || def->internal || def->random))
        << def->name;
  }
}

TEST(OnnxRules, NoRuleIsOfAnOpThatIsNotThere) {
  for (const auto& [name, rule] : AllOnnxRules().all())
    EXPECT_NE(AllOps().Find(name), nullptr) << name;
}

}  // namespace
}  // namespace mu
