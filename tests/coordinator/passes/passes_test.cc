#include "coordinator/passes/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/exec/executor.h"
#include "common/graph/fingerprint.h"
#include "common/graph/print.h"
#include "common/graph/verifier.h"
#include "coordinator/frontend/variable_ops.h"
#include "coordinator/passes/trace.h"
#include "tests/testing/fake_factory.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

class PassesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(
        w_, factory_.CreateVariable({.name = "w", .shape = {2}, .initializer = Constant{1}}));
    MU_ASSERT_OK_AND_ASSIGN(t_, factory_.CreateEmbeddingTable({.name = "t", .rows = 9, .dim = 2}));
    MU_ASSERT_OK_AND_ASSIGN(u_, factory_.CreateEmbeddingTable({.name = "u", .rows = 5, .dim = 2}));
  }

  static int Count(const pb::FunctionProto& function, const std::string& op) {
    int count = 0;
    for (const pb::NodeProto& node : function.nodes()) count += node.op() == op;
    return count;
  }

  static Sym Ids(const std::vector<int64_t>& ids) {
    return ConstantTensor(Tensor::Of<int64_t>({static_cast<int64_t>(ids.size())}, ids));
  }

  static std::string Text(pb::FunctionProto function) {
    for (pb::NodeProto& node : *function.mutable_nodes()) node.clear_location();
    return FunctionToText(function);
  }

  std::vector<Tensor> Run(const pb::FunctionProto& function) {
    std::vector<Tensor> returns;
    auto compiled = Compile(function, factory_.parameters.routing());
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return returns;
    Executor executor(*compiled);
    const absl::Status status = executor.RunStep({}, factory_.parameters, &returns);
    EXPECT_TRUE(status.ok()) << status;
    return returns;
  }

  testing::FakeFactory factory_;
  Variable w_;
  EmbeddingTable t_, u_;
};

TEST_F(PassesTest, GoldenTrainingStep) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("step", [&](FunctionBuilder& b) {
                            const Sym rows = EmbeddingLookup(t_, Ids({3, 1, 3}));
                            const Sym loss = ReduceSum(rows * w_);
                            b.Minimize(loss);
                            b.Return("loss", loss);
                          }));
  EXPECT_EQ(Text(f),
            "function step()\n"
            "  %0 = constant() {value=int64[3]{3, 1, 3}} : int64[3]\n"
            "  %1 = unique(%0) : (int64[?], int32[3])\n"
            "  %2 = pull_rows(%1:0) {dim=2, id=1, rows=9, table=\"t\"} : float32[?, 2]\n"
            "  %3 = gather(%2, %1:1) {axis=0} : float32[3, 2]\n"
            "  %4 = variable_read() {dtype=float32, id=1, shape=[2], variable=\"w\"} : float32[2]\n"
            "  %5 = multiply(%3, %4) : float32[3, 2]\n"
            "  %6 = reduce_sum(%5) {axes=[], keep_dims=false} : float32[]\n"
            "  %7 = constant() {value=float32[]{1}} : float32[]\n"
            "  %8 = broadcast_like(%7, %5) {axes=[]} : float32[3, 2]\n"
            "  %9 = multiply(%8, %4) : float32[3, 2]\n"
            "  %10 = multiply(%8, %3) : float32[3, 2]\n"
            "  %11 = reduce_to_like(%10, %4) : float32[2]\n"
            "  %12 = gather_grad(%9, %1:1, %2) {axis=0} : float32[?, 2]\n"
            "  %13 = apply_gradient(%11) {dtype=float32, id=1, shape=[2], variable=\"w\"} : ()\n"
            "  %14 = push_rows(%1:0, %12) {dim=2, id=1, rows=9, table=\"t\"} : ()\n"
            "  return loss = %6\n");
}

TEST_F(PassesTest, AllLookupsOfATablePullAndPushOnce) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("step", [&](FunctionBuilder& b) {
                            const Sym first = EmbeddingLookup(t_, Ids({3, 1}));
                            const Sym second = EmbeddingLookup(t_, Ids({1, 7}));
                            const Sym third = EmbeddingLookup(t_, Ids({3, 1}));  // the first again
                            const Sym other = EmbeddingLookup(u_, Ids({3, 1}));
                            const Sym loss =
                                ReduceSum(first + second * 2.0f + third * 4.0f + other);
                            b.Minimize(loss);
                            b.Return("loss", loss);
                          }));
  EXPECT_EQ(Count(f, "unique"), 2);
  EXPECT_EQ(Count(f, "pull_rows"), 2);
  EXPECT_EQ(Count(f, "push_rows"), 2);
  EXPECT_EQ(Count(f, "gather"), 3);
  for (const pb::NodeProto& node : f.nodes()) {
    if (node.op() == "unique") {
      EXPECT_LE(node.inputs_size(), 2);
    }
  }
  Run(f);
  std::vector<float> expected(18, 0.0f);
  for (const int d : {0, 1}) {
    expected[3 * 2 + d] = 5;
    expected[1 * 2 + d] = 1 + 2 + 4;
    expected[7 * 2 + d] = 2;
  }
  EXPECT_EQ(factory_.parameters.gradients["t"], expected);
  EXPECT_EQ(factory_.parameters.pulls, 1);
  EXPECT_EQ(factory_.parameters.pushes, 1);
}

TEST_F(PassesTest, WhatIdsNeedComesFirst) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("step", [&](FunctionBuilder& b) {
                            const Sym read = Read(w_);
                            const Sym early = Relu(read);
                            const Sym rows = EmbeddingLookup(t_, Ids({3, 1}) + 1);
                            b.Return("y", rows * early);
                          }));
  bool pulled = false;
  for (const pb::NodeProto& node : f.nodes()) {
    pulled = pulled || node.op() == "pull_rows";
    if (node.op() == "relu") {
      EXPECT_TRUE(pulled);
    }
  }
  EXPECT_EQ(Count(f, "push_rows"), 0);
}

TEST_F(PassesTest, UpdatesOfAVariableAreAddedUp) {
  MU_ASSERT_OK_AND_ASSIGN(const Variable counter,
                          factory_.CreateVariable({.name = "counter", .dtype = kInt64}));
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("step", [&](FunctionBuilder& b) {
                            AssignAdd(counter, 2);
                            AssignAdd(counter, 5);
                            b.Return("before", counter);
                          }));
  EXPECT_EQ(Count(f, "assign_add"), 1);
  factory_.parameters.apply = true;
  const std::vector<Tensor> returns = Run(f);
  EXPECT_EQ(*returns.at(0).data<int64_t>(), 0);  // a step reads what was there when it began
  EXPECT_EQ(*factory_.parameters.variable(counter.proto().id()).data<int64_t>(), 7);
}

// The server moves the variable towards what it is sent, once for a step.
TEST_F(PassesTest, UpdatesThatMoveAVariableMoveItTowardsTheirMean) {
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable average,
      factory_.CreateVariable({.name = "average", .trainable = false, .moving_part = 0.5f}));
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("step", [&](FunctionBuilder& b) {
                            AssignAdd(average, 2);
                            AssignAdd(average, 4);
                            AssignAdd(average, 9);
                            b.Return("before", average);
                          }));
  EXPECT_EQ(Count(f, "assign_add"), 1);
  factory_.parameters.apply = true;
  const std::vector<Tensor> returns = Run(f);
  EXPECT_EQ(*returns.at(0).data<float>(), 0);
  EXPECT_EQ(*factory_.parameters.variable(average.proto().id()).data<float>(), 2.5f);
}

TEST_F(PassesTest, OfNewValuesTheLastCounts) {
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable counter,
      factory_.CreateVariable({.name = "counter", .shape = {2}, .dtype = kInt64}));
  const auto both = [](int64_t value) {
    return ConstantTensor(Tensor::Of<int64_t>({2}, {value, value}));
  };
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("step", [&](FunctionBuilder& b) {
                            Assign(counter, both(2));
                            Assign(counter, both(5));
                            b.Return("before", counter);
                          }));
  EXPECT_EQ(Count(f, "assign"), 1);
  factory_.parameters.apply = true;
  const std::vector<Tensor> returns = Run(f);
  EXPECT_THAT(returns.at(0).flat<int64_t>(), ::testing::Each(0));
  const auto values = [&] {
    return factory_.parameters.variable(counter.proto().id()).flat<int64_t>();
  };
  EXPECT_THAT(values(), ::testing::ElementsAre(5, 5));
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::FunctionProto rows, Trace("rows", [&](FunctionBuilder& b) {
        ScatterUpdate(counter, ConstantTensor(Tensor::Of<int64_t>({2}, {1, 0})), both(7));
        ScatterUpdate(counter, ConstantTensor(Tensor::Of<int64_t>({1}, {1})),
                      ConstantTensor(Tensor::Of<int64_t>({1}, {9})));
        b.Return("before", counter);
      }));
  EXPECT_EQ(Count(rows, "scatter_update"), 1);
  Run(rows);
  EXPECT_THAT(values(), ::testing::ElementsAre(7, 9));
}

TEST_F(PassesTest, PruningDropsWhatNothingNeeds) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("f", [&](FunctionBuilder& b) {
                            EmbeddingLookup(u_, Ids({1}));
                            Exp(w_);
                            b.Return("y", Relu(w_));
                          }));
  EXPECT_EQ(f.nodes_size(), 2) << FunctionToText(f);
}

TEST_F(PassesTest, CommonNodesAreShared) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("f", [&](FunctionBuilder& b) {
                            const Sym x = Read(w_);
                            b.Return("y", Sigmoid(x * 2.0f) + Sigmoid(x * 2.0f));
                            b.Return("z", Sigmoid(x * 3.0f));
                          }));
  EXPECT_EQ(Count(f, "sigmoid"), 2);
  EXPECT_EQ(Count(f, "constant"), 2);
}

TEST_F(PassesTest, SharingKeepsEffects) {
  pb::FunctionProto f;
  const auto graph = std::make_shared<TraceGraph>("f");
  {
    TraceGraph::Scope scope(graph.get());
    AssignAdd(w_, Read(w_));
    AssignAdd(w_, Read(w_));
  }
  EXPECT_EQ(Count(ShareCommonNodes(graph->proto()), "assign_add"), 2);
  EXPECT_EQ(Count(MergeUpdates(ShareCommonNodes(graph->proto())), "add"), 1);
}

TEST_F(PassesTest, LoweringAgainOnlyReorders) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto once, Trace("step", [&](FunctionBuilder& b) {
                            const Sym loss = ReduceSum(EmbeddingLookup(t_, Ids({3, 1})) * w_);
                            b.Minimize(loss);
                            b.Return("loss", loss);
                          }));
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto twice, LowerFunction(once));
  MU_EXPECT_OK(VerifyFunction(twice, GraphStage::kLowered));
  EXPECT_EQ(twice.nodes_size(), once.nodes_size());
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto thrice, LowerFunction(twice));
  EXPECT_EQ(FingerprintOf(thrice), FingerprintOf(twice));
}

TEST_F(PassesTest, WhatAFunctionSaysBesideItsNodesStays) {
  const auto graph = std::make_shared<TraceGraph>("step");
  pb::FunctionProto& function = graph->proto();
  function.set_dataset(7);
  function.set_warmup_steps(12);
  function.mutable_schedule()->mutable_cosine()->set_steps(9);
  function.set_rate_arg(1);
  function.set_first_step(5);
  function.mutable_staleness()->set_max(3);
  function.set_micro_batches(4);
  function.add_args()->set_name("scale");
  MU_ASSERT_OK_AND_ASSIGN(pb::FunctionProto lowered, LowerFunction(function));
  EXPECT_EQ(lowered.SerializeAsString(), function.SerializeAsString());
  // Of a new field this test must know too.
  EXPECT_EQ(pb::FunctionProto::descriptor()->field_count(), 11);
}

TEST_F(PassesTest, BagsBecomeSegments) {
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::FunctionProto f, Trace("f", [&](FunctionBuilder& b) {
        const Sym splits = ConstantTensor(Tensor::Of<int32_t>({4}, {0, 2, 2, 3}));
        const Sym weights = ConstantTensor(Tensor::Of<float>({3}, {1, 3, 2}));
        const Sym bags = EmbeddingBag(t_, Ids({3, 1, 3}), splits, weights, Combiner::kMean);
        b.Minimize(ReduceSum(bags));
        b.Return("bags", bags);
      }));
  EXPECT_EQ(Count(f, "segment_combine"), 1);
  EXPECT_EQ(Count(f, "segment_combine_grad"), 1);
  auto& values = factory_.parameters.table(t_.proto().id()).values;
  values[3 * 2] = 4;
  values[1 * 2] = 8;
  const std::vector<Tensor> returns = Run(f);
  EXPECT_THAT(returns.at(0).flat<float>(), ::testing::ElementsAre(7, 0, 0, 0, 4, 0));
  EXPECT_FLOAT_EQ(factory_.parameters.gradients["t"][3 * 2], 1.25f);
  EXPECT_FLOAT_EQ(factory_.parameters.gradients["t"][1 * 2], 0.75f);
}

}  // namespace
}  // namespace mu
