// Layers: names and shapes of their variables, their gradients, what training changes, and the
// summary.
#include "absl/strings/match.h"
#include "common/exec/executor.h"
#include "common/tensor/batch_slice.h"
#include "coordinator/frontend/layers_attention.h"
#include "coordinator/frontend/layers_embedding.h"
#include "coordinator/frontend/layers_image.h"
#include "coordinator/frontend/layers_interaction.h"
#include "coordinator/frontend/layers_norm.h"
#include "coordinator/frontend/summary.h"
#include "tests/coordinator/autodiff/check_gradients.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class LayersTest : public ::testing::Test {
 protected:
  using Build = std::function<Sym(FunctionBuilder& f, const BatchRef& batch)>;

  absl::Span<float> ValuesOf(const std::string& name) {
    for (const auto& [id, known] : factory_.parameters.names) {
      if (known != name) continue;
      return id.first ? absl::MakeSpan(factory_.parameters.table(id.second).values)
                      : factory_.parameters.variable(id.second).flat<float>();
    }
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& [id, name] : factory_.parameters.names) names.push_back(name);
    return names;
  }

  // Runs a step of a function that returns y, and trains if it is to.
  Tensor Run(bool train, const Batch& batch, const Build& build) {
    const auto function = Trace("f", [&](FunctionBuilder& f) {
      if (train) f.Train();
      const Sym y = build(f, f.NextBatch(CriteoDataset()));
      if (train) f.Minimize(ReduceMean(y));
      f.Return("y", y);
    });
    EXPECT_TRUE(function.ok()) << function.status();
    if (!function.ok()) return Tensor();
    auto compiled = Compile(*function, factory_.parameters.routing());
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    Executor executor(*compiled);
    StepInputs inputs;
    inputs.batch = &batch;
    std::vector<Tensor> returns;
    const absl::Status status = executor.RunStep(inputs, factory_.parameters, &returns);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? std::move(returns[0]) : Tensor();
  }

  // Compares the gradients of all trainable parameters with finite differences.
  void CheckGradients(const Build& build, const std::vector<std::string>& but = {}) {
    const Batch batch = CriteoBatch(3);
    MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto function,
                            Trace("check", [&](FunctionBuilder& f) {
                              f.Train();
                              const Sym y = build(f, f.NextBatch(CriteoDataset()));
                              const Sym loss = ReduceSum(Square(y) * 0.5f + y * 0.7f);
                              f.Minimize(loss);
                              f.Return("loss", loss);
                            }));
    GradientChecker checker(function, factory_.parameters, &batch);
    for (const std::string& name : Names()) {
      if (std::find(but.begin(), but.end(), name) == but.end()) {
        checker.Check(name, ValuesOf(name));
      }
    }
  }

  testing::FakeFactory factory_;
};

TEST_F(LayersTest, DenseOfAnyRank) {
  MU_ASSERT_OK_AND_ASSIGN(
      const Dense layer,
      Dense::Create(factory_, "fc", 1, 4, {.activation = Activation::kGelu, .bias = Uniform{}}));
  MU_ASSERT_OK_AND_ASSIGN(const Dense plain,
                          Dense::Create(factory_, "plain", 4, 2, {.has_bias = false}));
  EXPECT_THAT(Names(), UnorderedElementsAre("fc/kernel", "fc/bias", "plain/kernel"));
  const Build build = [&](FunctionBuilder&, const BatchRef& batch) {
    return plain(layer(Reshape(batch["dense"], {-1, 13, 1})));
  };
  EXPECT_EQ(Run(false, CriteoBatch(3), build).shape(), Shape({3, 13, 2}));
  CheckGradients(build);
}

TEST_F(LayersTest, Embeddings) {
  MU_ASSERT_OK_AND_ASSIGN(
      const Embedding layer,
      Embedding::Create(factory_, "ids", 7, 3, {.initializer = Uniform{-1, 1}}));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingBagLayer bags,
                          EmbeddingBagLayer::Create(factory_, "bags", 7, 3, Combiner::kSqrtN,
                                                    {.initializer = Uniform{-1, 1}}));
  EXPECT_THAT(Names(), UnorderedElementsAre("ids", "bags"));
  CheckGradients([&](FunctionBuilder&, const BatchRef& batch) {
    const Sym some = Slice(batch["ids"], {0, 0}, {-1, 2});
    const Sym splits = ConstantTensor(Tensor::Of<int32_t>({4}, {0, 2, 3, 6}));
    return ReduceSum(layer(some), {1}) * bags(Reshape(some, {-1}), splits);
  });
}

TEST_F(LayersTest, LayerNormAndRmsNorm) {
  MU_ASSERT_OK_AND_ASSIGN(const LayerNorm layer, LayerNorm::Create(factory_, "ln", 13));
  MU_ASSERT_OK_AND_ASSIGN(const RmsNorm rms, RmsNorm::Create(factory_, "rms", 13));
  EXPECT_THAT(Names(), UnorderedElementsAre("ln/gamma", "ln/beta", "rms/gamma"));
  CheckGradients([&](FunctionBuilder&, const BatchRef& batch) {
    return rms(layer(batch["dense"]) + batch["dense"]);
  });
}

TEST_F(LayersTest, GroupNorm) {
  MU_ASSERT_OK_AND_ASSIGN(const GroupNorm layer, GroupNorm::Create(factory_, "gn", 6, 2));
  MU_ASSERT_OK_AND_ASSIGN(const GroupNorm flat, GroupNorm::Create(factory_, "flat", 12, 3));
  EXPECT_THAT(Names(), UnorderedElementsAre("gn/gamma", "gn/beta", "flat/gamma", "flat/beta"));
  const Build build = [&](FunctionBuilder&, const BatchRef& batch) {
    const Sym some = Slice(batch["dense"], {0, 0}, {-1, 12});
    return Reshape(layer(Reshape(some, {-1, 2, 1, 6})), {-1, 12}) + flat(some);
  };
  CheckGradients(build);
  // A record's result does not depend on the others.
  const Batch batch = CriteoBatch(8);
  Batch some;
  MU_ASSERT_OK(SliceBatch(batch, 0, 3, &some));
  const Tensor three = Run(false, some, build);
  const Tensor eight = Run(true, batch, build);
  for (int i = 0; i < 36; ++i) EXPECT_EQ(three.data<float>()[i], eight.data<float>()[i]) << i;
}

TEST_F(LayersTest, GroupNormSaysWhatItDoesNotTake) {
  EXPECT_THAT(GroupNorm::Create(factory_, "gn", 6, 4).status().message(),
              HasSubstr("\"gn\" cannot cut 6 channels into 4 equal groups"));
  EXPECT_THAT(GroupNorm::Create(factory_, "gn", 6, 0).status().message(), HasSubstr("into 0"));
  MU_ASSERT_OK_AND_ASSIGN(const GroupNorm layer, GroupNorm::Create(factory_, "gn", 6, 3));
  const auto refused = [&](const Build& build) {
    return std::string(
        Trace("f",
              [&](FunctionBuilder& f) { f.Return("y", build(f, f.NextBatch(CriteoDataset()))); })
            .status()
            .message());
  };
  EXPECT_THAT(refused([&](FunctionBuilder&, const BatchRef& b) { return layer(b["dense"]); }),
              HasSubstr("takes [batch, ..., 6]"));
  EXPECT_THAT(refused([&](FunctionBuilder&, const BatchRef& b) { return layer(b["label"]); }),
              HasSubstr("takes [batch, ..., 6]"));
}

TEST_F(LayersTest, BatchNormTrainsByItsBatchAndEvaluatesByTheAverages) {
  MU_ASSERT_OK_AND_ASSIGN(const BatchNorm layer,
                          BatchNorm::Create(factory_, "bn", 13, {.momentum = 0.75f}));
  EXPECT_THAT(Names(),
              UnorderedElementsAre("bn/gamma", "bn/beta", "bn/moving_mean", "bn/moving_variance"));
  const Build build = [&](FunctionBuilder&, const BatchRef& batch) {
    return layer(batch["dense"]);
  };
  CheckGradients(build, {"bn/moving_mean", "bn/moving_variance"});

  const int64_t n = 8;
  const Batch batch = CriteoBatch(n);
  const Tensor& x = batch.columns[1];
  factory_.parameters.apply = true;
  const Tensor trained = Run(true, batch, build);
  for (int64_t c = 0; c < 13; ++c) {
    double mean = 0, square = 0, trained_mean = 0, trained_square = 0;
    for (int64_t i = 0; i < n; ++i) {
      mean += x.data<float>()[i * 13 + c] / n;
      trained_mean += trained.data<float>()[i * 13 + c] / n;
    }
    for (int64_t i = 0; i < n; ++i) {
      square += std::pow(x.data<float>()[i * 13 + c] - mean, 2);
      trained_square += std::pow(trained.data<float>()[i * 13 + c] - trained_mean, 2) / n;
    }
    EXPECT_NEAR(trained_mean, 0, 1e-5);
    EXPECT_NEAR(trained_square, 1, 1e-3);
    EXPECT_NEAR(ValuesOf("bn/moving_mean")[c], 0.25 * mean, 1e-5);
    EXPECT_NEAR(ValuesOf("bn/moving_variance")[c], 0.75 + 0.25 * square / (n - 1), 1e-5);
  }

  // Evaluation changes nothing, and does not depend on the other records of the batch.
  for (const std::string name : {"bn/gamma", "bn/beta"}) {
    for (float& value : ValuesOf(name)) value = 2;
  }
  const std::vector<float> before(ValuesOf("bn/moving_mean").begin(),
                                  ValuesOf("bn/moving_mean").end());
  const Tensor evaluated = Run(false, batch, build);
  for (int64_t c = 0; c < 13; ++c) {
    const double deviation = std::sqrt(ValuesOf("bn/moving_variance")[c] + 1e-5);
    EXPECT_NEAR(evaluated.data<float>()[c], 2 + 2 * (x.data<float>()[c] - before[c]) / deviation,
                1e-4);
    EXPECT_EQ(ValuesOf("bn/moving_mean")[c], before[c]);
  }
}

// Other steps move the averages between a step's read and its push, so what is pushed must not
// depend on what was read.
TEST_F(LayersTest, BatchNormPushesTheMomentsOfItsBatch) {
  MU_ASSERT_OK_AND_ASSIGN(const BatchNorm layer,
                          BatchNorm::Create(factory_, "bn", 13, {.momentum = 0.75f}));
  EXPECT_THAT(factory_.parameters.moving_parts, ElementsAre(::testing::Pair(::testing::_, 0.25f),
                                                            ::testing::Pair(::testing::_, 0.25f)));
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto function, Trace("f", [&](FunctionBuilder& f) {
                            f.Train();
                            f.Minimize(ReduceMean(layer(f.NextBatch(CriteoDataset())["dense"])));
                          }));
  std::vector<std::string> ops;
  for (const pb::NodeProto& node : function.nodes()) {
    const auto variable = node.attrs().find("variable");
    if (variable != node.attrs().end() && absl::StrContains(variable->second.s(), "bn/moving_"))
      ops.push_back(node.op());
  }
  EXPECT_THAT(ops, ElementsAre("assign_add", "assign_add")) << "neither is read";
}

TEST_F(LayersTest, BatchNormConvergesToTheMomentsOfWhatItSees) {
  MU_ASSERT_OK_AND_ASSIGN(const BatchNorm layer, BatchNorm::Create(factory_, "bn", 13));
  factory_.parameters.apply = true;
  const Batch batch = CriteoBatch(64);
  for (int step = 0; step < 100; ++step) {
    Run(true, batch, [&](FunctionBuilder&, const BatchRef& b) { return layer(b["dense"]); });
  }
  double sum = 0;
  for (int64_t i = 0; i < 64; ++i) sum += batch.columns[1].data<float>()[i * 13] / 64;
  EXPECT_NEAR(ValuesOf("bn/moving_mean")[0], sum, 1e-4);
}

TEST_F(LayersTest, OneBatchNormOfSeveralInputsConvergesToTheMeanOfTheirMoments) {
  MU_ASSERT_OK_AND_ASSIGN(const BatchNorm layer, BatchNorm::Create(factory_, "bn", 13));
  factory_.parameters.apply = true;
  const Batch batch = CriteoBatch(64);
  for (int step = 0; step < 100; ++step) {
    Run(true, batch, [&](FunctionBuilder&, const BatchRef& b) {
      return layer(b["dense"]) + layer(b["dense"] + 2.0f);
    });
  }
  double sum = 0;
  for (int64_t i = 0; i < 64; ++i) sum += batch.columns[1].data<float>()[i * 13] / 64;
  EXPECT_NEAR(ValuesOf("bn/moving_mean")[0], sum + 1, 1e-4);
}

TEST_F(LayersTest, DropoutDropsInTrainingOnly) {
  const DropoutLayer layer(0.5f);
  MU_ASSERT_OK_AND_ASSIGN(const Dense dense, Dense::Create(factory_, "fc", 13, 64));
  const Build build = [&](FunctionBuilder&, const BatchRef& batch) {
    return layer(dense(batch["dense"]));
  };
  const auto zeros = [](const Tensor& tensor) {
    int64_t count = 0;
    for (const float value : tensor.flat<float>()) count += value == 0;
    return count;
  };
  EXPECT_EQ(zeros(Run(false, CriteoBatch(4), build)), 0);
  EXPECT_NEAR(static_cast<double>(zeros(Run(true, CriteoBatch(4), build))), 128, 40);
}

TEST_F(LayersTest, Conv2dAndFlatten) {
  MU_ASSERT_OK_AND_ASSIGN(
      const Conv2d layer,
      Conv2d::Create(factory_, "conv", 1, 3, {.height = 2, .width = 2, .stride_width = 2}));
  EXPECT_EQ(layer.kernel().shape(), Shape({2, 2, 1, 3}));
  const Build build = [&](FunctionBuilder&, const BatchRef& batch) {
    const Sym image = Reshape(Slice(batch["dense"], {0, 0}, {-1, 12}), {-1, 4, 3, 1});
    return Flatten(layer(image));
  };
  EXPECT_EQ(Run(false, CriteoBatch(3), build).shape(), Shape({3, 24}));
  CheckGradients(build);
  EXPECT_THAT(Conv2d::Create(factory_, "bad", 1, 0),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("layer \"bad\"")));
}

TEST_F(LayersTest, AttentionsGradients) {
  MU_ASSERT_OK_AND_ASSIGN(const MultiHeadAttention layer,
                          MultiHeadAttention::Create(factory_, "mha", 4, {.heads = 2}));
  const auto sequence = [](const BatchRef& batch) {
    return Reshape(Slice(batch["dense"], {0, 0}, {-1, 12}), {-1, 3, 4});
  };
  CheckGradients([&](FunctionBuilder&, const BatchRef& batch) {
    const Sym shown = Cast(Slice(batch["ids"], {0, 0}, {-1, 3}), kBool);
    return layer(sequence(batch), {.keys = shown, .causal = true});
  });
  // A query of another length.
  const Tensor y = Run(false, CriteoBatch(2), [&](FunctionBuilder&, const BatchRef& batch) {
    return layer(Slice(sequence(batch), {0, 0, 0}, {-1, 1, -1}), sequence(batch), {});
  });
  EXPECT_EQ(y.shape(), Shape({2, 1, 4}));
}

TEST_F(LayersTest, AttentionSeesOnlyWhatItsMasksShow) {
  MU_ASSERT_OK_AND_ASSIGN(const MultiHeadAttention layer,
                          MultiHeadAttention::Create(factory_, "mha", 4, {.heads = 2}));
  Batch batch = CriteoBatch(1);
  const auto run = [&](bool causal) {
    return Run(false, batch, [&](FunctionBuilder&, const BatchRef& columns) {
      const Sym x = Reshape(Slice(columns["dense"], {0, 0}, {-1, 12}), {-1, 3, 4});
      const Sym shown = ConstantTensor(Tensor::Of<float>({1, 3}, {1, 1, 0}));
      return layer(x, {.keys = shown, .causal = causal});
    });
  };
  const Tensor masked = run(false), causal = run(true);
  batch.columns[1].data<float>()[8] += 1;  // of the third place, which no query sees
  const Tensor masked_after = run(false);
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(masked.data<float>()[i], masked_after.data<float>()[i]);
  }
  batch.columns[1].data<float>()[4] += 1;  // of the second place, which the first does not see
  const Tensor causal_after = run(true);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(causal.data<float>()[i], causal_after.data<float>()[i]);
    EXPECT_NE(causal.data<float>()[4 + i], causal_after.data<float>()[4 + i]);
  }
}

// What is not 0 shows its key, as much as 1 does.
TEST_F(LayersTest, AttentionsMasksMayBeOfAnyType) {
  MU_ASSERT_OK_AND_ASSIGN(const MultiHeadAttention layer,
                          MultiHeadAttention::Create(factory_, "mha", 4, {.heads = 2}));
  const auto run = [&](const Tensor& shown) {
    const Tensor y = Run(false, CriteoBatch(1), [&](FunctionBuilder&, const BatchRef& columns) {
      const Sym x = Reshape(Slice(columns["dense"], {0, 0}, {-1, 12}), {-1, 3, 4});
      return layer(x, {.keys = ConstantTensor(shown)});
    });
    return std::vector<float>(y.flat<float>().begin(), y.flat<float>().end());
  };
  const std::vector<float> expected = run(Tensor::Of<float>({1, 3}, {1, 1, 0}));
  ASSERT_EQ(expected.size(), 12u);
  EXPECT_NE(expected, run(Tensor::Of<float>({1, 3}, {1, 1, 1})));
  EXPECT_EQ(expected, run(Tensor::Of<bool>({1, 3}, {true, true, false})));
  EXPECT_EQ(expected, run(Tensor::Of<int64_t>({1, 3}, {7, 3, 0})));
  EXPECT_EQ(expected, run(Tensor::Of<int32_t>({1, 3}, {-1, 1, 0})));
  EXPECT_EQ(expected, run(Tensor::Of<float>({1, 3}, {0.5f, -2, 0})));
}

TEST_F(LayersTest, AttentionsMistakes) {
  EXPECT_THAT(MultiHeadAttention::Create(factory_, "mha", 5, {.heads = 2}),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("2 heads do not divide a width of 5")));
  MU_ASSERT_OK_AND_ASSIGN(const MultiHeadAttention layer,
                          MultiHeadAttention::Create(factory_, "ok", 13));
  int line = 0;
  const auto build = [&](FunctionBuilder& f) {
    const Sym dense = f.NextBatch(Criteo())["dense"];
    line = __LINE__ + 1;
    f.Return("y", layer(dense));
  };
  EXPECT_FALSE(Trace("f", build).ok());
  const std::string error = TraceError(line, build);
  EXPECT_THAT(error, HasSubstr("takes [batch, length, width] with a known length"));
}

TEST_F(LayersTest, CrossNetworkAndFm) {
  MU_ASSERT_OK_AND_ASSIGN(const CrossNetwork cross,
                          CrossNetwork::Create(factory_, "cross", 13, {.layers = 2}));
  MU_ASSERT_OK_AND_ASSIGN(const Fm fm, Fm::Create(factory_, "fm", 13, 2));
  EXPECT_THAT(Names(), UnorderedElementsAre("cross_0/kernel", "cross_0/bias", "cross_1/kernel",
                                            "cross_1/bias", "fm/numbers"));
  for (float& value : ValuesOf("fm/numbers")) value *= 10;
  CheckGradients(
      [&](FunctionBuilder&, const BatchRef& batch) { return fm({}, cross(batch["dense"])); });
  // Three vectors, without numbers: the products of their pairs.
  MU_ASSERT_OK_AND_ASSIGN(const Fm vectors_only, Fm::Create(factory_, "vectors", 0, 2));
  const Tensor y = Run(false, CriteoBatch(1), [&](FunctionBuilder&, const BatchRef&) {
    std::vector<Sym> vectors;
    for (const float x : {1.0f, 2.0f, 3.0f}) {
      vectors.push_back(ConstantTensor(Tensor::Of<float>({1, 2}, {x, -x})));
    }
    return vectors_only(vectors);
  });
  EXPECT_THAT(y.flat<float>(), ElementsAre(2 * (1 * 2 + 1 * 3 + 2 * 3)));
}

TEST_F(LayersTest, SummaryListsLayersShapesParametersAndFlops) {
  MU_ASSERT_OK_AND_ASSIGN(const Embedding users, Embedding::Create(factory_, "users", 100, 4));
  MU_ASSERT_OK_AND_ASSIGN(const Mlp mlp, Mlp::Create(factory_, "mlp", 17, {8, 1}));
  MU_ASSERT_OK_AND_ASSIGN(const LayerNorm norm, LayerNorm::Create(factory_, "norm", 17));
  std::string text;
  std::vector<LayerSummary> layers;
  MU_ASSERT_OK(Trace("f", [&](FunctionBuilder& f) {
    const BatchRef batch = f.NextBatch(Criteo());
    const Sym user = Reshape(users(Slice(batch["ids"], {0, 0}, {-1, 1})), {-1, 4});
    f.Return("y", mlp(norm(Concat({user, batch["dense"]}, 1))));
    MU_ASSERT_OK_AND_ASSIGN(layers, Summarize(f));
    MU_ASSERT_OK_AND_ASSIGN(text, Summary(f));
  }));
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[0].name, "users");
  EXPECT_EQ(layers[0].parameters, 400);
  EXPECT_EQ(layers[1].name, "norm");
  EXPECT_EQ(layers[1].op, "layer_norm");
  EXPECT_EQ(layers[1].parameters, 34);
  EXPECT_EQ(layers[2].name, "mlp_0");
  EXPECT_EQ(layers[2].parameters, 17 * 8 + 8);
  EXPECT_EQ(layers[2].output, "float32[?, 8]");
  EXPECT_EQ(layers[2].flops, 2 * 17 * 8);
  EXPECT_EQ(layers[3].flops, 2 * 8);
  EXPECT_THAT(text, HasSubstr("layer  op"));
  EXPECT_THAT(text, HasSubstr("mlp_0  matmul            float32[?, 8]"));
  EXPECT_THAT(text, HasSubstr("587"));  // 400 + 34 + 144 + 9
  EXPECT_THAT(text, HasSubstr("288\n"));
}

TEST_F(LayersTest, SummaryOfImagesAndMistakes) {
  MU_ASSERT_OK_AND_ASSIGN(const Conv2d conv, Conv2d::Create(factory_, "conv", 1, 3));
  MU_ASSERT_OK(Trace("f", [&](FunctionBuilder& f) {
    const Sym image =
        Reshape(Slice(f.NextBatch(Criteo())["dense"], {0, 0}, {-1, 12}), {-1, 4, 3, 1});
    f.Return("y", conv(image));
    MU_ASSERT_OK_AND_ASSIGN(const std::vector<LayerSummary> layers, Summarize(f));
    ASSERT_EQ(layers.size(), 1u);
    EXPECT_EQ(layers[0].flops, 2 * 12 * 3 * 9);  // 12 windows, 3 filters, 9 numbers each
  }));
  EXPECT_FALSE(Trace("f", [&](FunctionBuilder& f) {
                 f.Return("y", conv(f.NextBatch(Criteo())["dense"]));
                 EXPECT_THAT(Summarize(f), testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                                             HasSubstr("x must have 4 axes")));
               }).ok());
}

}  // namespace
}  // namespace mu
