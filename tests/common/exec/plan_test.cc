// Plans: what they leave out, fuse and share changes no bit of the results; what cannot be planned
// is refused.
#include <cmath>
#include <set>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/exec/compiled_function.h"
#include "common/graph/op_table.h"
#include "tests/testing/fake_parameters.h"
#include "tests/testing/graph_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::BoolAttr;
using ::mu::testing::FakeParameterAccess;
using ::mu::testing::GraphMaker;
using ::mu::testing::IntAttr;
using ::mu::testing::IntsAttr;
using ::mu::testing::ShapeAttr;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;
using Ref = GraphMaker::Ref;

Tensor RandomFloats(SplitMix& random, const Shape& shape) {
  Tensor tensor(kFloat32, shape);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.data<float>()[i] = static_cast<float>(2 * random.Unit() - 1);
  }
  return tensor;
}

Batch RandomBatch(SplitMix& random, int64_t rows, int64_t width) {
  Batch batch;
  batch.records = static_cast<uint32_t>(rows);
  batch.names = {"x"};
  batch.columns = {RandomFloats(random, {rows, width})};
  return batch;
}

// A graph of random ops on [batch, 6] values with many readers each, so that lifetimes overlap in
// all ways.
class RandomGraph {
 public:
  static constexpr int64_t kWidth = 6;

  explicit RandomGraph(uint64_t seed) : random_(seed) {
    weights_ = access.AddVariable("w", RandomFloats(random_, {kWidth, kWidth}));
    bias_ = access.AddVariable("b", RandomFloats(random_, {kWidth}));
    values_.push_back(graph.Column("x", kFloat32, {-1, kWidth}));
    w_ = graph.Read("w", weights_, kFloat32, {kWidth, kWidth});
    b_ = graph.Read("b", bias_, kFloat32, {kWidth});
    for (int i = 0; i < 40; ++i) values_.push_back(Next());
    for (int i = 0; i < 4; ++i) graph.Return("r" + std::to_string(i), Any());
    const Ref dy = graph.Op("tanh", {values_.back()});
    graph.Update("apply_gradient", "w", weights_, kFloat32, {kWidth, kWidth},
                 graph.Op("matmul", {values_[0], dy}, {{"transpose_a", BoolAttr(true)}}));
    graph.Update("apply_gradient", "b", bias_, kFloat32, {kWidth},
                 graph.Op("reduce_to_like", {dy, b_}));
  }

  FakeParameterAccess access{0.01f};
  GraphMaker graph;

 private:
  Ref Any() {
    return values_[values_.size() - 1 - random_.Below(std::min<size_t>(values_.size(), 8))];
  }

  Ref Next() {
    switch (random_.Below(14)) {
      case 0:
        return graph.Op("relu", {graph.Op("add", {graph.Op("matmul", {Any(), w_}), b_})});
      case 1:
        return graph.Op("tanh",
                        {graph.Op("matmul", {Any(), w_}, {{"transpose_b", BoolAttr(true)}})});
      case 2:
        return graph.Op("relu_grad", {graph.Op("matmul", {Any(), w_}), Any()});
      case 3:
        return graph.Op("multiply", {graph.Op("sigmoid", {Any()}), graph.Op("tanh", {Any()})});
      case 4:
        return graph.Op("subtract", {b_, Any()});
      case 5: {
        const Ref flat = graph.Op("reshape", {Any()}, {{"shape", ShapeAttr({-1, 2, kWidth / 2})}});
        const Ref turned = graph.Op("transpose", {flat}, {{"perm", IntsAttr({0, 2, 1})}});
        return graph.Op("reshape", {turned}, {{"shape", ShapeAttr({-1, kWidth})}});
      }
      case 6: {
        const Ref both = graph.Op("concat", {Any(), Any()}, {{"axis", IntAttr(1)}});
        return graph.Op("slice", {both},
                        {{"begin", IntsAttr({0, 3})}, {"size", IntsAttr({-1, kWidth})}});
      }
      case 7:
        return graph.Op(
            "add", {Any(), graph.Op("reduce_mean", {Any()},
                                    {{"axes", IntsAttr({1})}, {"keep_dims", BoolAttr(true)}})});
      case 8:
        return graph.Op("reshape_like",
                        {graph.Op("reshape", {Any()}, {{"shape", ShapeAttr({-1})}}), Any()});
      case 9:
        return graph.Op("broadcast_like", {graph.Op("reduce_mean", {Any()}), Any()});
      case 10: {
        // The shape of a product that is fused away is still asked for.
        const Ref product = graph.Op("matmul", {Any(), w_});
        const Ref sum = graph.Op("relu", {graph.Op("add", {product, b_})});
        return graph.Op("reduce_to_like", {graph.Op("square", {graph.Op("tanh", {sum})}), product});
      }
      case 11: {
        const Ref two = graph.Op("add", {graph.Constant(Tensor::Scalar<float>(1)),
                                         graph.Constant(Tensor::Scalar<float>(1))});
        return graph.Op("divide", {Any(), two});
      }
      case 12:
        return graph.Op("maximum", {Any(), Any()});
      default:
        return graph.Op("multiply", {graph.Op("tanh", {Any()}),
                                     graph.Op("cast", {graph.Op("greater", {Any(), Any()})},
                                              {{"dtype", testing::TypeAttr(kFloat32)}})});
    }
  }

  SplitMix random_;
  uint32_t weights_ = 0, bias_ = 0;
  Ref w_, b_;
  std::vector<Ref> values_;
};

TEST(PlanTest, FusingFoldingAndSharingChangeNoBit) {
  const PlanOptions all_options[] = {{false, false, false},
                                     {true, true, true},
                                     {true, false, false},
                                     {false, true, false},
                                     {false, false, true}};
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<std::string> expected;
    for (const PlanOptions& options : all_options) {
      RandomGraph random_graph(seed);
      MU_ASSERT_OK_AND_ASSIGN(auto compiled,
                              CompileWithOptions(random_graph.graph.function(),
                                                 random_graph.access.routing(), options));
      Executor executor(compiled);
      SplitMix random(seed);
      std::vector<std::string> results;
      for (const int64_t rows : {5, 1, 64, 0, 17, 5}) {  // growing, shrinking, none
        const Batch batch = RandomBatch(random, rows, RandomGraph::kWidth);
        std::vector<Tensor> returns;
        MU_ASSERT_OK(executor.RunStep({.batch = &batch}, random_graph.access, &returns));
        for (const Tensor& value : returns) results.push_back(value.ToProto().SerializeAsString());
      }
      for (const uint32_t id : {1, 2})
        results.push_back(random_graph.access.variable(id).ToProto().SerializeAsString());
      if (expected.empty()) expected = results;
      ASSERT_EQ(results, expected)
          << "fuse " << options.fuse << " reuse " << options.reuse << " fold " << options.fold;
    }
  }
}

TEST(PlanTest, ARepeatedStepGivesTheSameBits) {
  RandomGraph random_graph(7);
  MU_ASSERT_OK_AND_ASSIGN(Plan plan, MakePlan(random_graph.graph.function(), PlanOptions()));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled,
                          Compile(random_graph.graph.function(), random_graph.access.routing()));
  SplitMix random(1);
  const Batch batch = RandomBatch(random, 33, RandomGraph::kWidth);
  std::vector<std::string> expected;
  for (int i = 0; i < 3; ++i) {  // a new executor has its buffers elsewhere
    RandomGraph again(7);
    Executor executor(compiled);
    std::vector<Tensor> returns;
    MU_ASSERT_OK(executor.RunStep({.batch = &batch}, again.access, &returns));
    std::vector<std::string> results;
    for (const Tensor& value : returns) results.push_back(value.ToProto().SerializeAsString());
    if (expected.empty()) expected = results;
    EXPECT_EQ(results, expected);
  }
}

// Two layers with relu, and the gradients that autodiff would make.
void AddMlp(GraphMaker& g, FakeParameterAccess& access, int64_t width) {
  SplitMix random(3);
  Ref x = g.Column("x", kFloat32, {-1, width});
  std::vector<Ref> inputs, outputs, weights;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string name = std::to_string(layer);
    const uint32_t w = access.AddVariable("w" + name, RandomFloats(random, {width, width}));
    const uint32_t b = access.AddVariable("b" + name, RandomFloats(random, {width}));
    inputs.push_back(x);
    weights.push_back(g.Read("w" + name, w, kFloat32, {width, width}));
    const Ref bias = g.Read("b" + name, b, kFloat32, {width});
    x = g.Op("relu", {g.Op("add", {g.Op("matmul", {x, weights.back()}), bias})});
    outputs.push_back(x);
  }
  g.Return("y", x);
  Ref dy = g.Op("ones_like", {x});
  for (int layer = 1; layer >= 0; --layer) {
    const Ref dz = g.Op("relu_grad", {dy, outputs[layer]});
    const std::string name = "w" + std::to_string(layer);
    const uint32_t id = 2 * layer + 1;
    g.Update("apply_gradient", name, id, kFloat32, {width, width},
             g.Op("matmul", {inputs[layer], dz}, {{"transpose_a", BoolAttr(true)}}));
    dy = g.Op("matmul", {dz, weights[layer]}, {{"transpose_b", BoolAttr(true)}});
  }
}

TEST(PlanTest, LayersAreFusedAndMemoryIsShared) {
  FakeParameterAccess access;
  GraphMaker g;
  AddMlp(g, access, 8);
  MU_ASSERT_OK_AND_ASSIGN(const Plan slow, MakePlan(g.function(), {false, false, false}));
  MU_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(g.function(), PlanOptions()));
  // Forward 6 become 2; backward relu_grad of the first layer joins the product before it.
  EXPECT_EQ(slow.nodes.size(), 12u);
  EXPECT_EQ(plan.nodes.size(), 7u);
  EXPECT_LT(plan.buffers, slow.buffers);
}

TEST(PlanTest, WhatNothingDependsOnIsLeftOut) {
  FakeParameterAccess access;
  GraphMaker g;
  const Ref x = g.Column("x", kFloat32, {-1});
  g.Op("log", {g.Column("unused", kFloat32, {-1})});
  g.Return("y", g.Op("square", {x}));
  MU_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(g.function(), PlanOptions()));
  EXPECT_EQ(plan.nodes.size(), 1u);
  EXPECT_EQ(plan.columns.size(), 1u);
}

TEST(PlanTest, ConstantsAreComputedOnce) {
  GraphMaker g;
  const Ref a = g.Constant(Tensor::Of<float>({2}, {1, 2}));
  const Ref b = g.Op("exp", {g.Op("add", {a, a})});
  g.Return("y", g.Op("multiply", {b, g.Column("x", kFloat32, {-1, 2})}));
  MU_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(g.function(), PlanOptions()));
  EXPECT_EQ(plan.nodes.size(), 1u);
  ASSERT_EQ(plan.constants.size(), 1u);
  EXPECT_NEAR(plan.constants[0].second.data<float>()[1], std::exp(4.0), 1e-4);
  // An error in what is folded is found when compiling, at its place.
  const Ref rows = g.Constant(Tensor::Of<float>({2}, {1, 2}));
  g.Return("z", g.Op("gather", {rows, g.Constant(Tensor::Of<int32_t>({1}, {7}))}));
  EXPECT_THAT(MakePlan(g.function(), PlanOptions()),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("test.cc:8: index 7")));
}

TEST(PlanTest, IdsMayNotDependOnWhatIsPulled) {
  FakeParameterAccess access;
  access.AddTable("t", 1, {0, 1, 2});
  access.AddVariable("v", Tensor::Of<int64_t>({2}, {0, 1}));
  GraphMaker g;
  const Ref unique = g.Op("unique", {g.Read("v", 1, kInt64, {2})});
  g.Return("rows", g.PullRows("t", 1, 3, 1, unique));
  EXPECT_THAT(MakePlan(g.function(), PlanOptions()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pulls only once")));
}

TEST(PlanTest, AVariableGetsOneKindOfUpdate) {
  GraphMaker g;
  const Ref one = g.Constant(Tensor::Scalar<float>(1));
  g.Update("apply_gradient", "v", 1, kFloat32, {}, one);
  g.Update("assign_add", "v", 1, kFloat32, {}, one);
  EXPECT_THAT(MakePlan(g.function(), PlanOptions()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("updates of two kinds")));
}

TEST(CompileTest, ParametersMustBeWhatTheRoutingSays) {
  FakeParameterAccess access;
  access.AddVariable("v", Tensor::Of<float>({2}, {0, 1}));
  access.AddTable("t", 2, {0, 1, 2, 3});
  const auto compile = [&access](auto&& make) {
    GraphMaker g;
    make(g);
    const absl::Status status = Compile(g.function(), access.routing()).status();
    EXPECT_TRUE(status.ok() || DetailOf(status)->location().file() == "test.cc") << status;
    return status;
  };
  const auto read = [&](const char* name, uint32_t id, const Shape& shape) {
    return compile([&](GraphMaker& g) { g.Return("v", g.Read(name, id, kFloat32, shape)); });
  };
  MU_EXPECT_OK(read("v", 1, {2}));
  EXPECT_THAT(read("v", 1, {3}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("but it is \"v\", float32[2]")));
  EXPECT_THAT(read("w", 1, {2}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("for \"w\"")));
  EXPECT_THAT(read("v", 9, {2}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not exist")));
  const auto pull = [&](uint32_t id, int64_t rows, int64_t dim) {
    return compile([&](GraphMaker& g) {
      g.Return("r",
               g.PullRows("t", id, rows, dim, g.Op("unique", {g.Column("ids", kInt64, {-1})})));
    });
  };
  MU_EXPECT_OK(pull(1, 2, 2));
  EXPECT_THAT(pull(1, 2, 3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 rows of 2")));
  EXPECT_THAT(pull(1, 5, 2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("5 rows of 2")));
  EXPECT_THAT(pull(2, 2, 2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not exist")));
}

TEST(CompileTest, MalformedGraphsAreRefused) {
  FakeParameterAccess access;
  GraphMaker g;
  const Ref x = g.Column("x", kFloat32, {-1, 2});
  g.Return("y", g.Op("relu", {x}));
  const muster::FunctionProto good = g.function();
  MU_ASSERT_OK(Compile(good, access.routing()).status());
  const auto refuse = [&](auto&& spoil, const char* text) {
    muster::FunctionProto bad = good;
    spoil(bad);
    EXPECT_THAT(Compile(bad, access.routing()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  refuse([](auto& f) { f.mutable_nodes(1)->set_op("rellu"); }, "relu");
  refuse([](auto& f) { f.mutable_nodes(1)->mutable_inputs(0)->set_node(1); },
         "does not come before");
  refuse([](auto& f) { f.mutable_nodes(1)->mutable_inputs(0)->set_output(1); }, "output 1");
  refuse([](auto& f) { f.mutable_nodes(1)->clear_inputs(); }, "takes 1 inputs");
  refuse([](auto& f) { f.mutable_returns(0)->mutable_value()->set_node(-1); }, "refers to node -1");
  refuse([](auto& f) { f.mutable_nodes(1)->set_op("matmul_relu"); },
         "no op");  // fused ops cannot be sent
  refuse([](auto& f) { f.set_dataset(0); }, "names no dataset");
  GraphMaker traced;
  traced.Return("e", traced.Op("embedding_lookup", {traced.Column("ids", kInt64, {-1})},
                               {{"table", testing::StringAttr("t")},
                                {"id", IntAttr(1)},
                                {"rows", IntAttr(2)},
                                {"dim", IntAttr(2)}}));
  EXPECT_THAT(Compile(traced.function(), access.routing()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not lowered")));
}

}  // namespace
}  // namespace mu
