// What autodiff adds to a graph, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/print.h"
#include "coordinator/autodiff/gradients.h"
#include "coordinator/frontend/builder.h"
#include "tests/coordinator/autodiff/check_gradients.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

class AutodiffTest : public ::testing::Test {
 protected:
  Variable Var(const std::string& name, const Shape& shape, bool trainable = true) {
    return factory_
        .CreateVariable(
            {.name = name, .shape = shape, .initializer = Constant{0.5f}, .trainable = trainable})
        .value();
  }

  // The traced graph with its gradients, not lowered.
  absl::StatusOr<pb::FunctionProto> Differentiate(
      const std::function<void(FunctionBuilder&)>& build) {
    const auto graph = std::make_shared<TraceGraph>("f");
    {
      TraceGraph::Scope scope(graph.get());
      FunctionBuilder builder(graph);
      build(builder);
    }
    MU_RETURN_IF_ERROR(graph->status());
    MU_RETURN_IF_ERROR(AddGradients(*graph));
    return graph->proto();
  }

  static int Count(const pb::FunctionProto& function, const std::string& op) {
    int count = 0;
    for (const pb::NodeProto& node : function.nodes()) count += node.op() == op;
    return count;
  }

  testing::FakeFactory factory_;
};

TEST_F(AutodiffTest, OnlyPathsToWhatIsTrainable) {
  const Variable trained = Var("trained", {2, 3});
  const Variable frozen = Var("frozen", {3, 4}, false);
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Differentiate([&](FunctionBuilder& b) {
                            b.Minimize(ReduceSum(MatMul(trained, frozen)));
                          }));
  EXPECT_EQ(Count(f, "matmul"), 2);  // forward, and one for the trained side
  EXPECT_EQ(Count(f, "apply_gradient"), 1);
}

TEST_F(AutodiffTest, NothingOfTheBatchIsDifferentiated) {
  const Variable w = Var("w", {13, 1});
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Differentiate([&](FunctionBuilder& b) {
                            const BatchRef batch = b.NextBatch(CriteoDataset());
                            b.Minimize(ReduceMean(MatMul(Log(batch["dense"]), w)));
                          }));
  EXPECT_EQ(Count(f, "divide"), 1);  // of the mean; none of the logarithm
}

TEST_F(AutodiffTest, GradientsCarryTheForwardOpsLine) {
  const Variable w = Var("w", {3});
  int line = 0;
  const auto build = [&](FunctionBuilder& b) {
    const Sym root = Sqrt(w);
    line = __LINE__ - 1;
    b.Minimize(ReduceSum(root));
  };
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Differentiate(build));
  int divisions = 0;
  for (const pb::NodeProto& node : f.nodes()) {
    if (node.op() != "divide") continue;
    ++divisions;
    EXPECT_EQ(node.location().line(), line);
    EXPECT_THAT(node.location().file(), HasSubstr("structure_test.cc"));
  }
  EXPECT_EQ(divisions, 1);
}

TEST_F(AutodiffTest, SameGraphEveryTime) {
  const Variable w = Var("w", {3, 3});
  const auto build = [&](FunctionBuilder& b) {
    const Sym y = Tanh(MatMul(w, w)) + Sigmoid(w) * w;
    b.Minimize(ReduceMean(y * y));
  };
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto first, Differentiate(build));
  for (int i = 0; i < 5; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto again, Differentiate(build));
    EXPECT_EQ(FunctionToText(again), FunctionToText(first));
  }
}

TEST_F(AutodiffTest, OnlyNamedOnes) {
  const Variable a = Var("alpha", {2});
  const Variable b = Var("beta", {2});
  const auto build = [&](std::vector<std::string> only) {
    return Differentiate([&](FunctionBuilder& f) { f.Minimize(ReduceSum(a * b), {.only = only}); });
  };
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, build({"beta"}));
  ASSERT_EQ(Count(f, "apply_gradient"), 1);
  EXPECT_EQ(f.nodes(f.nodes_size() - 1).attrs().at("variable").s(), "beta");
  EXPECT_THAT(build({"betta"}), testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                                  HasSubstr("did you mean \"beta\"?")));
}

TEST_F(AutodiffTest, RefusesALossWithoutParameters) {
  const auto f = Differentiate(
      [&](FunctionBuilder& b) { b.Minimize(ReduceMean(b.NextBatch(CriteoDataset())["dense"])); });
  EXPECT_THAT(f, testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no trainable")));
  EXPECT_THAT(std::string(f.status().message()), HasSubstr("structure_test.cc:"));
}

TEST_F(AutodiffTest, StepFunctionsEndThePath) {
  const Variable w = Var("w", {3});
  const auto f = Differentiate([&](FunctionBuilder& b) {
    b.Minimize(ReduceSum(Cast(Greater(w, 0.0f), kFloat32) * OnesLike(w)));
  });
  EXPECT_THAT(f, testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no trainable")));
}

TEST_F(AutodiffTest, RefusesWhatHasNoGradient) {
  const Variable w = Var("w", {3});
  const auto f = Differentiate([&](FunctionBuilder& b) {
    const Sym one = Slice(w, {0}, {1});
    b.Minimize(ReduceSum(SliceGrad(one, w, {0})));
  });
  EXPECT_THAT(f, testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("slice_grad: has no gradient")));
}

TEST_F(AutodiffTest, RefusesTrainableWeightsOfBags) {
  const Variable weights = Var("weights", {2});
  const EmbeddingTable table =
      factory_.CreateEmbeddingTable({.name = "t", .rows = 5, .dim = 2}).value();
  const auto f = Differentiate([&](FunctionBuilder& b) {
    const Sym values = ConstantTensor(Tensor::Of<int64_t>({2}, {1, 2}));
    const Sym splits = ConstantTensor(Tensor::Of<int32_t>({2}, {0, 2}));
    b.Minimize(ReduceSum(EmbeddingBag(table, values, splits, weights, Combiner::kSum)));
  });
  EXPECT_THAT(f, testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("weights of a bag get no gradient")));
}

TEST_F(AutodiffTest, TwoLossesAddUp) {
  const Variable w = Var("w", {2});
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("f", [&](FunctionBuilder& b) {
                            const Sym first = ReduceSum(w * 3.0f);
                            b.Minimize(first);
                            b.Minimize(ReduceSum(w * 4.0f));
                            b.Return("loss", first);
                          }));
  EXPECT_EQ(Count(f, "apply_gradient"), 1);
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(f, factory_.parameters.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  MU_ASSERT_OK(executor.RunStep({}, factory_.parameters, &returns));
  EXPECT_THAT(factory_.parameters.gradients["w"], ::testing::ElementsAre(7.0f, 7.0f));
}

}  // namespace
}  // namespace mu
