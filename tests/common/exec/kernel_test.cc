// Every kernel against a plain loop, and what kernels refuse.
#include <cmath>
#include <limits>
#include <set>

#include "common/base/hash.h"
#include "common/exec/kernel_table.h"
#include "tests/common/exec/all_ops.h"
#include "tests/common/exec/run_op.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::AllCaseMakers;
using ::mu::testing::AllReferences;
using ::mu::testing::Dense;
using ::mu::testing::IntAttr;
using ::mu::testing::IntsAttr;
using ::mu::testing::OpCase;
using ::mu::testing::RunOp;
using ::mu::testing::StatusIs;
using ::mu::testing::StringAttr;
using ::mu::testing::TypeAttr;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The executor itself carries out the others; executor_test.cc runs each of them.
TEST(KernelTableTest, EveryOpThatCanBeRunHasAKernelAPlainLoopAndCases) {
  for (const OpDef* def : AllOps().All()) {
    const bool runs = def->has_kernel();
    EXPECT_EQ(AllKernels().Find(def->name) != nullptr, runs) << "kernel of " << def->name;
    EXPECT_EQ(AllReferences().count(def->name) > 0, runs) << "plain loop of " << def->name;
    EXPECT_EQ(AllCaseMakers().count(def->name) > 0, runs) << "cases of " << def->name;
  }
}

std::string Describe(const OpCase& c) {
  std::string text;
  for (const Dense& input : c.inputs) {
    text += " " + TensorSpec{input.dtype, Shape(input.shape)}.ToString();
  }
  for (const auto& [name, value] : c.attrs) text += " " + name + "=" + value.ShortDebugString();
  return text;
}

// The inputs' shapes with some sizes unknown, as they are in graphs that read batches.
std::vector<Shape> HideSizes(SplitMix& random, const OpCase& c) {
  std::vector<Shape> shapes;
  for (const Dense& input : c.inputs) {
    Shape shape(input.shape);
    for (int i = 0; i < shape.rank(); ++i) {
      if (random.Below(3) == 0) shape[i] = kUnknownDim;
    }
    shapes.push_back(shape);
  }
  return shapes;
}

void ExpectClose(const Tensor& tensor, const Dense& expected) {
  const Dense actual = testing::ToDense(tensor);
  ASSERT_EQ(actual.dtype, expected.dtype);
  ASSERT_EQ(actual.shape, expected.shape);
  for (size_t i = 0; i < actual.values.size(); ++i) {
    const double wanted = expected.values[i];
    if (actual.values[i] == wanted) continue;  // also where it is infinite
    const double tolerance = actual.dtype == kFloat32 ? 2e-5 * (1 + std::abs(wanted)) : 0;
    ASSERT_NEAR(actual.values[i], wanted, tolerance)
        << "element " << i << " of " << actual.values.size();
  }
}

class KernelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(KernelTest, DoesWhatThePlainLoopDoes) {
  const std::string& op = GetParam();
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix random(seed);
    const OpCase c = AllCaseMakers().at(op)(random);
    SCOPED_TRACE(op + Describe(c) + " seed " + std::to_string(seed));
    std::vector<Tensor> inputs;
    for (const Dense& input : c.inputs) inputs.push_back(testing::ToTensor(input));
    const bool hide = random.Below(2) == 0;
    const auto results =
        RunOp(op, inputs, c.attrs, hide ? HideSizes(random, c) : std::vector<Shape>());
    MU_ASSERT_OK(results.status());
    muster::NodeProto node;
    for (const auto& [name, value] : c.attrs) (*node.mutable_attrs())[name] = value;
    const std::vector<Dense> expected =
        AllReferences().at(op)(c.inputs, AllOps().Find(op)->Read(node.attrs()));
    ASSERT_EQ(results->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ExpectClose((*results)[i], expected[i]);
      if (HasFatalFailure()) return;
    }
  }
}

std::vector<std::string> OpsWithCases() {
  std::vector<std::string> ops;
  for (const auto& [op, maker] : AllCaseMakers()) ops.push_back(op);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(All, KernelTest, ::testing::ValuesIn(OpsWithCases()),
                         [](const auto& info) { return info.param; });

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(KernelEdgeTest, NansAreNotLost) {
  const Tensor x = Tensor::Of<float>({2}, {kNan, 1});
  const Tensor y = Tensor::Of<float>({2}, {2, kNan});
  for (const char* op :
       {"relu", "exp", "log", "log1p", "tanh", "sigmoid", "sqrt", "square", "negate", "abs", "sign",
        "sin", "cos", "floor", "ceil", "round", "stop_gradient"}) {
    const auto result = RunOp(op, {x});
    MU_ASSERT_OK(result.status());
    EXPECT_TRUE(std::isnan((*result)[0].data<float>()[0])) << op;
    EXPECT_FALSE(std::isnan((*result)[0].data<float>()[1])) << op;
  }
  for (const char* op :
       {"add", "subtract", "multiply", "divide", "maximum", "minimum", "sigmoid_cross_entropy"}) {
    const auto result = RunOp(op, {x, y});
    MU_ASSERT_OK(result.status());
    EXPECT_TRUE(std::isnan((*result)[0].data<float>()[0])) << op;
    EXPECT_TRUE(std::isnan((*result)[0].data<float>()[1])) << op;
  }
}

TEST(KernelEdgeTest, FarTailsAreExactOrInfinite) {
  const Tensor x = Tensor::Of<float>({6}, {-200, -88, 89, 200, -kInf, kInf});
  auto result = RunOp("exp", {x});
  MU_ASSERT_OK(result.status());
  const float* const e = (*result)[0].data<float>();
  EXPECT_EQ(e[0], 0);
  EXPECT_NEAR(e[1] / std::exp(-88.0), 1, 1e-5);
  EXPECT_EQ(e[2], kInf);
  EXPECT_EQ(e[3], kInf);
  EXPECT_EQ(e[4], 0);
  EXPECT_EQ(e[5], kInf);
  result = RunOp("sigmoid", {x});
  MU_ASSERT_OK(result.status());
  EXPECT_THAT((*result)[0].flat<float>().subspan(2), ElementsAre(1, 1, 0, 1));
  result = RunOp("tanh", {x});
  MU_ASSERT_OK(result.status());
  EXPECT_THAT((*result)[0].flat<float>(), ElementsAre(-1, -1, 1, 1, -1, 1));
  result = RunOp("log", {Tensor::Of<float>({3}, {0, -1, kInf})});
  MU_ASSERT_OK(result.status());
  EXPECT_EQ((*result)[0].data<float>()[0], -kInf);
  EXPECT_TRUE(std::isnan((*result)[0].data<float>()[1]));
  EXPECT_EQ((*result)[0].data<float>()[2], kInf);
  result = RunOp("log1p", {Tensor::Of<float>({5}, {1e-10f, -1e-10f, -1, -2, kInf})});
  MU_ASSERT_OK(result.status());
  EXPECT_EQ((*result)[0].data<float>()[0], 1e-10f);
  EXPECT_EQ((*result)[0].data<float>()[1], -1e-10f);
  EXPECT_EQ((*result)[0].data<float>()[2], -kInf);
  EXPECT_TRUE(std::isnan((*result)[0].data<float>()[3]));
  EXPECT_EQ((*result)[0].data<float>()[4], kInf);
}

TEST(KernelEdgeTest, AValueDoesNotDependOnItsPlace) {
  // The last elements of a tensor take another path through the loops; the bits must be the same.
  SplitMix random(5);
  Tensor x(kFloat32, {64});
  for (float& value : absl::MakeSpan(x.data<float>(), 64))
    value = static_cast<float>(8 * random.Unit() - 4);
  for (const char* op : {"exp", "tanh", "sigmoid", "square", "relu"}) {
    const auto whole = RunOp(op, {x});
    MU_ASSERT_OK(whole.status());
    for (int64_t n = 1; n < 20; ++n) {
      for (int64_t begin = 0; begin < 5; ++begin) {
        Tensor part = Tensor::Of<float>({n}, x.flat<float>().subspan(begin, n));
        const auto result = RunOp(op, {part});
        MU_ASSERT_OK(result.status());
        EXPECT_EQ((*result)[0].flat<float>(), (*whole)[0].flat<float>().subspan(begin, n)) << op;
      }
    }
  }
}

TEST(KernelEdgeTest, CastsSaturateFloatsAndWrapIntegers) {
  auto cast = [](const Tensor& x, DType to) {
    return (*RunOp("cast", {x}, {{"dtype", TypeAttr(to)}}))[0];
  };
  const Tensor floats = Tensor::Of<float>({5}, {3e9f, -3e9f, kNan, -1.75f, kInf});
  EXPECT_THAT(cast(floats, kInt32).flat<int32_t>(),
              ElementsAre(INT32_MAX, INT32_MIN, 0, -1, INT32_MAX));
  EXPECT_THAT(cast(floats, kInt64).flat<int64_t>(),
              ElementsAre(3000000000, -3000000000, 0, -1, std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(cast(floats, kUInt8).flat<uint8_t>(), ElementsAre(255, 0, 0, 0, 255));
  EXPECT_THAT(cast(floats, kBool).flat<bool>(), ElementsAre(true, true, true, true, true));
  const Tensor integers = Tensor::Of<int64_t>({3}, {257, -1, (int64_t{1} << 32) + 5});
  EXPECT_THAT(cast(integers, kUInt8).flat<uint8_t>(), ElementsAre(1, 255, 5));
  EXPECT_THAT(cast(integers, kInt32).flat<int32_t>(), ElementsAre(257, -1, 5));
}

TEST(KernelEdgeTest, IntegersWrapAround) {
  const Tensor big = Tensor::Of<int32_t>({1}, {INT32_MAX}), one = Tensor::Of<int32_t>({1}, {1});
  EXPECT_EQ(*(*RunOp("add", {big, one}))[0].data<int32_t>(), INT32_MIN);
  EXPECT_EQ(*(*RunOp("multiply", {big, big}))[0].data<int32_t>(), 1);
  EXPECT_EQ(*(*RunOp("negate", {Tensor::Of<int32_t>({1}, {INT32_MIN})}))[0].data<int32_t>(),
            INT32_MIN);
  EXPECT_EQ(*(*RunOp("reduce_sum", {Tensor::Of<int32_t>({2}, {INT32_MAX, 1})}))[0].data<int32_t>(),
            INT32_MIN);
}

TEST(KernelRefusalTest, SizesAreCheckedAgainAtRunTime) {
  const Shape unknown({kUnknownDim, kUnknownDim});
  const Tensor a(kFloat32, {2, 3}), b(kFloat32, {4, 5});
  for (const char* op : {"add", "matmul", "sigmoid_cross_entropy", "mean_squared_error",
                         "relu_grad", "reduce_to_like", "broadcast_like", "reshape_like"}) {
    const auto result = RunOp(op, {a, b}, {}, {unknown, unknown});
    EXPECT_THAT(result, testing::HasCode(absl::StatusCode::kInvalidArgument)) << op;
  }
  EXPECT_THAT(RunOp("concat", {a, b}, {{"axis", IntAttr(1)}}, {unknown, unknown}),
              testing::HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      RunOp("slice", {a}, {{"begin", IntsAttr({0, 2})}, {"size", IntsAttr({2, 2})}}, {unknown}),
      testing::HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RunOp("slice_grad", {a, b}, {{"begin", IntsAttr({3, 0})}}, {unknown, unknown}),
              testing::HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RunOp("concat_piece", {b, a, a}, {{"axis", IntAttr(1)}, {"index", IntAttr(0)}},
                    {unknown, unknown, unknown}),
              testing::HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RunOp("reshape", {a}, {{"shape", testing::ShapeAttr({5, -1})}}, {unknown}),
              testing::HasCode(absl::StatusCode::kInvalidArgument));
}

TEST(KernelRefusalTest, ResultsThatDoNotFitIntoMemoryAreErrors) {
  const int64_t n = int64_t{1} << 21;
  const Tensor row(kUInt8, {1, n}), column(kUInt8, {n, 1});
  EXPECT_THAT(RunOp("equal", {row, column}, {}, {{1, kUnknownDim}, {kUnknownDim, 1}}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("[2097152, 2097152]")));
  const Shape unknown({kUnknownDim, kUnknownDim, kUnknownDim});
  const Tensor cube(kUInt8, {1, n, 1}), plane(kUInt8, {n, 1, 1});
  EXPECT_THAT(RunOp("equal", {cube, plane}, {}, {unknown, unknown}),
              testing::HasCode(absl::StatusCode::kResourceExhausted));
}

TEST(KernelRefusalTest, IndicesOutsideAreNamed) {
  const Tensor x(kFloat32, {3, 2});
  for (const int64_t index : {-1, 3}) {
    const Tensor indices = Tensor::Of<int64_t>({2}, {1, index});
    EXPECT_THAT(
        RunOp("gather", {x, indices}),
        StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("index " + std::to_string(index))));
    EXPECT_THAT(
        RunOp("gather_grad", {Tensor(kFloat32, {2, 2}), indices, x}),
        StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("index " + std::to_string(index))));
  }
}

TEST(KernelRefusalTest, BadBagsAreRefused) {
  const Tensor rows(kFloat32, {3, 2});
  const Tensor positions = Tensor::Of<int32_t>({2}, {0, 2});
  const testing::GraphMaker::Attrs attrs = {{"combiner", StringAttr("sum")}};
  for (const std::vector<int32_t>& splits :
       {std::vector<int32_t>{1, 2}, {0, 1}, {0, 3, 2}, {0, 2, 1, 2}, {0, -1, 2}, {0, 5}}) {
    const Tensor tensor = Tensor::Of<int32_t>({static_cast<int64_t>(splits.size())}, splits);
    EXPECT_THAT(RunOp("segment_combine", {rows, positions, tensor}, attrs),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("splits")));
  }
  const Tensor splits = Tensor::Of<int32_t>({2}, {0, 2});
  EXPECT_THAT(RunOp("segment_combine", {rows, Tensor::Of<int32_t>({2}, {0, 3}), splits}, attrs),
              testing::HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(
      RunOp("segment_combine_grad",
            {Tensor(kFloat32, {1, 2}), Tensor::Of<int32_t>({2}, {-1, 0}), splits, rows}, attrs),
      testing::HasCode(absl::StatusCode::kOutOfRange));
}

TEST(KernelEdgeTest, TheLargestOfNansIsNan) {
  const Tensor x = Tensor::Of<float>({2, 20}, [] {
    std::vector<float> values(40, 1);
    values[3] = kNan;
    values[39] = kNan;
    return values;
  }());
  for (const char* op : {"reduce_max", "reduce_min", "reduce_prod"}) {
    for (const int64_t axis : {0, 1}) {
      const auto result = RunOp(op, {x}, {{"axes", IntsAttr({axis})}});
      MU_ASSERT_OK(result.status());
      const float* const y = (*result)[0].data<float>();
      EXPECT_TRUE(std::isnan(y[axis == 0 ? 3 : 0])) << op << axis;
      EXPECT_TRUE(std::isnan(y[axis == 0 ? 19 : 1])) << op << axis;
      if (axis == 0) EXPECT_EQ(y[4], 1) << op;
    }
  }
  const auto at = RunOp("argmax", {x}, {{"axis", IntAttr(1)}});
  MU_ASSERT_OK(at.status());
  EXPECT_EQ((*at)[0].data<int64_t>()[0], 3);
  EXPECT_EQ((*at)[0].data<int64_t>()[1], 19);
}

TEST(KernelEdgeTest, DivisionOfIds) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const Tensor a = Tensor::Of<int64_t>({5}, {7, -7, 7, -7, kMin});
  const Tensor b = Tensor::Of<int64_t>({5}, {2, 2, -2, -2, -1});
  const auto quotients = RunOp("floor_divide", {a, b});
  const auto rests = RunOp("modulo", {a, b});
  MU_ASSERT_OK(quotients.status());
  MU_ASSERT_OK(rests.status());
  EXPECT_THAT((*quotients)[0].flat<int64_t>(), ElementsAre(3, -4, -4, 3, kMin));
  EXPECT_THAT((*rests)[0].flat<int64_t>(), ElementsAre(1, 1, -1, -1, 0));
  const Tensor zero = Tensor::Of<int64_t>({1}, {0});
  for (const char* op : {"floor_divide", "modulo"}) {
    EXPECT_THAT(RunOp(op, {a, zero}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("division by 0")));
  }
}

// Models are served by others than Muster: the buckets of ids may never change.
TEST(KernelEdgeTest, BucketsOfIdsAreFixed) {
  const auto buckets = RunOp("hash_bucket", {Tensor::Of<int64_t>({4}, {0, 1, -1, 123456789})},
                             {{"buckets", IntAttr(1000)}, {"seed", IntAttr(1)}});
  MU_ASSERT_OK(buckets.status());
  EXPECT_THAT((*buckets)[0].flat<int64_t>(), ElementsAre(749, 280, 924, 241));
}

TEST(KernelEdgeTest, SizesThatOnlyTheKernelSees) {
  const Tensor x(kFloat32, {2, 3});
  const Shape unknown({-1, -1});
  EXPECT_THAT(RunOp("squeeze", {x}, {{"axes", IntsAttr({0})}}, {unknown}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has not size 1")));
  EXPECT_THAT(
      RunOp("argmax", {Tensor(kFloat32, {2, 0})}, {{"axis", IntAttr(1)}}, {unknown}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no largest")));
  EXPECT_THAT(
      RunOp("tile_grad", {x, x}, {{"multiples", IntsAttr({2, 1})}}, {unknown, unknown}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no repetition")));
  EXPECT_THAT(RunOp("unpad", {x, x}, {{"before", IntsAttr({1, 0})}}, {unknown, unknown}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("leaves axis 0")));
  const Tensor splits = Tensor::Of<int32_t>({3}, {0, 3, 2});
  EXPECT_THAT(RunOp("pad_sequences", {x, splits}, {{"length", IntAttr(2)}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("never fall")));
  const Tensor condition(kBool, {4, 1});
  EXPECT_THAT(RunOp("where", {condition, x, x}, {}, {unknown, unknown, unknown}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("do not broadcast")));
}

}  // namespace
}  // namespace mu
