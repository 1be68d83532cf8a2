// Parts of variables in functions, run on parameters in memory: what they read, change and give as
// gradients, against the same with whole variables.
#include "coordinator/frontend/variable_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/exec/executor.h"
#include "common/graph/print.h"
#include "coordinator/frontend/builder.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/frontend/summary.h"
#include "coordinator/passes/trace.h"
#include "tests/coordinator/frontend/trace_helper.h"
#include "tests/testing/fake_factory.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::FakeFactory;
using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kClasses = 5, kDim = 3, kRecords = 4;

std::vector<float> Values(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return {flat.begin(), flat.end()};
}

Tensor Inputs() {
  Tensor x(kFloat32, Shape({kRecords, kDim}));
  for (int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = 0.1f * static_cast<float>(i % 7);
  return x;
}

// A model of two layers, the second of which servers may compute.
struct Model {
  explicit Model(float learning_rate = 0.5f) : factory(learning_rate) {
    factory.parameters.apply = true;
    hidden = *factory.CreateVariable({.name = "hidden",
                                      .shape = {kDim, kDim},
                                      .initializer = Normal{0, 0.5f},
                                      .optimizer = Sgd{.learning_rate = 0.5f}});
    classes = *factory.CreateVariable({.name = "classes",
                                       .shape = {kClasses, kDim},
                                       .initializer = Normal{0, 0.5f},
                                       .optimizer = Sgd{.learning_rate = 0.5f}});
    counts = *factory.CreateVariable(
        {.name = "counts", .shape = {6, 2}, .dtype = kInt64, .trainable = false});
  }

  absl::StatusOr<std::vector<Tensor>> Run(const std::function<void(FunctionBuilder&)>& build) {
    MU_ASSIGN_OR_RETURN(function, Trace("f", build, 1));
    MU_ASSIGN_OR_RETURN(const auto compiled, Compile(function, factory.parameters.routing()));
    Executor executor(compiled);
    std::vector<Tensor> returns;
    for (int step = 0; step < 2; ++step)
      MU_RETURN_IF_ERROR(executor.RunStep({}, factory.parameters, &returns));
    return returns;
  }
  std::vector<float> Of(const Variable& variable) {
    return Values(factory.parameters.variable(variable.proto().id()));
  }

  FakeFactory factory;
  Variable hidden, classes, counts;
  pb::FunctionProto function;
};

void ExpectNear(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

// Two products with one variable, one after the other: the gradients of both are pushed together.
TEST(VariableOps, AStepIsTheSameWhereverTheProductIsComputed) {
  const auto run = [](ProductPlace place, Model* model) {
    return model->Run([&](FunctionBuilder& f) {
      f.Train();
      const Sym x = ConstantTensor(Inputs());
      const Sym h = Tanh(MatMul(x, model->hidden));
      const Sym y = ShardedMatMul(h, model->classes, {.place = place});
      const Sym again =
          ShardedMatMul(Slice(y, {0, 0}, {-1, kDim}), model->classes, {.place = place});
      const Sym loss = ReduceMean(Square(y)) + ReduceMean(Square(again));
      f.Minimize(loss);
      f.Return("y", y);
      f.Return("loss", loss);
    });
  };
  Model servers, worker;
  const std::vector<float> before = worker.Of(worker.hidden);
  MU_ASSERT_OK_AND_ASSIGN(const auto on_servers, run(ProductPlace::kServers, &servers));
  MU_ASSERT_OK_AND_ASSIGN(const auto on_worker, run(ProductPlace::kWorker, &worker));
  ExpectNear(Values(on_servers[0]), Values(on_worker[0]));
  ExpectNear(Values(on_servers[1]), Values(on_worker[1]));
  ExpectNear(servers.Of(servers.classes), worker.Of(worker.classes));
  ExpectNear(servers.Of(servers.hidden), worker.Of(worker.hidden));
  EXPECT_NE(worker.Of(worker.hidden), before) << "the gradient goes through the product";
  EXPECT_EQ(worker.factory.parameters.multiplications, 0);
  EXPECT_EQ(servers.factory.parameters.multiplications, 2 * 4) << "two forward, two back, a step";
  const auto reads = [](const Model& model) {
    int count = 0;
    for (const pb::NodeProto& node : model.function.nodes())
      count += node.op() == "variable_read" && node.attrs().at("variable").s() == "classes";
    return count;
  };
  EXPECT_EQ(reads(worker), 1);
  EXPECT_EQ(reads(servers), 0);
}

TEST(VariableOps, AFrozenVariableHandsTheGradientOn) {
  const auto run = [](ProductPlace place, Model* model) {
    return model->Run([&](FunctionBuilder& f) {
      const Sym h = MatMul(ConstantTensor(Inputs()), model->hidden);
      f.Minimize(ReduceMean(Square(ShardedMatMul(h, model->classes, {.place = place}))),
                 {.frozen = {"classes"}});
    });
  };
  Model servers, worker;
  const std::vector<float> hidden = servers.Of(servers.hidden);
  const std::vector<float> classes = servers.Of(servers.classes);
  MU_ASSERT_OK(run(ProductPlace::kServers, &servers));
  MU_ASSERT_OK(run(ProductPlace::kWorker, &worker));
  ExpectNear(servers.Of(servers.hidden), worker.Of(worker.hidden));
  EXPECT_NE(servers.Of(servers.hidden), hidden);
  EXPECT_EQ(servers.Of(servers.classes), classes);
}

// Products that do not wait for each other share a call.
TEST(VariableOps, ProductsThatNeedNothingOfEachOtherAreOneCall) {
  Model model;
  MU_ASSERT_OK_AND_ASSIGN(const auto returns, model.Run([&](FunctionBuilder& f) {
    const Sym x = ConstantTensor(Inputs());
    const ShardedMatMulOptions servers{.place = ProductPlace::kServers};
    const Sym y = ShardedMatMul(x, model.classes, servers);
    const Sym z = ShardedMatMul(x * 2.0f, model.hidden, servers);
    f.Return("y", y);
    f.Return("z", z);
    f.Return("zx", ShardedMatMul(z, model.classes, servers) + ReduceSum(x));
  }));
  EXPECT_EQ(model.factory.parameters.multiplications, 2 * 2);
  MU_ASSERT_OK_AND_ASSIGN(const auto expected, model.Run([&](FunctionBuilder& f) {
    const Sym x = ConstantTensor(Inputs());
    const Sym z = MatMul(x * 2.0f, model.hidden, {.transpose_b = true});
    f.Return("y", MatMul(x, model.classes, {.transpose_b = true}));
    f.Return("z", z);
    f.Return("zx", MatMul(z, model.classes, {.transpose_b = true}) + ReduceSum(x));
  }));
  for (size_t i = 0; i < expected.size(); ++i) ExpectNear(Values(returns[i]), Values(expected[i]));
}

TEST(VariableOps, AnOpBehindAProductThatMakesANanIsNamed) {
  Model model;
  const auto status = model
                          .Run([&](FunctionBuilder& f) {
                            const Sym y = ShardedMatMul(ConstantTensor(Inputs()), model.classes,
                                                        {.place = ProductPlace::kServers});
                            const Sym loss = ReduceMean(Log(y - 100.0f));
                            f.Minimize(loss);
                            f.Return("loss", loss);
                          })
                          .status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NaN")));
  ASSERT_TRUE(DetailOf(status).has_value()) << status;
  EXPECT_EQ(DetailOf(status)->op(), "log");
}

// What the user did not ask servers for is read where servers cannot compute it.
TEST(VariableOps, WhatServersCannotComputeIsReadIfAnyPlaceWillDo) {
  const auto run = [](ProductPlace place, const MinimizeOptions& options, bool tied, Model* model) {
    return model->Run([&](FunctionBuilder& f) {
      const Sym h = Tanh(MatMul(ConstantTensor(Inputs()), model->hidden));
      const Sym y = ShardedMatMul(h, model->classes, {.place = place, .batch = 1});
      Sym loss = ReduceMean(Square(y - 1.0f));
      if (tied) loss = loss + ReduceMean(Square(model->classes));
      f.Minimize(loss, options);
      f.Return("loss", loss);
    });
  };
  const MinimizeOptions none, clipped{.gradients = {.clip_by_global_norm = 0.01f}},
      decayed{.gradients = {.weight_decay = 0.1f}};
  for (const auto& [options, tied] : {std::pair(none, false), std::pair(none, true),
                                      std::pair(clipped, false), std::pair(decayed, false)}) {
    Model automatic, worker;
    MU_ASSERT_OK_AND_ASSIGN(const auto a, run(ProductPlace::kAuto, options, tied, &automatic));
    MU_ASSERT_OK_AND_ASSIGN(const auto w, run(ProductPlace::kWorker, options, tied, &worker));
    ExpectNear(Values(a[0]), Values(w[0]));
    ExpectNear(automatic.Of(automatic.classes), worker.Of(worker.classes));
    ExpectNear(automatic.Of(automatic.hidden), worker.Of(worker.hidden));
    const bool possible = !tied && options.gradients == GradientOptions();
    EXPECT_EQ(automatic.factory.parameters.multiplications > 0, possible);
  }
  // One product that servers must compute: so must the others with this variable.
  Model model;
  MU_EXPECT_OK(model.Run([&](FunctionBuilder& f) {
    const Sym x = ConstantTensor(Inputs());
    f.Minimize(ReduceMean(Square(ShardedMatMul(x, model.classes, {.batch = 1}))) +
               ReduceMean(ShardedMatMul(x, model.classes, {.place = ProductPlace::kServers})));
  }));
  EXPECT_GT(model.factory.parameters.multiplications, 0);
}

TEST(VariableOps, ASlicedBatchReadsWhatServersWouldCompute) {
  const Dataset data = MakeDataset(CriteoTsv({"x.tsv"}, 7).Batch(4));
  Model model;
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::FunctionProto function, Trace("f", [&](FunctionBuilder& f) {
        const Sym dense = f.NextBatch(data)["dense"];
        const Sym y = ShardedMatMul(Slice(dense, {0, 0}, {-1, kDim}), model.classes, {.batch = 1});
        f.Minimize(ReduceMean(Square(y)), {.micro_batches = 2});
      }));
  const std::string text = FunctionToText(function);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("sharded_matmul")));
  EXPECT_THAT(text, HasSubstr("apply_gradient"));
}

// Where x does not say how many records it has, the function's data do.
TEST(VariableOps, TheBatchOfTheDataDecides) {
  const auto on_servers = [](std::optional<uint32_t> batch) {
    Model model;
    const auto function = Trace("f", [&](FunctionBuilder& f) {
      if (!batch.has_value()) {
        f.Return("y", ShardedMatMul(f.Arg("x") + ConstantTensor(Inputs()), model.classes));
        return;
      }
      const Dataset data = MakeDataset(CriteoTsv({"x.tsv"}, 7).Batch(*batch));
      const Sym dense = f.NextBatch(data)["dense"];
      f.Return("y", ShardedMatMul(Slice(dense, {0, 0}, {-1, kDim}), model.classes));
    });
    EXPECT_THAT(function, testing::IsOk());
    bool products = false;
    for (const pb::NodeProto& node : function->nodes())
      products = products || node.op() == "sharded_matmul";
    return products;
  };
  EXPECT_TRUE(on_servers(1));
  EXPECT_FALSE(on_servers(4));
  EXPECT_FALSE(on_servers(std::nullopt)) << "4 records";
}

TEST(VariableOps, ASummaryCountsWhatIsNotReadWhole) {
  Model model;
  MU_EXPECT_OK(Trace("f", [&](FunctionBuilder& f) {
    f.Return("y", ShardedMatMul(ConstantTensor(Inputs()), model.classes,
                                {.place = ProductPlace::kServers}));
    MU_ASSERT_OK_AND_ASSIGN(const std::vector<LayerSummary> layers, Summarize(f));
    ASSERT_EQ(layers.size(), 1u);
    EXPECT_EQ(layers[0].op, "sharded_matmul");
    EXPECT_EQ(layers[0].parameters, kClasses * kDim);
    EXPECT_EQ(layers[0].flops, 2 * kRecords * kClasses * kDim);
  }));
}

TEST(VariableOps, SomeRowsAreReadAndTrained) {
  const auto run = [](bool rows, Model* model) {
    return model->Run([&](FunctionBuilder& f) {
      const Sym some =
          rows ? ReadRows(model->classes, 1, 2) : Slice(model->classes, {1, 0}, {2, kDim});
      f.Minimize(ReduceSum(Square(some)) + ReduceSum(model->hidden));
      f.Return("some", some);
    });
  };
  Model some, whole;
  MU_ASSERT_OK_AND_ASSIGN(const auto a, run(true, &some));
  MU_ASSERT_OK_AND_ASSIGN(const auto b, run(false, &whole));
  EXPECT_EQ(Values(a[0]), Values(b[0]));
  EXPECT_EQ(some.Of(some.classes), whole.Of(whole.classes));
}

TEST(VariableOps, AdditionsToRowsAreAddedUp) {
  Model model;
  MU_ASSERT_OK(model.Run([&](FunctionBuilder&) {
    const Sym rows = ConstantTensor(Tensor::Of<int64_t>({3}, {5, 0, 5}));
    const Sym delta = ConstantTensor(Tensor::Of<int64_t>({3, 2}, {1, 2, 3, 4, 5, 6}));
    ScatterAdd(model.counts, rows, delta);
    ScatterAdd(model.counts, ConstantTensor(Tensor::Of<int64_t>({1}, {2})),
               ConstantTensor(Tensor::Of<int64_t>({1, 2}, {7, 8})));
  }));
  const Tensor& counts = model.factory.parameters.variable(model.counts.proto().id());
  EXPECT_THAT(counts.flat<int64_t>(),
              ::testing::ElementsAre(6, 8, 0, 0, 14, 16, 0, 0, 0, 0, 12, 16))
      << "after two steps";
}

TEST(VariableOps, NewValuesReplaceThoseOfTheStepBefore) {
  Model model;
  MU_ASSERT_OK(model.Run([&](FunctionBuilder&) {
    Assign(model.hidden, Read(model.hidden) * 0.0f + 2.0f);
    const Sym rows = ConstantTensor(Tensor::Of<int64_t>({3}, {5, 0, 5}));
    const Sym values = ConstantTensor(Tensor::Of<int64_t>({3, 2}, {1, 2, 3, 4, 5, 6}));
    ScatterUpdate(model.counts, rows, values);
  }));
  const Tensor& counts = model.factory.parameters.variable(model.counts.proto().id());
  EXPECT_THAT(counts.flat<int64_t>(), ::testing::ElementsAre(3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6));
  EXPECT_THAT(model.Of(model.hidden), ::testing::Each(2.0f));
}

TEST(VariableOps, AStepHasOneKindOfUpdateOfAVariable) {
  Model model;
  const auto refused = [&](const std::function<void(FunctionBuilder&)>& build) {
    EXPECT_THAT(model.Run(build).status().message(), HasSubstr("updates of two kinds in one step"));
  };
  refused([&](FunctionBuilder& f) {
    f.Minimize(ReduceSum(Square(Read(model.hidden))));
    Assign(model.hidden, Read(model.hidden));
  });
  refused([&](FunctionBuilder&) {
    AssignAdd(model.counts, Read(model.counts));
    ScatterUpdate(model.counts, ConstantTensor(Tensor::Of<int64_t>({1}, {5})),
                  ConstantTensor(Tensor::Of<int64_t>({1, 2}, {1, 2})));
  });
}

TEST(VariableOps, RowsThatASlicedBatchSetsAreRefused) {
  const Dataset data = MakeDataset(CriteoTsv({"x.tsv"}, 7).Batch(4));
  Model model;
  const auto function = Trace("f", [&](FunctionBuilder& f) {
    const Sym dense = f.NextBatch(data)["dense"];
    ScatterUpdate(model.counts, ConstantTensor(Tensor::Of<int64_t>({1}, {5})),
                  ConstantTensor(Tensor::Of<int64_t>({1, 2}, {1, 2})));
    f.Minimize(ReduceMean(Square(MatMul(Slice(dense, {0, 0}, {-1, kDim}), model.hidden))),
               {.micro_batches = 2});
  });
  EXPECT_THAT(function, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("cannot be computed in slices")));
}

// A server sees its part only: it would refuse what another one applies.
TEST(VariableOps, WhatServersMightFindTooLargeIsNotPushed) {
  Model model;
  const std::vector<float> before = model.Of(model.classes);
  const auto product = [&](float x, float dy) {
    return model.Run([&](FunctionBuilder& f) {
      const Sym y = ShardedMatMul(ConstantTensor(Inputs()) * x, model.classes,
                                  {.place = ProductPlace::kServers});
      f.Minimize(ReduceSum(y) * dy);
    });
  };
  EXPECT_THAT(product(1e20f, 1e20f), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("variable \"classes\" may be beyond")));
  EXPECT_EQ(model.Of(model.classes), before);
  MU_EXPECT_OK(product(1e20f, 1e-20f));
  Variable sums =
      *model.factory.CreateVariable({.name = "sums", .shape = {6, 2}, .trainable = false});
  const auto scatter = [&](float value) {
    return model.Run([&](FunctionBuilder&) {
      ScatterAdd(sums, ConstantTensor(Tensor::Of<int64_t>({2}, {1, 1})),
                 ConstantTensor(Tensor::Of<float>({2, 2}, {value, 0, value, 0})));
    });
  };
  EXPECT_THAT(scatter(3e38f), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("variable \"sums\" may be beyond")));
  MU_EXPECT_OK(scatter(1e37f));
}

TEST(VariableOps, WhatCannotBeIsRefused) {
  const auto refused = [](const std::function<void(Model&, FunctionBuilder&)>& build,
                          const std::string& why) {
    Model model;
    EXPECT_THAT(model.Run([&](FunctionBuilder& f) { build(model, f); }),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  const auto servers = [](Model& m) {
    return ReduceMean(Square(
        ShardedMatMul(ConstantTensor(Inputs()), m.classes, {.place = ProductPlace::kServers})));
  };
  refused(
      [&](Model& m, FunctionBuilder& f) {
        f.Minimize(servers(m), {.gradients = {.clip_by_global_norm = 1}});
      },
      "only the servers know");
  refused(
      [&](Model& m, FunctionBuilder& f) { f.Minimize(servers(m), {.gradients = {.l2 = 0.1f}}); },
      "only the servers know");
  const Dataset data = MakeDataset(CriteoTsv({"x.tsv"}, 7).Batch(4));
  refused(
      [&](Model& m, FunctionBuilder& f) {
        f.NextBatch(data);
        f.Minimize(servers(m), {.micro_batches = 2});
      },
      "cannot be computed in slices");
  refused(
      [&](Model& m, FunctionBuilder& f) {
        f.NextBatch(data);
        ScatterAdd(m.counts, ConstantTensor(Tensor::Of<int64_t>({1}, {0})),
                   ConstantTensor(Tensor::Of<int64_t>({1, 2}, {0, 0})));
        f.Minimize(ReduceSum(m.hidden), {.micro_batches = 2});
      },
      "cannot be computed in slices");
  refused(
      [&](Model& m, FunctionBuilder& f) {
        const Sym dense = f.NextBatch(data)["dense"];
        const Sym rows = Cast(ReduceSum(dense, {1}), kInt64);
        ScatterAdd(m.counts, rows, Cast(Slice(dense, {0, 0}, {-1, 2}), kInt64));
        f.Minimize(ReduceSum(m.hidden), {.micro_batches = 2});
      },
      "cannot be computed in slices");
  refused([&](Model& m, FunctionBuilder& f) { f.Minimize(servers(m) + ReduceSum(m.classes)); },
          "updates of two kinds");
  refused([](Model& m, FunctionBuilder& f) { f.Return("r", ReadRows(m.classes, 4, 2)); },
          "are not within the 5");
  refused([](Model&, FunctionBuilder& f) { f.Return("r", ReadRows(Variable(), 0, 0)); },
          "the mu::Variable is empty");
  refused(
      [](Model& m, FunctionBuilder&) {
        ScatterAdd(m.counts, ConstantTensor(Tensor::Of<int64_t>({1}, {0})),
                   ConstantTensor(Tensor::Of<float>({1, 2}, {0, 0})));
      },
      "but those rows of variable");
  refused(
      [](Model& m, FunctionBuilder&) {
        const Variable mean = *m.factory.CreateVariable(
            {.name = "mean", .shape = {2}, .trainable = false, .moving_part = 0.5f});
        ScatterAdd(mean, ConstantTensor(Tensor::Of<int64_t>({1}, {0})),
                   ConstantTensor(Tensor::Of<float>({1}, {0})));
      },
      "\"mean\" has a moving_part");
  refused(
      [](Model& m, FunctionBuilder& f) {
        f.Return("y", ShardedMatMul(ConstantTensor(Tensor(kFloat32, Shape({2, 4}))), m.classes,
                                    {.place = ProductPlace::kServers}));
      },
      "but variable \"classes\" is");
}

}  // namespace
}  // namespace mu
