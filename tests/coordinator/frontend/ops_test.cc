// What the front end's calls become.
#include "common/graph/op_table.h"
#include "common/graph/print.h"
#include "coordinator/frontend/image_ops.h"
#include "coordinator/frontend/neural_ops.h"
#include "coordinator/frontend/variable_ops.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

// The graph of a traced function, with its places cut to the file's name.
std::string Text(const std::function<void(FunctionBuilder&)>& build) {
  auto traced = Trace("f", build);
  if (!traced.ok()) return std::string(traced.status().message());
  for (pb::NodeProto& node : *traced->mutable_nodes()) node.clear_location();
  return FunctionToText(*traced);
}

TEST(Ops, OperatorsBroadcastAndNumbersConvert) {
  EXPECT_EQ(
      Text([](FunctionBuilder& f) {
        const Sym dense = f.NextBatch(Criteo())["dense"];
        const Sym left = (2 * dense - 0.5) / 4.0f;
        f.Return("y", left > -dense);
      }),
      "function f() dataset 1\n"
      "  %0 = batch_column() {column=\"dense\", dtype=float32, shape=[?, 13]} : float32[?, 13]\n"
      "  %1 = constant() {value=float32[]{2}} : float32[]\n"
      "  %2 = multiply(%1, %0) : float32[?, 13]\n"
      "  %3 = constant() {value=float32[]{0.5}} : float32[]\n"
      "  %4 = subtract(%2, %3) : float32[?, 13]\n"
      "  %5 = constant() {value=float32[]{4}} : float32[]\n"
      "  %6 = divide(%4, %5) : float32[?, 13]\n"
      "  %7 = negate(%0) : float32[?, 13]\n"
      "  %8 = greater(%6, %7) : bool[?, 13]\n"
      "  return y = %8\n");
}

TEST(Ops, NumbersTakeTheOtherSidesType) {
  EXPECT_THAT(Text([](FunctionBuilder& f) { f.Return("y", f.NextBatch(Criteo())["ids"] + 1); }),
              HasSubstr("{value=int64[]{1}}"));
  EXPECT_THAT(Text([](FunctionBuilder& f) {
                f.Return("y", f.NextBatch(Criteo())["ids"] + 9007199254740993);
              }),
              HasSubstr("{value=int64[]{9007199254740993}}"));
  EXPECT_THAT(
      Text([](FunctionBuilder& f) { f.Return("y", f.NextBatch(Criteo())["dense"] * uint32_t{3}); }),
      HasSubstr("{value=float32[]{3}}"));
  EXPECT_THAT(
      Text([](FunctionBuilder& f) { f.Return("y", f.NextBatch(Criteo())["ids"] + UINT64_MAX); }),
      HasSubstr("is no int64"));
  const Variable counter = MakeVariable("counter", {}, kInt64);
  EXPECT_THAT(Text([&](FunctionBuilder&) { AssignAdd(counter, 1); }),
              HasSubstr("{value=int64[]{1}}"));
}

TEST(Ops, NegativeAxesCountFromTheEnd) {
  const std::string text = Text([](FunctionBuilder& f) {
    const Sym dense = f.NextBatch(Criteo())["dense"];
    f.Return("mean", ReduceMean(dense, {-1}));
    f.Return("turned", Transpose(dense, {-1, 0}));
    f.Return("twice", Concat({dense, dense}, -1));
    f.Return("some", Gather(dense, 3, -1));
  });
  EXPECT_THAT(text, HasSubstr("reduce_mean(%0) {axes=[1], keep_dims=false} : float32[?]"));
  EXPECT_THAT(text, HasSubstr("perm=[1, 0]"));
  EXPECT_THAT(text, HasSubstr("concat(%0, %0) {axis=1} : float32[?, 26]"));
  EXPECT_THAT(text, HasSubstr("{axis=1} : float32[?]"));
}

TEST(Ops, AVariableIsReadOnce) {
  const Variable w = MakeVariable("w", {13});
  const std::string text = Text(
      [&](FunctionBuilder& f) { f.Return("y", f.NextBatch(Criteo())["dense"] * w + w + Read(w)); });
  const size_t first = text.find("variable_read");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("variable_read", first + 1), std::string::npos) << text;
}

TEST(Ops, ArgumentsAndWorkerIndex) {
  const std::string text = Text([](FunctionBuilder& f) {
    const Sym rate = f.Arg("rate");
    const Sym count = f.Arg("count", kInt64);
    f.Return("y", Cast(count + f.WorkerIndex(), kFloat32) * rate);
  });
  EXPECT_THAT(text, HasSubstr("function f(rate: float32, count: int64)\n"));
  EXPECT_THAT(text, HasSubstr("worker_index()"));
}

TEST(Ops, TheSameBatchAgain) {
  const std::string text = Text([](FunctionBuilder& f) {
    f.Return("y", f.NextBatch(Criteo())["dense"] + f.NextBatch(Criteo())["dense"]);
  });
  EXPECT_THAT(text, HasSubstr("add(%0, %0)"));
}

TEST(Ops, TracesNest) {
  const std::string text = Text([](FunctionBuilder& f) {
    const Sym before = f.Arg("a");
    MU_ASSERT_OK(Trace("inner", [](FunctionBuilder& g) { g.Return("z", Add(1.0f, 2.0f)); }));
    f.Return("y", before + 3.0f);
  });
  EXPECT_THAT(text, HasSubstr("add(%0, %1)"));
}

TEST(Ops, DropoutIsTheIdentityUnlessTheFunctionTrains) {
  const auto build = [](bool trains) {
    return Text([trains](FunctionBuilder& f) {
      if (trains) f.Train();
      const Sym dense = f.NextBatch(Criteo())["dense"];
      f.Return("y", Dropout(Dropout(dense, 0.5f), 0.25f));
    });
  };
  EXPECT_THAT(build(false), HasSubstr("return y = %0"));
  const std::string text = build(true);
  EXPECT_THAT(text, HasSubstr("%1 = dropout(%0) {index=0, rate=0.5, seed="));
  EXPECT_THAT(text, HasSubstr("%2 = dropout(%1) {index=1, rate=0.25, seed="));
}

// The seed is of the job and of the function.
TEST(Ops, RandomOpsHaveTheirFunctionsSeed) {
  const auto seed_of = [](const std::string& name, uint64_t seed) {
    const auto traced = Trace(
        name,
        [](FunctionBuilder& f) { f.Return("y", RandomUniform(f.NextBatch(Criteo())["dense"])); },
        seed);
    return traced->nodes(1).attrs().at("seed").i();
  };
  EXPECT_EQ(seed_of("f", 1), seed_of("f", 1));
  EXPECT_NE(seed_of("f", 1), seed_of("f", 2));
  EXPECT_NE(seed_of("f", 1), seed_of("g", 1));
}

// The calls of neural_ops.h and image_ops.h.
std::vector<Sym> NeuralOps(const BatchRef& batch, const Variable& w) {
  const Sym x = batch["dense"];
  const Sym label = batch["label"];
  const Sym classes = Reshape(Slice(batch["ids"], {0, 0}, {-1, 1}), {-1});
  const Sym vectors = Reshape(x, {-1, 13, 1});
  const Sym images = Reshape(x, {-1, 13, 1, 1});
  const Sym kernel = Reshape(Slice(w, {0}, {1}), {1, 1, 1, 1});
  const PoolOptions pool{.height = 1, .width = 1};
  return {Erf(x),
          Softmax(x),
          LogSoftmax(x),
          LogSumExp(x),
          SoftmaxCrossEntropy(x, x),
          SparseSoftmaxCrossEntropy(x, classes),
          SparseSoftmaxCrossEntropyGrad(label, x, classes),
          LayerNormalize(x, w, w),
          LayerNormGrad(x, x, w, 1e-5f).beta,
          RmsNormalize(x, w),
          RmsNormGrad(x, x, w, 1e-6f).gamma,
          PairwiseInteractions(vectors),
          PairwiseInteractionsGrad(Concat({x, x, x, x, x, x}, 1), vectors),
          Convolve2d(images, kernel),
          Convolve2dInputGrad(images, images, kernel, {}),
          Convolve2dFilterGrad(images, images, kernel, {}),
          MaxPool2d(images, pool),
          MaxPool2dGrad(images, images, pool),
          AvgPool2d(images, pool),
          AvgPool2dGrad(images, images, pool)};
}

// Each op of the table that users are meant to call can be called, and makes that op.
TEST(Ops, EveryUserOpHasItsCall) {
  const Variable w = MakeVariable("w", {13});
  const Variable wide = MakeVariable("wide", {5, 13}, kFloat32, /*id=*/2);
  const EmbeddingTable table(
      EmbeddingTableSpec{.name = "t", .rows = 9, .dim = 2}.ToProto().value());
  std::set<std::string> made;
  MU_ASSERT_OK(Trace("f", [&](FunctionBuilder& f) {
    f.Train();
    const BatchRef batch = f.NextBatch(Criteo());
    const Sym x = batch["dense"];
    const Sym ids = batch["ids"];
    const Sym label = batch["label"];
    const Sym weights = Read(w);
    const Sym splits = ConstantTensor(Tensor::Of<int32_t>({2}, {0, 4}));
    const Sym matrix = Reshape(weights, {13, 1});
    for (const Sym& y : {Add(x, w),
                         Subtract(x, w),
                         Multiply(x, w),
                         Divide(x, w),
                         Maximum(x, w),
                         Minimum(x, w),
                         Greater(x, w),
                         Equal(x, w),
                         Negate(x),
                         Relu(x),
                         Sigmoid(x),
                         Tanh(x),
                         Log(x),
                         Log1p(x),
                         Exp(x),
                         Sqrt(x),
                         Square(x),
                         Cast(ids, kInt32),
                         MatMul(x, matrix),
                         BatchMatMul(Reshape(x, {-1, 13, 1}), Reshape(x, {-1, 1, 13})),
                         ReduceSum(x),
                         ReduceMean(x),
                         Count(x),
                         SigmoidCrossEntropy(label, label),
                         MeanSquaredError(x, x),
                         Concat({x, x}, 0),
                         Slice(x, {0, 0}, {-1, 1}),
                         Transpose(x, {1, 0}),
                         Gather(x, ids),
                         ZerosLike(x),
                         OnesLike(x),
                         ReluGrad(x, x),
                         BroadcastLike(w, x),
                         ReduceToLike(x, w),
                         ReshapeLike(x, x),
                         SliceGrad(Slice(x, {0, 0}, {-1, 1}), x, {0, 0}),
                         ConcatPiece(Concat({x, x}, 0), {x, x}, 0, 1),
                         GatherGrad(Gather(x, ids), ids, x, 0),
                         Pow(x, w),
                         Abs(x),
                         Sign(x),
                         Sin(x),
                         Cos(x),
                         Floor(x),
                         Ceil(x),
                         Round(x),
                         x >= w,
                         Less(x, w),
                         LessEqual(x, w),
                         NotEqual(x, w),
                         LogicalAnd(x > w, x < w),
                         LogicalOr(x > w, true),
                         LogicalNot(x > w),
                         Where(x > w, x, 0.0f),
                         FloorDivide(ids, 3),
                         Modulo(ids, 3),
                         HashBucket(ids, 9),
                         ReduceMax(x),
                         ReduceMin(x, {1}),
                         ReduceProd(x, {-1}, true),
                         ReduceAny(x > w),
                         ReduceAll(x > w),
                         Argmax(x, -1),
                         Cumsum(x, -1),
                         SumOfSquares({x, weights}),
                         ProductsOfOthers(x, {-1}),
                         ExpandDims(x, {-1}),
                         Squeeze(ExpandDims(x, {0}), {0}),
                         Tile(x, {1, 2}),
                         TileGrad(Tile(x, {1, 2}), x, {1, 2}),
                         Pad(x, {0, 1}, {0, 1}),
                         Unpad(Pad(x, {0, 1}, {0, 1}), x, {0, 1}),
                         StopGradient(x),
                         PadSequences(x, splits, 3),
                         PadSequencesGrad(PadSequences(x, splits, 3), splits, x, 3, false),
                         Dropout(x, 0.5f),
                         DropoutAgain(x, 0.5f, 1, 0),
                         RandomUniform(x, -1, 1),
                         EmbeddingLookup(table, ids),
                         f.Arg("a"),
                         f.WorkerIndex()}) {
      EXPECT_TRUE(y.valid()) << y.status();
    }
    for (const Sym& y : NeuralOps(batch, w)) EXPECT_TRUE(y.valid()) << y.status();
    AssignAdd(w, weights);
    Assign(w, weights);
    EXPECT_TRUE(ReadRows(w, 1, 2).valid());
    ScatterAdd(w, ConstantTensor(Tensor::Of<int64_t>({1}, {2})),
               ConstantTensor(Tensor::Of<float>({1}, {2})));
    ScatterUpdate(w, ConstantTensor(Tensor::Of<int64_t>({1}, {2})),
                  ConstantTensor(Tensor::Of<float>({1}, {2})));
    EXPECT_TRUE(ShardedMatMul(x, wide, {.place = ProductPlace::kServers}).valid());
    f.Minimize(ReduceMean(x * weights));
    for (const pb::NodeProto& node : f.graph().proto().nodes()) {
      made.insert(node.op());
      EXPECT_GT(node.location().line(), 0);
      EXPECT_THAT(node.location().file(), HasSubstr("ops_test.cc")) << node.op();
    }
  }));
  made.insert("constant");        // numbers, above
  made.insert("apply_gradient");  // autodiff's
  made.insert("sharded_matmul_back");
  made.insert("apply_product_gradient");
  made.insert("embedding_gradient");  // autodiff's
  for (const OpDef* def : AllOps().All()) {
    if (!def->internal) {
      EXPECT_EQ(made.count(def->name), 1u) << def->name;
    }
  }
}

}  // namespace
}  // namespace mu
