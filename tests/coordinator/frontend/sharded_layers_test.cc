// Dense layers whose product servers may compute (DenseOptions::product): the same values and
// gradients as of a layer that reads its kernel, which lies transposed.
#include "common/exec/executor.h"
#include "coordinator/frontend/builder.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/ops.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kInputs = 3, kOutputs = 5;
constexpr float kRate = 0.5f;

// The values of a layer before it and its own, in memory. Steps are applied.
struct Net {
  explicit Net(std::optional<ProductPlace> product, bool has_bias = true) : factory(kRate) {
    factory.parameters.apply = true;
    scale = *factory.CreateVariable(
        {.name = "scale", .shape = {kInputs}, .initializer = Uniform{0.5f, 1.5f}});
    layer = *Dense::Create(factory, "fc", kInputs, kOutputs,
                           {.activation = Activation::kSigmoid,
                            .bias = Uniform{},
                            .has_bias = has_bias,
                            .product = product});
  }

  absl::Span<float> Of(const Variable& variable) {
    return factory.parameters.variable(variable.proto().id()).flat<float>();
  }
  // The kernel as [inputs, outputs].
  std::vector<float> Kernel() {
    const absl::Span<float> values = Of(layer.kernel());
    if (layer.kernel().shape() == Shape({kInputs, kOutputs})) return {values.begin(), values.end()};
    std::vector<float> transposed(values.size());
    for (int64_t i = 0; i < kInputs; ++i) {
      for (int64_t o = 0; o < kOutputs; ++o) transposed[i * kOutputs + o] = values[o * kInputs + i];
    }
    return transposed;
  }
  void SetKernel(const std::vector<float>& kernel) {
    const absl::Span<float> values = Of(layer.kernel());
    for (int64_t i = 0; i < kInputs; ++i) {
      for (int64_t o = 0; o < kOutputs; ++o) values[o * kInputs + i] = kernel[i * kOutputs + o];
    }
  }

  // y of the second of two steps of training.
  absl::StatusOr<Tensor> Train(const Tensor& x) {
    MU_ASSIGN_OR_RETURN(const pb::FunctionProto function, Trace("f", [&](FunctionBuilder& f) {
                          const Sym y = layer(Tanh(ConstantTensor(x) * scale));
                          f.Minimize(ReduceMean(Square(y)));
                          f.Return("y", y);
                        }));
    MU_ASSIGN_OR_RETURN(const auto compiled, Compile(function, factory.parameters.routing()));
    Executor executor(compiled);
    std::vector<Tensor> returns;
    for (int step = 0; step < 2; ++step)
      MU_RETURN_IF_ERROR(executor.RunStep({}, factory.parameters, &returns));
    return std::move(returns[0]);
  }

  testing::FakeFactory factory;
  Variable scale;
  Dense layer;
};

Tensor Inputs(const Shape& shape) {
  Tensor x(kFloat32, shape);
  for (int64_t i = 0; i < x.elements(); ++i)
    x.data<float>()[i] = 0.3f * static_cast<float>(i % 7) - 0.8f;
  return x;
}

void ExpectNear(absl::Span<const float> a, absl::Span<const float> b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

TEST(ShardedLayers, TheKernelIsTransposedOnlyIfThereIsAProduct) {
  const Net read(std::nullopt);
  EXPECT_EQ(read.layer.kernel().shape(), Shape({kInputs, kOutputs}));
  EXPECT_EQ(read.layer.kernel().name(), "fc/kernel");
  for (const ProductPlace place :
       {ProductPlace::kAuto, ProductPlace::kServers, ProductPlace::kWorker}) {
    const Net net(place);
    EXPECT_EQ(net.layer.kernel().shape(), Shape({kOutputs, kInputs}));
    EXPECT_EQ(net.layer.kernel().name(), "fc/kernel_by_output") << "which no square shape says";
    EXPECT_EQ(net.layer.bias().shape(), Shape({kOutputs}));
  }
}

TEST(ShardedLayers, ValuesAndGradientsAreThoseOfTheKernelThatIsRead) {
  for (const Shape& shape :
       {Shape({4, kInputs}), Shape({2, 3, kInputs}), Shape({2, 1, 2, kInputs})}) {
    for (const bool has_bias : {true, false}) {
      for (const ProductPlace place : {ProductPlace::kServers, ProductPlace::kWorker}) {
        SCOPED_TRACE(shape.ToString());
        Net read(std::nullopt, has_bias), product(place, has_bias);
        const std::vector<float> before = read.Kernel();
        product.SetKernel(before);
        const Tensor x = Inputs(shape);
        MU_ASSERT_OK_AND_ASSIGN(const Tensor expected, read.Train(x));
        MU_ASSERT_OK_AND_ASSIGN(const Tensor y, product.Train(x));
        Shape results(shape);
        results[shape.rank() - 1] = kOutputs;
        EXPECT_EQ(y.shape(), results);
        ExpectNear(y.flat<float>(), expected.flat<float>());
        ExpectNear(product.Kernel(), read.Kernel());
        EXPECT_NE(read.Kernel(), before);
        ExpectNear(product.Of(product.scale), read.Of(read.scale));
        if (has_bias) ExpectNear(product.Of(product.layer.bias()), read.Of(read.layer.bias()));
        EXPECT_EQ(product.factory.parameters.multiplications > 0, place == ProductPlace::kServers);
        EXPECT_EQ(read.factory.parameters.multiplications, 0);
      }
    }
  }
}

// 1 row moves less to servers, 2 rows do not; see MovesLessFromServers.
TEST(ShardedLayers, TheNumberOfRowsDecidesAlsoBehindFurtherAxes) {
  const auto on_servers = [](const Shape& shape) {
    Net net(ProductPlace::kAuto);
    MU_EXPECT_OK(net.Train(Inputs(shape)));
    return net.factory.parameters.multiplications > 0;
  };
  EXPECT_TRUE(on_servers({1, kInputs}));
  EXPECT_FALSE(on_servers({2, kInputs}));
  EXPECT_TRUE(on_servers({1, 1, kInputs}));
  EXPECT_FALSE(on_servers({1, 2, kInputs}));
  EXPECT_FALSE(on_servers({2, 1, kInputs}));
}

TEST(ShardedLayers, TheBatchOfTheDataCountsAsWell) {
  const auto on_servers = [](uint32_t batch, int64_t time) {
    Net net(ProductPlace::kAuto);
    const auto function = Trace("f", [&](FunctionBuilder& f) {
      const Dataset data = MakeDataset(CriteoTsv({"x.tsv"}, 7).Batch(batch));
      const Sym some = Slice(f.NextBatch(data)["dense"], {0, 0}, {-1, time * kInputs});
      f.Return("y", net.layer(Reshape(some, {-1, time, kInputs})));
    });
    EXPECT_THAT(function, testing::IsOk());
    bool products = false;
    for (const pb::NodeProto& node : function->nodes())
      products = products || node.op() == "sharded_matmul";
    return products;
  };
  EXPECT_TRUE(on_servers(1, 1));
  EXPECT_FALSE(on_servers(1, 2));
  EXPECT_FALSE(on_servers(4, 1));
}

TEST(ShardedLayers, APartitionerCutsTheKernelOnly) {
  testing::FakeFactory factory;
  MU_ASSERT_OK_AND_ASSIGN(const Dense dense, Dense::Create(factory, "fc", kInputs, kOutputs,
                                                           {.partitioner = FixedShards{2}}));
  EXPECT_EQ(dense.kernel().proto().partitioner().fixed_shards(), 2u);
  EXPECT_FALSE(dense.bias().proto().has_partitioner());
  MU_ASSERT_OK_AND_ASSIGN(const Dense plain, Dense::Create(factory, "plain", kInputs, kOutputs));
  EXPECT_FALSE(plain.kernel().proto().has_partitioner());
  EXPECT_THAT(Dense::Create(factory, "bad", kInputs, kOutputs, {.partitioner = FixedShards{0}}),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"bad/kernel\"")));
}

TEST(ShardedLayers, OnlyTheLastLayerOfAnMlpHasTheProduct) {
  testing::FakeFactory factory;
  MU_ASSERT_OK_AND_ASSIGN(const Mlp mlp, Mlp::Create(factory, "mlp", kInputs, {4, kOutputs},
                                                     {.partitioner = MaxSize{32},
                                                      .last_product = ProductPlace::kServers}));
  ASSERT_EQ(mlp.layers().size(), 2u);
  EXPECT_EQ(mlp.layers()[0].kernel().shape(), Shape({kInputs, 4}));
  EXPECT_EQ(mlp.layers()[1].kernel().shape(), Shape({kOutputs, 4}));
  for (const Dense& layer : mlp.layers())
    EXPECT_EQ(layer.kernel().proto().partitioner().max_size(), 32u);
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto function, Trace("f", [&](FunctionBuilder& f) {
                            f.Return("y", mlp(ConstantTensor(Inputs({2, kInputs}))));
                          }));
  int products = 0;
  for (const pb::NodeProto& node : function.nodes()) products += node.op() == "sharded_matmul";
  EXPECT_EQ(products, 1);
}

TEST(ShardedLayers, MistakesHaveTheLineOfTheCall) {
  Net net(ProductPlace::kServers);
  int line = 0;
  const auto two_unknown = [&](FunctionBuilder& f) {
    const Sym some = Slice(f.NextBatch(Criteo())["dense"], {0, 0}, {-1, kInputs});
    const Sym pairs = Reshape(some, {-1, 1, kInputs}) + some;  // [batch, batch, inputs]
    line = __LINE__ + 1;
    f.Return("y", net.layer(pairs));
  };
  EXPECT_FALSE(Trace("f", two_unknown).ok());
  EXPECT_THAT(TraceError(line, two_unknown), HasSubstr("one size at most that is not known"));
  const auto wrong_width = [&](FunctionBuilder& f) {
    const Sym x = ConstantTensor(Inputs({2, 2, kInputs + 1}));
    line = __LINE__ + 1;
    f.Return("y", net.layer(x));
  };
  EXPECT_FALSE(Trace("f", wrong_width).ok());
  EXPECT_THAT(TraceError(line, wrong_width), HasSubstr("fc/kernel_by_output"));
}

}  // namespace
}  // namespace mu
