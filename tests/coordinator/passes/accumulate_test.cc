// Functions with micro_batches: what is accumulated how, what is refused, and that parameters come
// out as those of whole batches.
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/graph/print.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/layers_norm.h"
#include "coordinator/passes/passes.h"
#include "tests/coordinator/autodiff/check_gradients.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

Dataset CriteoOf(uint32_t batch_size) {
  pb::DatasetProto proto = CriteoDataset().proto();
  proto.set_batch_size(batch_size);
  return Dataset(std::move(proto));
}

// How each returned value of a function with micro batches is combined: by its name.
class AccumulateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(
        w_, factory_.CreateVariable({.name = "w", .shape = {13}, .initializer = Constant{0.1f}}));
    MU_ASSERT_OK_AND_ASSIGN(
        n_, factory_.CreateVariable({.name = "n", .dtype = kInt64, .trainable = false}));
    MU_ASSERT_OK_AND_ASSIGN(t_,
                            factory_.CreateEmbeddingTable(
                                {.name = "t", .rows = 7, .dim = 2, .initializer = Uniform{-1, 1}}));
  }

  using Build = std::function<void(FunctionBuilder&, const BatchRef&)>;
  absl::StatusOr<pb::FunctionProto> TraceWith(const Build& build, uint32_t micro_batches = 4) {
    return Trace("step", [&](FunctionBuilder& f) {
      const BatchRef batch = f.NextBatch(CriteoOf(16));
      f.Minimize(ReduceMean(batch["dense"] * w_), {.micro_batches = micro_batches});
      build(f, batch);
    });
  }

  // "mean", "sum", "" if it is the same in all slices, or the error.
  std::string CombineOf(const std::function<Sym(const BatchRef&)>& value) {
    const auto traced =
        TraceWith([&](FunctionBuilder& f, const BatchRef& batch) { f.Return("y", value(batch)); });
    if (!traced.ok()) return std::string(traced.status().message());
    const pb::NodeProto& node = traced->nodes(traced->returns(0).value().node());
    return node.op() == "accumulate" ? node.attrs().at("combine").s() : "";
  }

  void Refuses(const Build& build, const std::string& op, const std::string& why) {
    EXPECT_THAT(TraceWith(build),
                StatusIs(kInvalid, AllOf(HasSubstr(absl::StrCat("op \"", op, "\"")),
                                         HasSubstr("accumulate_test.cc:"), HasSubstr(why))));
  }

  testing::FakeFactory factory_;
  Variable w_, n_;
  EmbeddingTable t_;
};

TEST_F(AccumulateTest, GoldenStep) {
  auto traced = Trace("step", [&](FunctionBuilder& f) {
    const BatchRef batch = f.NextBatch(CriteoOf(16));
    const Sym loss = ReduceMean(EmbeddingLookup(t_, batch["ids"])) + ReduceMean(w_ * 2.0f);
    f.Minimize(loss, {.gradients = {.weight_decay = 0.5f}, .micro_batches = 4});
    f.Return("loss", loss);
  });
  MU_ASSERT_OK(traced);
  for (pb::NodeProto& node : *traced->mutable_nodes()) node.clear_location();
  EXPECT_EQ(traced->micro_batches(), 4u);
  // The gradient of w is the same in all slices; weight decay is of the accumulated rows.
  EXPECT_EQ(
      FunctionToText(*traced),
      "function step() dataset 1\n"
      "  %0 = batch_column() {column=\"ids\", dtype=int64, shape=[?, 26]} : int64[?, 26]\n"
      "  %1 = unique(%0) : (int64[?], int32[?, 26])\n"
      "  %2 = pull_rows(%1:0) {dim=2, id=1, rows=7, table=\"t\"} : float32[?, 2]\n"
      "  %3 = variable_read() {dtype=float32, id=1, shape=[13], variable=\"w\"} : float32[13]\n"
      "  %4 = constant() {value=float32[]{2}} : float32[]\n"
      "  %5 = multiply(%3, %4) : float32[13]\n"
      "  %6 = reduce_mean(%5) {axes=[], keep_dims=false} : float32[]\n"
      "  %7 = gather(%2, %1:1) {axis=0} : float32[?, 26, 2]\n"
      "  %8 = reduce_mean(%7) {axes=[], keep_dims=false} : float32[]\n"
      "  %9 = add(%8, %6) : float32[]\n"
      "  %10 = constant() {value=float32[]{1}} : float32[]\n"
      "  %11 = count(%7) {axes=[]} : float32[]\n"
      "  %12 = divide(%10, %11) : float32[]\n"
      "  %13 = broadcast_like(%12, %7) {axes=[]} : float32[?, 26, 2]\n"
      "  %14 = count(%5) {axes=[]} : float32[]\n"
      "  %15 = divide(%10, %14) : float32[]\n"
      "  %16 = broadcast_like(%15, %5) {axes=[]} : float32[13]\n"
      "  %17 = multiply(%16, %4) : float32[13]\n"
      "  %18 = gather_grad(%13, %1:1, %2) {axis=0} : float32[?, 2]\n"
      "  %19 = accumulate(%9) {combine=\"mean\"} : float32[]\n"
      "  %20 = accumulate_rows(%1:0, %18, %2) : (int64[?], float32[?, 2], float32[?, 2])\n"
      "  %21 = constant() {value=float32[]{0.5}} : float32[]\n"
      "  %22 = multiply(%3, %21) : float32[13]\n"
      "  %23 = add(%17, %22) : float32[13]\n"
      "  %24 = apply_gradient(%23) {dtype=float32, id=1, shape=[13], variable=\"w\"} : ()\n"
      "  %25 = multiply(%20:2, %21) : float32[?, 2]\n"
      "  %26 = add(%20:1, %25) : float32[?, 2]\n"
      "  %27 = push_rows(%20, %26) {dim=2, id=1, rows=7, table=\"t\"} : ()\n"
      "  return loss = %19\n");
}

TEST_F(AccumulateTest, WithoutMicroBatchesNothingIs) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto whole,
                          TraceWith([](FunctionBuilder&, const BatchRef&) {}, 1));
  EXPECT_EQ(whole.micro_batches(), 0u);
  for (const pb::NodeProto& node : whole.nodes()) EXPECT_NE(node.op(), "accumulate");
}

TEST_F(AccumulateTest, MeansAreAveragedAndSumsAdded) {
  const auto x = [](const BatchRef& batch) { return batch["dense"]; };
  const std::map<std::string, std::map<std::string, std::function<Sym(const BatchRef&)>>> cases = {
      {"mean",
       {{"mean", [&](const BatchRef& b) { return ReduceMean(x(b)); }},
        {"by column", [&](const BatchRef& b) { return ReduceMean(x(b), {0}); }},
        {"sum by count", [&](const BatchRef& b) { return ReduceSum(x(b)) / Count(x(b)); }},
        {"of products", [&](const BatchRef& b) { return ReduceSum(x(b) / Count(x(b))); }},
        {"masked", [&](const BatchRef& b) { return MaskedMean(x(b), Greater(x(b), 0.0f)); }},
        {"mse", [&](const BatchRef& b) { return MeanSquaredError(b["label"], b["label"] + 1.0f); }},
        {"root", [&](const BatchRef& b) { return Sqrt(ReduceMean(Square(x(b)))); }},
        {"with a penalty",
         [&](const BatchRef& b) { return ReduceMean(x(b)) + ReduceSum(Square(w_)); }},
        {"of rows", [&](const BatchRef& b) { return ReduceMean(EmbeddingLookup(t_, b["ids"])); }},
        {"of inner sums", [&](const BatchRef& b) { return ReduceMean(ReduceSum(x(b), {1})); }},
        {"by a sum of at least 1",
         [&](const BatchRef& b) { return ReduceSum(x(b)) / Maximum(ReduceSum(b["label"]), 1.0f); }},
        {"absolute", [&](const BatchRef& b) { return Abs(ReduceMean(x(b))); }},
        {"safe",
         [&](const BatchRef& b) {
           const Sym sum = ReduceSum(x(b));
           return Where(Greater(sum, 0.0f), ReduceSum(x(b) * 2.0f) / (sum + 1e-6f),
                        ZerosLike(ReduceMean(x(b))));
         }}}},
      {"sum",
       {{"sum", [&](const BatchRef& b) { return ReduceSum(x(b)); }},
        {"by column", [&](const BatchRef& b) { return ReduceSum(x(b), {0}); }},
        {"count", [&](const BatchRef& b) { return Count(b["label"]); }},
        {"whole count", [&](const BatchRef& b) { return Cast(Count(b["label"]), kInt64); }},
        {"whole sum",
         [&](const BatchRef& b) {
           const Sym ones = OnesLike(b["label"]);
           return Cast(ReduceSum(Where(Greater(b["label"], 0.5f), ones * 2.0f, ones)), kInt32);
         }},
        {"of absolute values", [&](const BatchRef& b) { return ReduceSum(Abs(x(b))); }},
        {"squares", [&](const BatchRef& b) { return SumOfSquares({x(b)}); }},
        {"integers", [&](const BatchRef& b) { return ReduceSum(b["ids"]); }},
        {"matrix", [&](const BatchRef& b) { return MatMul(x(b), x(b), {.transpose_a = true}); }},
        {"scaled", [&](const BatchRef& b) { return -ReduceSum(x(b)) * 3.0f * ReduceSum(w_); }},
        {"mean times count", [&](const BatchRef& b) { return ReduceMean(x(b)) * Count(x(b)); }},
        {"mean of multiples", [&](const BatchRef& b) { return ReduceMean(x(b) * Count(x(b))); }},
        {"right ones",
         [&](const BatchRef& b) {
           return ReduceSum(Cast(Equal(b["label"], Round(b["label"])), kFloat32));
         }}}},
      {"",
       {{"variable", [&](const BatchRef&) { return Read(n_); }},
        {"of variables", [&](const BatchRef&) { return ReduceSum(Square(w_)); }}}}};
  for (const auto& [combine, values] : cases) {
    for (const auto& [name, value] : values) EXPECT_EQ(CombineOf(value), combine) << name;
  }
}

TEST_F(AccumulateTest, WhatDoesNotFollowFromSlicesIsRefused) {
  const auto returning = [](std::function<Sym(const BatchRef&)> value) {
    return [value](FunctionBuilder& f, const BatchRef& b) { f.Return("y", value(b)); };
  };
  const char* const neither = "returned value \"y\" is neither a mean nor a sum over the batch's";
  Refuses(returning([](const BatchRef& b) { return Sigmoid(b["label"]); }), "sigmoid",
          "returned value \"y\" has an entry for each record, float32[?]");
  Refuses(returning([](const BatchRef& b) { return ReduceMax(b["dense"]); }), "reduce_max",
          neither);
  Refuses(returning([](const BatchRef& b) { return Sqrt(ReduceMax(b["dense"])); }), "sqrt",
          neither);
  Refuses(returning([](const BatchRef& b) { return Sqrt(ReduceSum(b["dense"])); }), "sqrt",
          neither);
  Refuses(
      returning([](const BatchRef& b) { return ReduceSum(b["dense"]) + ReduceMean(b["dense"]); }),
      "add", neither);
  Refuses(returning([](const BatchRef& b) { return Square(ReduceSum(b["dense"])); }), "square",
          neither);
  // Of sums over the batch: their squares grow with the square of it.
  Refuses(returning([](const BatchRef& b) { return SumOfSquares({ReduceSum(b["dense"], {0})}); }),
          "sum_of_squares", neither);
  Refuses(returning([](const BatchRef& b) {
            return MeanSquaredError(ReduceMean(b["dense"], {0}), ReduceSum(b["dense"], {0}));
          }),
          "mean_squared_error", neither);
  Refuses(
      returning([](const BatchRef& b) { return ReduceSum(b["dense"]) * ReduceSum(b["dense"]); }),
      "multiply", neither);
  // They double with the records, but are not the sums of what slices give.
  Refuses(returning([](const BatchRef& b) { return Abs(ReduceSum(b["dense"])); }), "abs", neither);
  Refuses(returning([](const BatchRef& b) { return -Relu(ReduceSum(b["dense"])); }), "negate",
          neither);
  Refuses(returning([](const BatchRef& b) {
            return Maximum(ReduceSum(b["dense"]), ReduceSum(b["label"]));
          }),
          "maximum", neither);
  Refuses(returning([](const BatchRef& b) {
            return Minimum(ReduceSum(b["dense"]), ReduceSum(b["label"]));
          }),
          "minimum", neither);
  Refuses(returning([](const BatchRef& b) { return ReduceMax(ReduceSum(b["dense"], {0})); }),
          "reduce_max", neither);
  Refuses(returning([](const BatchRef& b) {
            const Sym sum = ReduceSum(b["dense"]);
            return Where(Greater(sum, 0.0f), sum, sum * 0.5f);
          }),
          "where", neither);
  Refuses(returning([](const BatchRef& b) { return Cast(ReduceSum(b["dense"]), kInt64); }), "cast",
          neither);
  Refuses(returning(
              [](const BatchRef& b) { return Cast(Cast(ReduceSum(b["label"]), kBool), kFloat32); }),
          "cast", neither);
  Refuses([this](FunctionBuilder&,
                 const BatchRef& b) { AssignAdd(n_, Cast(ReduceSum(b["dense"]), kInt64)); },
          "assign_add", "is neither a mean nor a sum");
  Refuses(returning([](const BatchRef& b) { return 1.0f / ReduceSum(b["dense"]); }), "divide",
          neither);
  Refuses(returning([](const BatchRef& b) { return ReduceMean(Cumsum(b["dense"], 0)); }),
          "reduce_mean", neither);
  Refuses(returning([](const BatchRef& b) { return LogSumExp(b["label"]); }), "logsumexp", neither);
  Refuses(returning([](const BatchRef& b) { return Reshape(Slice(b["label"], {0}, {1}), {}); }),
          "reshape", neither);
  Refuses(returning([](const BatchRef& b) { return Cast(ReduceMean(b["dense"]), kInt64); }), "cast",
          "is int64[], which the slices of micro_batches have no mean of: Cast it to float32");
  Refuses([this](FunctionBuilder&,
                 const BatchRef& b) { AssignAdd(n_, Cast(ReduceMean(b["dense"]), kInt64)); },
          "assign_add", "what is added to variable \"n\" is int64[]");
  const std::string once_more = "which each slice of micro_batches would bring once more";
  Refuses(
      [this](FunctionBuilder&, const BatchRef& b) { Assign(w_, Read(w_) + ReduceSum(b["dense"])); },
      "assign", once_more);
  Refuses([this](FunctionBuilder&,
                 const BatchRef& b) { AssignAdd(w_, (1.0f + ReduceSum(b["dense"], {0})) * 2.0f); },
          "assign_add", once_more);
  Refuses(returning([](const BatchRef& b) { return Maximum(ReduceSum(b["dense"]), 1.0f); }),
          "maximum", once_more);
  Refuses([this](FunctionBuilder&,
                 const BatchRef& b) { Assign(n_, Cast(ReduceMean(b["dense"]), kInt64)); },
          "assign", "what is assigned to variable \"n\" is int64[]");
}

TEST_F(AccumulateTest, ALossIsAMean) {
  const auto minimizing = [this](std::function<Sym(const BatchRef&)> value) {
    return [this, value](FunctionBuilder& f, const BatchRef& b) {
      f.Minimize(value(b), {.micro_batches = 4});
    };
  };
  Refuses(minimizing([this](const BatchRef& b) { return ReduceSum(b["dense"] * w_); }),
          "reduce_sum", "with micro_batches, but is a sum over the batch's records");
  Refuses(minimizing([this](const BatchRef& b) { return Sqrt(ReduceSum(b["dense"] * w_)); }),
          "sqrt", "but is no mean over the batch's records");
  // A batch's largest is that of slices on the average; so are in-batch negatives.
  MU_EXPECT_OK(TraceWith(minimizing([this](const BatchRef& b) {
    return ReduceMean(b["dense"] * w_ - ReduceMax(b["dense"] * w_));
  })));
  MU_EXPECT_OK(TraceWith(minimizing([this](const BatchRef&) { return ReduceSum(Square(w_)); })));
}

TEST_F(AccumulateTest, MicroBatchesAreThoseOfABatch) {
  const auto nothing = [](FunctionBuilder&, const BatchRef&) {};
  EXPECT_THAT(TraceWith(nothing, 0), StatusIs(kInvalid, HasSubstr("must be at least 1")));
  MU_EXPECT_OK(TraceWith(nothing, 16));
  EXPECT_THAT(TraceWith(nothing, 17),
              StatusIs(kInvalid, AllOf(HasSubstr("accumulate_test.cc:"),
                                       HasSubstr("is 17, but a "
                                                 "batch of dataset \"criteo\" has 16 records"))));
  const auto again = [this](FunctionBuilder& f, const BatchRef& b) {
    f.Minimize(ReduceMean(b["dense"] * w_));
  };
  EXPECT_THAT(TraceWith(again), StatusIs(kInvalid, HasSubstr("has 4 micro_batches already")));
  MU_EXPECT_OK(TraceWith(again, 1));
  EXPECT_THAT(
      Trace("step",
            [this](FunctionBuilder& f) { f.Minimize(ReduceSum(w_), {.micro_batches = 2}); }),
      StatusIs(kInvalid, HasSubstr("has no NextBatch before this")));
}

// A model with a table under two lookups, layers and every kind of penalty and clipping.
class EqualSteps : public ::testing::TestWithParam<GradientOptions> {
 protected:
  struct Trained {
    std::map<std::string, std::vector<float>> values;
    std::vector<float> losses;
    int pushes = 0;
  };
  static Trained Train(uint32_t micro_batches) {
    Trained trained;
    testing::FakeFactory factory(0.3f);
    factory.parameters.apply = true;
    const auto table = factory.CreateEmbeddingTable(
        {.name = "t", .rows = 7, .dim = 3, .initializer = Uniform{-0.5f, 0.5f}});
    auto mlp = Mlp::Create(factory, "mlp", 13 + 3, {5, 1});
    const auto step = Trace("step", [&](FunctionBuilder& f) {
      const BatchRef batch = f.NextBatch(CriteoOf(11));
      const Sym rows = ReduceMean(EmbeddingLookup(*table, batch["ids"]), {1});
      const Sym first =
          EmbeddingLookup(*table, Reshape(Slice(batch["ids"], {0, 0}, {-1, 1}), {-1}));
      const Sym logits = Reshape((*mlp)(Concat({batch["dense"], rows * first}, 1)), {-1});
      const Sym loss = ReduceMean(SigmoidCrossEntropy(logits, batch["label"]));
      f.Minimize(loss, {.gradients = GetParam(), .micro_batches = micro_batches});
      f.Return("loss", loss);
    });
    EXPECT_THAT(step, testing::IsOk());
    if (!step.ok()) return trained;
    const auto compiled = Compile(*step, factory.parameters.routing());
    EXPECT_THAT(compiled, testing::IsOk());
    if (!compiled.ok()) return trained;
    Executor executor(*compiled);
    for (uint64_t i = 0; i < 6; ++i) {
      const Batch batch = CriteoBatch(i == 4 ? 2 : 11, i);
      std::vector<Tensor> returns;
      MU_EXPECT_OK(executor.RunStep({.batch = &batch}, factory.parameters, &returns));
      trained.losses.push_back(*returns[0].data<float>());
    }
    for (const auto& [id, name] : factory.parameters.names) {
      const auto own = id.first ? absl::MakeSpan(factory.parameters.table(id.second).values)
                                : factory.parameters.variable(id.second).flat<float>();
      trained.values[name].assign(own.begin(), own.end());
    }
    trained.pushes = factory.parameters.pushes;
    return trained;
  }
};

TEST_P(EqualSteps, GiveTheParametersOfWholeBatches) {
  const Trained whole = Train(1);
  for (const uint32_t micro_batches : {2, 4, 11}) {
    SCOPED_TRACE(micro_batches);
    const Trained sliced = Train(micro_batches);
    for (size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(whole.losses[i], sliced.losses[i], 1e-5) << i;
    ASSERT_EQ(whole.values.size(), sliced.values.size());
    for (const auto& [name, values] : whole.values) {
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(values[i], sliced.values.at(name)[i], 1e-5) << name << "[" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, EqualSteps,
                         ::testing::Values(GradientOptions(), GradientOptions{.l1 = 0.01f},
                                           GradientOptions{.l2 = 0.1f},
                                           GradientOptions{.clip_by_value = 0.01f},
                                           GradientOptions{.clip_by_norm = 0.05f},
                                           GradientOptions{.clip_by_global_norm = 0.05f},
                                           GradientOptions{.weight_decay = 0.1f},
                                           GradientOptions{.l1 = 0.01f,
                                                           .l2 = 0.1f,
                                                           .clip_by_value = 0.1f,
                                                           .clip_by_norm = 0.09f,
                                                           .clip_by_global_norm = 0.1f,
                                                           .weight_decay = 0.2f}));

TEST(AccumulateMovingAverage, MovesOnceTowardsTheMeanOfTheWholeBatch) {
  const Batch batch = CriteoBatch(5);
  const float* const x = batch.columns[1].data<float>();
  for (const uint32_t micro_batches : {1, 2, 5}) {
    SCOPED_TRACE(micro_batches);
    testing::FakeFactory factory;
    factory.parameters.apply = true;
    MU_ASSERT_OK_AND_ASSIGN(const Variable w, factory.CreateVariable({.name = "w", .shape = {13}}));
    MU_ASSERT_OK_AND_ASSIGN(
        const Variable average,
        factory.CreateVariable(
            {.name = "average", .shape = {13}, .trainable = false, .moving_part = 0.25f}));
    MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto step, Trace("step", [&](FunctionBuilder& f) {
                              const Sym dense = f.NextBatch(CriteoOf(5))["dense"];
                              f.Minimize(ReduceMean(dense * w), {.micro_batches = micro_batches});
                              AssignAdd(average, ReduceMean(dense, {0}));
                            }));
    MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(step, factory.parameters.routing()));
    Executor executor(compiled);
    std::vector<Tensor> returns;
    MU_ASSERT_OK(executor.RunStep({.batch = &batch}, factory.parameters, &returns));
    const auto moved = factory.parameters.variable(average.proto().id()).flat<float>();
    for (int c = 0; c < 13; ++c) {
      double mean = 0;
      for (int i = 0; i < 5; ++i) mean += x[13 * i + c] / 5.0;
      EXPECT_NEAR(moved[c], 0.25 * mean, 1e-6);
    }
  }
}

// The moving averages take the mean of the slices' statistics, by records.
TEST(AccumulateBatchNorm, MovesAveragesByTheMeanOfSlices) {
  testing::FakeFactory factory;
  factory.parameters.apply = true;
  MU_ASSERT_OK_AND_ASSIGN(BatchNorm norm,
                          BatchNorm::Create(factory, "norm", 13, {.momentum = 0.75f}));
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto step, Trace("step", [&](FunctionBuilder& f) {
                            f.Train();
                            const BatchRef batch = f.NextBatch(CriteoOf(5));
                            f.Minimize(ReduceMean(Square(norm(batch["dense"]))),
                                       {.micro_batches = 2});
                          }));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(step, factory.parameters.routing()));
  Executor executor(compiled);
  const Batch batch = CriteoBatch(5);
  std::vector<Tensor> returns;
  MU_ASSERT_OK(executor.RunStep({.batch = &batch}, factory.parameters, &returns));
  const auto moving = [&](const std::string& what) {
    for (const auto& [id, name] : factory.parameters.names) {
      if (name == "norm/moving_" + what)
        return factory.parameters.variable(id.second).flat<float>();
    }
    return absl::Span<float>();
  };
  const float* const x = batch.columns[1].data<float>();
  for (int c = 0; c < 13; ++c) {
    float means = 0, variances = 0;
    for (const auto& [begin, records] : {std::pair(0, 3), std::pair(3, 2)}) {
      float mean = 0, squares = 0;
      for (int i = begin; i < begin + records; ++i) mean += x[13 * i + c] / records;
      for (int i = begin; i < begin + records; ++i) squares += std::pow(x[13 * i + c] - mean, 2.0f);
      means += mean * records / 5;
      variances += squares / (records - 1) * records / 5;
    }
    EXPECT_NEAR(moving("mean")[c], means * 0.25f, 1e-6);
    EXPECT_NEAR(moving("variance")[c], 0.75f + variances * 0.25f, 1e-5);
  }
}

}  // namespace
}  // namespace mu
