// Calls that are made of several ops: what they compute, and what they refuse.
#include "coordinator/frontend/composed_ops.h"

#include <cmath>
#include <limits>
#include <set>

#include "common/exec/executor.h"
#include "tests/coordinator/frontend/trace_helper.h"
#include "tests/testing/fake_factory.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The elements of what `build` returns, as doubles, and its shape.
struct Value {
  std::vector<double> elements;
  Shape shape;
};

Value Compute(testing::FakeFactory& factory, const std::function<Sym()>& build) {
  const auto traced = Trace("f", [&](FunctionBuilder& f) {
    const Sym y = build();
    // Infinite results are refused; what is tested here is what the op gives.
    f.Return("y", y.dtype() == kFloat32 ? Where(Less(Abs(y), 1e30f), y, Sign(y) * 1e30f) : y);
  });
  EXPECT_TRUE(traced.ok()) << traced.status();
  Value value;
  if (!traced.ok()) return value;
  const auto compiled = Compile(*traced, factory.parameters.routing());
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return value;
  Executor executor(*compiled);
  std::vector<Tensor> returns;
  MU_EXPECT_OK(executor.RunStep({}, factory.parameters, &returns));
  if (returns.empty()) return value;
  value.shape = returns[0].shape();
  const auto take = [&value](const auto& elements) {
    for (const auto element : elements) value.elements.push_back(static_cast<double>(element));
  };
  if (returns[0].dtype() == kFloat32) take(returns[0].flat<float>());
  if (returns[0].dtype() == kInt64) take(returns[0].flat<int64_t>());
  if (returns[0].dtype() == kBool) take(returns[0].flat<bool>());
  return value;
}

Value Compute(const std::function<Sym()>& build) {
  testing::FakeFactory factory;
  return Compute(factory, build);
}

Sym Floats(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor(kFloat32, shape);
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return ConstantTensor(tensor);
}
Sym Ids(const std::vector<int64_t>& ids) {
  return ConstantTensor(Tensor::Of<int64_t>({static_cast<int64_t>(ids.size())}, ids));
}
Sym Bools(const Shape& shape, const std::vector<bool>& values) {
  Tensor tensor(kBool, shape);
  std::copy(values.begin(), values.end(), tensor.data<bool>());
  return ConstantTensor(tensor);
}

TEST(ComposedOps, Elementwise) {
  EXPECT_THAT(Compute([] {
                return Clip(Floats({4}, {-2, -0.5f, 0.5f, 2}), -1, 1);
              }).elements,
              ElementsAre(-1, -0.5, 0.5, 1));
  EXPECT_THAT(Compute([] { return Clip(Ids({-2, 5}), 0, 3); }).elements, ElementsAre(0, 3));
  EXPECT_THAT(Compute([] { return Rsqrt(Floats({2}, {4, 0.25f})); }).elements, ElementsAre(0.5, 2));
  EXPECT_THAT(Compute([] {
                return Reciprocal(Floats({2}, {4, -0.5f}));
              }).elements,
              ElementsAre(0.25, -2));
  EXPECT_THAT(Compute([] {
                return Argmin(Floats({2, 3}, {3, 1, 1, -1, 0, 2}), -1);
              }).elements,
              ElementsAre(1, 0));
}

TEST(ComposedOps, ArgminOfIntegersFindsTheSmallestOfTheType) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Compute([] {
                return Argmin(Ids({0, kLeast, -1, kMost}), 0);
              }).elements,
              ElementsAre(1));
  EXPECT_THAT(Compute([] { return Argmin(Ids({kMost, 5, -7, -7}), 0); }).elements, ElementsAre(2));
  EXPECT_THAT(Compute([] {
                constexpr int32_t kLeast32 = std::numeric_limits<int32_t>::min();
                return Argmin(ConstantTensor(Tensor::Of<int32_t>(
                                  {2, 3}, {1, 0, kLeast32, kLeast32, kLeast32 + 1, 0})),
                              1);
              }).elements,
              ElementsAre(2, 0));
}

TEST(ComposedOps, OneHot) {
  const Value value = Compute([] { return OneHot(Ids({2, -1, 0, 3}), 3); });
  EXPECT_EQ(value.shape, Shape({4, 3}));
  EXPECT_THAT(value.elements, ElementsAre(0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(Compute([] { return OneHot(Cast(Ids({1}), kInt32), 2); }).elements,
              ElementsAre(0, 1));
}

TEST(ComposedOps, StackAndSplit) {
  const Value stacked = Compute([] {
    return Stack({Floats({2}, {1, 2}), Floats({2}, {3, 4})}, -1);
  });
  EXPECT_EQ(stacked.shape, Shape({2, 2}));
  EXPECT_THAT(stacked.elements, ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(Compute([] {
                return Split(Floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), 1, 2)[1];
              }).elements,
              ElementsAre(3, 4, 7, 8));
  EXPECT_THAT(Compute([] {
                return SplitSizes(Floats({4}, {1, 2, 3, 4}), 0, {1, 3})[1];
              }).elements,
              ElementsAre(2, 3, 4));
}

TEST(ComposedOps, BroadcastTo) {
  const Value value = Compute([] { return BroadcastTo(Floats({2, 1}, {1, 2}), {2, -1, 3}); });
  EXPECT_EQ(value.shape, Shape({2, 2, 3}));
  EXPECT_THAT(value.elements, ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
}

TEST(ComposedOps, Masks) {
  const Value mask = Compute([] { return SequenceMask(Ids({0, 2, 5}), 3); });
  EXPECT_EQ(mask.shape, Shape({3, 3}));
  EXPECT_THAT(mask.elements, ElementsAre(0, 0, 0, 1, 1, 0, 1, 1, 1));
  const auto x = [] { return Floats({2, 3}, {1, -5, 3, 7, 8, 9}); };
  const auto some = [] { return Bools({2, 3}, {true, false, true, false, false, false}); };
  EXPECT_THAT(Compute([&] { return MaskedSum(x(), some(), {1}); }).elements, ElementsAre(4, 0));
  EXPECT_THAT(Compute([&] { return MaskedMean(x(), some(), {1}); }).elements, ElementsAre(2, 0));
  EXPECT_THAT(Compute([&] { return MaskedMax(x(), some(), {1}); }).elements,
              ElementsAre(3, -1e30f));
  EXPECT_THAT(Compute([&] { return MaskedMin(x(), some(), {1}); }).elements, ElementsAre(1, 1e30f));
  EXPECT_THAT(Compute([&] {
                return MaskedMean(x(), Bools({3}, {true, false, false}));
              }).elements,
              ElementsAre(4));  // of 1 and 7
}

TEST(ComposedOps, CrossesOfIds) {
  const Value one = Compute([] { return HashCross({Ids({1, 2, 1}), Ids({5, 5, 6})}, 1 << 20); });
  const Value again = Compute([] { return HashCross({Ids({1, 2, 1}), Ids({5, 5, 6})}, 1 << 20); });
  EXPECT_EQ(one.elements, again.elements);
  EXPECT_EQ(std::set<double>(one.elements.begin(), one.elements.end()).size(), 3u);
  const Value turned = Compute([] { return HashCross({Ids({5}), Ids({1})}, 1 << 20); });
  EXPECT_NE(turned.elements[0], one.elements[0]);
  const Value mixed = Compute([] {
    return HashCross({Cast(Ids({1}), kInt32), Ids({5})}, 1 << 20);
  });
  EXPECT_EQ(mixed.elements[0], one.elements[0]);
}

// Crosses of many pairs spread over the buckets.
TEST(ComposedOps, CrossesAreSpread) {
  std::vector<int64_t> a, b;
  for (int64_t i = 0; i < 64; ++i) {
    for (int64_t j = 0; j < 64; ++j) {
      a.push_back(i);
      b.push_back(j);
    }
  }
  const Value value = Compute([&] { return HashCross({Ids(a), Ids(b)}, 16); });
  std::vector<int> counts(16);
  for (const double bucket : value.elements) ++counts[static_cast<size_t>(bucket)];
  for (const int count : counts) EXPECT_NEAR(count, 256, 6 * 16);
}

TEST(ComposedOps, SequencesOfEmbeddings) {
  testing::FakeFactory factory;
  MU_ASSERT_OK_AND_ASSIGN(
      const EmbeddingTable table,
      factory.CreateEmbeddingTable({.name = "t", .rows = 9, .dim = 2, .initializer = Uniform{}}));
  const std::vector<float>& rows = factory.parameters.table(table.proto().id()).values;
  const auto sequences = [&](bool keep_last) {
    return EmbeddingSequence(table, Ids({4, 2, 7, 1}),
                             ConstantTensor(Tensor::Of<int32_t>({4}, {0, 3, 3, 4})), 2, keep_last);
  };
  const Value value = Compute(factory, [&] { return sequences(true).rows; });
  EXPECT_EQ(value.shape, Shape({3, 2, 2}));
  EXPECT_THAT(value.elements, ElementsAre(rows[4], rows[5], rows[14], rows[15], 0, 0, 0, 0, rows[2],
                                          rows[3], 0, 0));
  EXPECT_THAT(Compute(factory, [&] { return sequences(false).rows; }).elements[0], rows[8]);
  EXPECT_THAT(Compute(factory, [&] { return sequences(true).mask; }).elements,
              ElementsAre(1, 1, 0, 0, 1, 0));
}

TEST(ComposedOps, Refuse) {
  const auto error = [](const std::function<void(const Sym& x)>& build) {
    const auto traced =
        Trace("f", [&](FunctionBuilder& f) { build(f.NextBatch(Criteo())["dense"]); });
    EXPECT_FALSE(traced.ok());
    EXPECT_THAT(std::string(traced.status().message()), HasSubstr("composed_ops_test.cc:"));
    return std::string(traced.status().message());
  };
  EXPECT_THAT(error([](const Sym& x) { Split(x, 1, 2); }), HasSubstr("no 2 equal parts"));
  EXPECT_THAT(error([](const Sym& x) { Split(x, 0, 2); }), HasSubstr("no 2 equal parts"));
  EXPECT_THAT(error([](const Sym& x) { SplitSizes(x, 1, {1, 2}); }), HasSubstr("3 entries in all"));
  EXPECT_THAT(error([](const Sym& x) { BroadcastTo(x, {3}); }), HasSubstr("cannot be broadcast"));
  EXPECT_THAT(error([](const Sym& x) {
                BroadcastTo(x, {5, 26});
              }),
              HasSubstr("cannot be broadcast"));
  EXPECT_THAT(error([](const Sym& x) { OneHot(Cast(x, kInt64), 0); }), HasSubstr("depth is 0"));
  EXPECT_THAT(error([](const Sym& x) { SequenceMask(Cast(x, kInt64), 0); }),
              HasSubstr("max_length is 0"));
  EXPECT_THAT(error([](const Sym&) { HashCross({}, 3); }), HasSubstr("no ids"));
}

}  // namespace
}  // namespace mu
