#include "common/graph/op_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/graph/op_cases.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

const OpCases& Cases() {
  static const OpCases* const cases = [] {
    auto* made = new OpCases;
    AddElementwiseCases(*made);
    AddMathCases(*made);
    AddArrayCases(*made);
    AddComparisonCases(*made);
    AddIntegerCases(*made);
    AddReductionCases(*made);
    AddLayoutCases(*made);
    AddSequenceCases(*made);
    AddNeuralCases(*made);
    AddRandomCases(*made);
    AddGradientCases(*made);
    AddParameterCases(*made);
    return made;
  }();
  return *cases;
}

std::string Describe(const std::vector<TensorSpec>& specs) {
  std::string text;
  for (const TensorSpec& spec : specs) text += spec.ToString() + " ";
  return text;
}

TEST(OpTable, EveryOpHasCasesThatItAcceptsAndRefuses) {
  for (const OpDef* def : AllOps().All()) {
    const auto found = Cases().find(def->name);
    ASSERT_NE(found, Cases().end()) << "no case for op " << def->name;
    int accepted = 0;
    int refused = 0;
    for (const InferCase& one : found->second) ++(one.refusal.empty() ? accepted : refused);
    EXPECT_GT(accepted, 0) << def->name;
    EXPECT_GT(refused, 0) << def->name;
  }
  for (const auto& [name, cases] : Cases()) EXPECT_NE(AllOps().Find(name), nullptr) << name;
}

TEST(OpTable, InfersAndRefuses) {
  for (const auto& [name, cases] : Cases()) {
    const OpDef* def = AllOps().Find(name);
    ASSERT_NE(def, nullptr);
    for (const InferCase& one : cases) {
      SCOPED_TRACE(name + "(" + Describe(one.inputs) + ") " + one.refusal);
      const SpecsOr inferred = def->Infer(one.inputs, one.attrs);
      if (one.refusal.empty()) {
        ASSERT_TRUE(inferred.ok()) << inferred.status();
        EXPECT_EQ(*inferred, one.outputs) << Describe(*inferred);
        if (def->outputs >= 0) {
          EXPECT_EQ(static_cast<int>(inferred->size()), def->outputs);
        }
      } else {
        ASSERT_FALSE(inferred.ok()) << Describe(*inferred);
        EXPECT_EQ(inferred.status().code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(inferred.status().message()), HasSubstr(one.refusal));
      }
    }
  }
}

TEST(OpTable, FlagsAgreeWithEachOther) {
  for (const OpDef* def : AllOps().All()) {
    SCOPED_TRACE(def->name);
    EXPECT_EQ(def->has_effect(), def->outputs == 0);
    if (def->source != OpSource::kNone && !def->reads_parameter() &&
        def->source != OpSource::kSlices) {
      EXPECT_EQ(def->max_inputs, 0);
    }
    EXPECT_FALSE(def->has_effect() && def->source != OpSource::kNone);
    if (def->has_effect() || def->reads_parameter()) {
      EXPECT_NE(def->parameter, OpParameter::kNone);
    }
    EXPECT_FALSE(def->internal && def->traced_only);
    EXPECT_LE(def->min_inputs, def->max_inputs);
    for (const AttrDef& attr : def->attrs) {
      AttrKind kind;
      EXPECT_EQ(KindOfAttr(attr.default_value, &kind), !attr.required);
      if (!attr.required) {
        EXPECT_EQ(kind, attr.kind);
      }
    }
  }
}

TEST(OpTable, EveryOpSaysWhatItTakesAndComputes) {
  size_t ops = 0;
  for (const OpTable::Section& section : AllOps().sections()) {
    EXPECT_FALSE(section.title.empty());
    ops += section.ops.size();
  }
  EXPECT_EQ(ops, AllOps().All().size());
  for (const OpDef* def : AllOps().All()) {
    SCOPED_TRACE(def->name);
    EXPECT_THAT(def->signature, ::testing::StartsWith("("));
    EXPECT_EQ(def->signature.find("->") != std::string::npos, def->outputs != 0);
    EXPECT_THAT(def->doc, ::testing::EndsWith("."));
    if (def->random) {
      EXPECT_THAT(def->attrs, ::testing::Contains(::testing::Field(&AttrDef::name, "seed")));
      EXPECT_THAT(def->attrs, ::testing::Contains(::testing::Field(&AttrDef::name, "index")));
    }
  }
}

TEST(OpTable, UnknownOpNamesTheNearest) {
  const auto missing = AllOps().Get("mat_mul");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("did you mean \"matmul\"?"));
}

TEST(OpTable, RefusesTensorsTooLargeToExist) {
  const TensorSpec wide = F32({1 << 30, 1});
  const TensorSpec high = F32({1, 1 << 30});
  EXPECT_FALSE(AllOps().Find("add")->Infer({wide, high}, {}).ok());
}

}  // namespace
}  // namespace mu
