// Every op that has a gradient rule, against finite differences.
#include <gtest/gtest.h>

#include <set>

#include "coordinator/autodiff/gradient_table.h"
#include "coordinator/frontend/ops.h"
#include "tests/coordinator/autodiff/check_cases.h"
#include "tests/coordinator/autodiff/check_gradients.h"

namespace mu {
namespace {

const std::vector<CheckCase>& AllCases() {
  static const auto* const cases = [] {
    auto* made = new std::vector<CheckCase>(MathCheckCases());
    for (CheckCase& one : ArrayCheckCases()) made->push_back(std::move(one));
    for (CheckCase& one : GeneralCheckCases()) made->push_back(std::move(one));
    for (CheckCase& one : NeuralCheckCases()) made->push_back(std::move(one));
    return made;
  }();
  return *cases;
}

// Whatever y's shape: a loss whose derivative by each element of y is another.
Sym LossOf(const Sym& y) { return ReduceSum(Square(y) * 0.5f + y * 0.7f); }

bool Contains(const pb::FunctionProto& function, const std::string& op) {
  for (const pb::NodeProto& node : function.nodes()) {
    if (node.op() == op) return true;
  }
  return false;
}

TEST(Gradients, EveryOpHasARuleOrSaysThatItHasNone) {
  for (const OpDef* def : AllOps().All()) {
    EXPECT_NE(AllGradients().KindOf(def->name), GradientTable::Kind::kUnknown) << def->name;
  }
}

TEST(Gradients, EveryRuleIsChecked) {
  std::set<std::string> checked;
  for (const CheckCase& one : AllCases()) checked.insert(one.op);
  for (const OpDef* def : AllOps().All()) {
    if (AllGradients().KindOf(def->name) == GradientTable::Kind::kRule) {
      EXPECT_EQ(checked.count(def->name), 1u) << "no check of the gradient of " << def->name;
    }
  }
}

class GradientCheck : public ::testing::TestWithParam<size_t> {};

TEST_P(GradientCheck, AgreesWithFiniteDifferences) {
  const CheckCase& one = AllCases()[GetParam()];
  testing::FakeFactory factory;
  std::vector<Variable> variables;
  for (size_t i = 0; i < one.variables.size(); ++i) {
    const CheckInput& input = one.variables[i];
    MU_ASSERT_OK_AND_ASSIGN(
        Variable variable, factory.CreateVariable({.name = "v" + std::to_string(i),
                                                   .shape = input.shape,
                                                   .initializer = Uniform{input.low, input.high}}));
    if (!input.values.empty()) {
      const auto values = factory.parameters.variable(variable.proto().id()).flat<float>();
      ASSERT_EQ(values.size(), input.values.size());
      std::copy(input.values.begin(), input.values.end(), values.begin());
    }
    variables.push_back(variable);
  }
  const Batch batch = CriteoBatch(3);
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::FunctionProto function, Trace("check", [&](FunctionBuilder& f) {
        f.Train();
        const Sym loss = LossOf(one.build(variables, f.NextBatch(CriteoDataset())));
        EXPECT_TRUE(Contains(f.graph().proto(), one.op)) << "the case is of another op";
        f.Minimize(loss);
        f.Return("loss", loss);
      }));
  GradientChecker checker(function, factory.parameters, &batch);
  for (const Variable& variable : variables) {
    checker.Check(variable.name(),
                  factory.parameters.variable(variable.proto().id()).flat<float>());
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientCheck, ::testing::Range<size_t>(0, AllCases().size()),
                         [](const ::testing::TestParamInfo<size_t>& info) {
                           const CheckCase& one = AllCases()[info.param];
                           return one.op + "_" + one.name;
                         });

// Lookups end paths; their gradients are made by autodiff itself and lowered by the passes.
class EmbeddingGradientCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(table_,
                            factory_.CreateEmbeddingTable(
                                {.name = "t", .rows = 7, .dim = 3, .initializer = Uniform{-1, 1}}));
  }

  void Check(const std::function<Sym(const BatchRef&)>& build) {
    const Batch batch = CriteoBatch(3);
    MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto function,
                            Trace("check", [&](FunctionBuilder& f) {
                              const Sym loss = LossOf(build(f.NextBatch(CriteoDataset())));
                              f.Minimize(loss);
                              f.Return("loss", loss);
                            }));
    GradientChecker checker(function, factory_.parameters, &batch);
    checker.Check("t", absl::MakeSpan(factory_.parameters.table(table_.proto().id()).values));
  }

  // Bags of 3, 0, 1 and 2 ids among which some repeat.
  static Sym Values() { return ConstantTensor(Tensor::Of<int64_t>({6}, {4, 2, 4, 6, 2, 2})); }
  static Sym Splits() { return ConstantTensor(Tensor::Of<int32_t>({5}, {0, 3, 3, 4, 6})); }
  static Sym Weights() { return ConstantTensor(Tensor::Of<float>({6}, {1, 0.5f, 2, 1.5f, 1, 3})); }

  testing::FakeFactory factory_;
  EmbeddingTable table_;
};

TEST_F(EmbeddingGradientCheck, Ids) {
  Check([&](const BatchRef& batch) { return EmbeddingLookup(table_, batch["ids"]); });
}

TEST_F(EmbeddingGradientCheck, SumOfBags) {
  Check([&](const BatchRef&) { return EmbeddingBag(table_, Values(), Splits()); });
}

TEST_F(EmbeddingGradientCheck, MeanOfBags) {
  Check([&](const BatchRef&) { return EmbeddingBag(table_, Values(), Splits(), Combiner::kMean); });
}

TEST_F(EmbeddingGradientCheck, SqrtNOfBags) {
  Check(
      [&](const BatchRef&) { return EmbeddingBag(table_, Values(), Splits(), Combiner::kSqrtN); });
  Check([&](const BatchRef&) {
    return EmbeddingBag(table_, Values(), Splits(), Weights(), Combiner::kSqrtN);
  });
}

TEST_F(EmbeddingGradientCheck, WeightedSumOfBags) {
  Check([&](const BatchRef&) {
    return EmbeddingBag(table_, Values(), Splits(), Weights(), Combiner::kSum);
  });
}

TEST_F(EmbeddingGradientCheck, WeightedMeanOfBags) {
  Check([&](const BatchRef&) {
    return EmbeddingBag(table_, Values(), Splits(), Weights(), Combiner::kMean);
  });
}

TEST_F(EmbeddingGradientCheck, PaddedSequences) {
  Check([&](const BatchRef&) {
    return EmbeddingSequence(table_, Values(), Splits(), 2, /*keep_last=*/true).rows;
  });
}

TEST_F(EmbeddingGradientCheck, SeveralLookupsOfOneTableAddUp) {
  Check([&](const BatchRef& batch) {
    const Sym first = EmbeddingLookup(table_, Slice(batch["ids"], {0, 0}, {-1, 1}));
    const Sym again = EmbeddingLookup(table_, Slice(batch["ids"], {0, 0}, {-1, 1}));
    const Sym bags = EmbeddingBag(table_, Values(), Splits());
    return Concat({Reshape(Multiply(first, again), {-1, 3}), bags}, 0);
  });
}

}  // namespace
}  // namespace mu
