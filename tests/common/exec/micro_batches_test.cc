// Steps whose batch is computed in slices: what they pull, accumulate and push, and how much memory
// they take.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "common/base/status.h"
#include "common/exec/compiled_function.h"
#include "common/exec/executor.h"
#include "common/exec/memory_budget.h"
#include "tests/testing/fake_parameters.h"
#include "tests/testing/graph_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::FakeParameterAccess;
using ::mu::testing::FloatAttr;
using ::mu::testing::GraphMaker;
using ::mu::testing::IntAttr;
using ::mu::testing::StatusIs;
using ::mu::testing::StringAttr;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Ref = GraphMaker::Ref;

// What a step reads and writes, and what is pulled when.
struct Access : FakeParameterAccess {
  Access() : FakeParameterAccess(1) {}
  absl::Status Pull(absl::Span<const VariableRead> variables,
                    absl::Span<const RowsRead> rows) override {
    pulled.push_back({});
    for (const VariableRead& read : variables) pulled.back().variables.push_back(read.variable);
    for (const RowsRead& read : rows) pulled.back().ids.assign(read.ids.begin(), read.ids.end());
    return FakeParameterAccess::Pull(variables, rows);
  }
  absl::Status Push(absl::Span<const VariableWrite> variables,
                    absl::Span<const RowsWrite> rows) override {
    for (const RowsWrite& write : rows) pushed_ids.assign(write.ids.begin(), write.ids.end());
    return FakeParameterAccess::Push(variables, rows);
  }

  struct Pulled {
    std::vector<uint32_t> variables;
    std::vector<int64_t> ids;
  };
  std::vector<Pulled> pulled;
  std::vector<int64_t> pushed_ids;
};

class MicroBatchesTest : public ::testing::Test {
 protected:
  explicit MicroBatchesTest(uint32_t micro_batches = 3) {
    g_.function().set_micro_batches(micro_batches);
  }

  Ref Accumulate(Ref value, const char* combine) {
    return g_.Op("accumulate", {value}, {{"combine", StringAttr(combine)}});
  }

  static Batch BatchOf(const std::vector<float>& x, const std::vector<int64_t>& ids = {}) {
    Batch batch;
    batch.records = static_cast<uint32_t>(x.size());
    const int64_t n = batch.records;
    batch.names = {"x"};
    batch.columns = {Tensor::Of<float>({n}, x)};
    if (ids.empty()) return batch;
    batch.names.push_back("ids");
    batch.columns.push_back(Tensor::Of<int64_t>({n}, ids));
    return batch;
  }

  // The executor of the graph as it is now.
  void Compiled() {
    MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(g_.function(), access_.routing()));
    executor_ = std::make_unique<Executor>(compiled);
  }
  absl::Status Run(const Batch& batch, uint64_t step = 0) {
    if (executor_ == nullptr) Compiled();
    return executor_->RunStep({.batch = &batch, .step = step}, access_, &returns_);
  }
  float Returned(int i) const { return *returns_.at(i).data<float>(); }

  Access access_;
  GraphMaker g_;
  std::unique_ptr<Executor> executor_;
  std::vector<Tensor> returns_;
};

TEST_F(MicroBatchesTest, MeansAreOfRecordsAndSumsAreSums) {
  const Ref x = g_.Column("x", kFloat32, {-1});
  g_.Return("mean", Accumulate(g_.Op("reduce_mean", {x}), "mean"));
  g_.Return("sum", Accumulate(g_.Op("reduce_sum", {x}), "sum"));
  g_.Return("largest slice", Accumulate(g_.Op("square", {g_.Op("count", {x})}), "sum"));
  for (const std::vector<float>& values : {std::vector<float>{1, 2, 4, 8, 16, 32, 64},
                                           {3, 5},
                                           {7},
                                           {1, 2, 3, 4, 5, 6},
                                           {1, 2, 3, 4, 5, 6, 7, 8}}) {
    MU_ASSERT_OK(Run(BatchOf(values)));
    const float sum = std::accumulate(values.begin(), values.end(), 0.0f);
    const size_t n = values.size();
    EXPECT_NEAR(Returned(0), sum / static_cast<float>(n), 1e-5);
    EXPECT_EQ(Returned(1), sum);
    // Of 7: 3, 2, 2. Of 2 and 1: slices of one record, none empty. Of 6: three of 2. Of 8: 3, 3, 2.
    const std::map<size_t, float> squares = {{1, 1}, {2, 2}, {6, 12}, {7, 17}, {8, 22}};
    EXPECT_EQ(Returned(2), squares.at(n));
  }
  EXPECT_EQ(access_.pulls, 0);
}

TEST_F(MicroBatchesTest, VariablesArePulledOnceRowsForEachSlice) {
  const uint32_t w = access_.AddVariable("w", Tensor::Scalar<float>(2));
  const uint32_t b = access_.AddVariable("b", Tensor::Scalar<float>(5));  // only the end reads it
  const uint32_t t = access_.AddTable("t", 1, {10, 20, 30, 40, 50});
  const Ref x = g_.Column("x", kFloat32, {-1});
  const Ref unique = g_.Op("unique", {g_.Column("ids", kInt64, {-1})});
  const Ref rows = g_.PullRows("t", t, 5, 1, unique);
  const Ref read = g_.Read("w", w, kFloat32, {});
  const Ref y = g_.Op("multiply", {g_.Op("multiply", {x, read}),
                                   g_.Op("reshape", {g_.Op("gather", {rows, unique.Output(1)})},
                                         {{"shape", testing::ShapeAttr({-1})}})});
  const Ref mean = Accumulate(g_.Op("reduce_mean", {y}), "mean");
  g_.Return("all", g_.Op("multiply", {g_.Op("add", {mean, g_.Read("b", b, kFloat32, {})}), read}));
  MU_ASSERT_OK(Run(BatchOf({1, 2, 3, 4}, {0, 4, 4, 0})));
  EXPECT_FLOAT_EQ(Returned(0), 2 * (2 * (1 * 10 + 2 * 50 + 3 * 50 + 4 * 10) / 4.0f + 5));
  ASSERT_EQ(access_.pulled.size(), 3u);
  EXPECT_THAT(access_.pulled[0].variables, ElementsAre(w, b));
  EXPECT_THAT(access_.pulled[0].ids, ElementsAre(0, 4));
  EXPECT_THAT(access_.pulled[1].variables, ElementsAre());
  EXPECT_THAT(access_.pulled[1].ids, ElementsAre(4));
  EXPECT_THAT(access_.pulled[2].ids, ElementsAre(0));
  // The next step reads what is there then.
  *access_.variable(w).data<float>() = 1;
  MU_ASSERT_OK(Run(BatchOf({1, 2, 3, 4}, {0, 4, 4, 0})));
  EXPECT_FLOAT_EQ(Returned(0), 75 + 5);
}

// Some rows and the whole of a variable are two reads, each of them once.
TEST_F(MicroBatchesTest, SomeRowsOfAVariableArePulledBesideTheWhole) {
  const uint32_t w = access_.AddVariable("w", Tensor::Of<float>({3}, {1, 10, 100}));
  const Ref x = g_.Column("x", kFloat32, {-1});
  const auto rows = [&](int64_t first, int64_t count) {
    return g_.Op("reduce_sum", {g_.Op("variable_rows", {},
                                      {{"variable", StringAttr("w")},
                                       {"id", IntAttr(w)},
                                       {"dtype", testing::TypeAttr(kFloat32)},
                                       {"shape", testing::ShapeAttr({3})},
                                       {"first", IntAttr(first)},
                                       {"count", IntAttr(count)}})});
  };
  const Ref y = g_.Op("multiply", {x, g_.Op("add", {rows(1, 2), rows(0, 1)})});
  const Ref mean = Accumulate(g_.Op("reduce_mean", {y}), "mean");
  const Ref all = g_.Op("reduce_sum", {g_.Read("w", w, kFloat32, {3})});
  g_.Return("y",
            g_.Op("add", {g_.Op("multiply", {mean, rows(1, 2)}), g_.Op("add", {rows(1, 1), all})}));
  MU_ASSERT_OK(Run(BatchOf({1, 2, 3, 4})));
  EXPECT_FLOAT_EQ(Returned(0), 2.5f * 111 * 110 + 10 + 111);
  ASSERT_EQ(access_.pulled.size(), 1u);
  EXPECT_THAT(access_.pulled[0].variables, ElementsAre(w, w, w, w))
      << "all of it, and three choices of rows, each once";
}

TEST_F(MicroBatchesTest, GradientsOfRowsAreAddedUpById) {
  const uint32_t t = access_.AddTable("t", 2, std::vector<float>(20, 1));
  const Ref x = g_.Column("x", kFloat32, {-1});
  const Ref unique = g_.Op("unique", {g_.Column("ids", kInt64, {-1})});
  const Ref rows = g_.PullRows("t", t, 10, 2, unique);
  const Ref dy = g_.Op("concat",
                       {g_.Op("expand_dims", {x}, {{"axes", testing::IntsAttr({1})}}),
                        g_.Op("expand_dims", {x}, {{"axes", testing::IntsAttr({1})}})},
                       {{"axis", IntAttr(1)}});
  const Ref gradient = g_.Op("gather_grad", {dy, unique.Output(1), rows});
  const Ref all = g_.Op("accumulate_rows", {unique, gradient, rows});
  // The gradient and a hundred times the row, as weight decay would be.
  g_.PushRows(
      "t", t, 10, 2, all,
      g_.Op("add", {all.Output(1),
                    g_.Op("multiply", {all.Output(2), g_.Constant(Tensor::Scalar<float>(100))})}));
  const std::vector<int64_t> ids = {3, 3, 7, 1, 7, 3};  // slices (3, 3), (7, 1), (7, 3)
  const std::vector<float> values = {6, 12, 18, 24, 30, 36};
  std::vector<float> expected(20, 1);
  for (int round = 0; round < 2; ++round) {
    for (const int64_t id : {3, 7, 1}) {
      float sum = 0;  // of two of six records each, so a third of a slice's gradient
      for (size_t i = 0; i < ids.size(); ++i) sum += ids[i] == id ? values[i] / 3 : 0;
      for (const int d : {0, 1}) {
        float& row = expected[2 * id + d];
        row -= sum + 100 * row;
      }
    }
    MU_ASSERT_OK(Run(BatchOf(values, ids)));
    EXPECT_THAT(access_.pushed_ids, ElementsAre(3, 7, 1)) << "in order of first appearance";
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(access_.table(t).values[i], expected[i], 1e-2) << i;
  }
  EXPECT_EQ(access_.pushes, 2);
}

// More and more rows, so that memory grows within a step, then fewer.
TEST_F(MicroBatchesTest, AnyNumberOfRows) {
  constexpr int64_t kRows = 3000;
  const uint32_t t = access_.AddTable("t", 1, std::vector<float>(kRows, 0));
  const Ref x = g_.Column("x", kFloat32, {-1});
  const Ref unique = g_.Op("unique", {g_.Column("ids", kInt64, {-1})});
  const Ref rows = g_.PullRows("t", t, kRows, 1, unique);
  const Ref dy = g_.Op("expand_dims", {x}, {{"axes", testing::IntsAttr({1})}});
  const Ref all =
      g_.Op("accumulate_rows", {unique, g_.Op("gather_grad", {dy, unique.Output(1), rows}), rows});
  g_.PushRows("t", t, kRows, 1, all, all.Output(1));
  for (const int64_t n : {30, 300, 2000, 12}) {
    std::vector<float> values(n, static_cast<float>(-n) / static_cast<float>(n / 3));
    std::vector<int64_t> ids(n);
    for (int64_t i = 0; i < n; ++i) ids[i] = i * 7 % kRows;
    std::vector<float> expected = access_.table(t).values;
    for (const int64_t id : ids) expected[id] += 1;
    MU_ASSERT_OK(Run(BatchOf(values, ids)));
    for (int64_t i = 0; i < kRows; ++i) ASSERT_NEAR(access_.table(t).values[i], expected[i], 0.02);
    EXPECT_EQ(access_.pushed_ids.size(), static_cast<size_t>(n));
  }
}

TEST_F(MicroBatchesTest, WhatIsTheSameInAllSlicesIsAddedOnce) {
  const uint32_t n = access_.AddVariable("n", Tensor::Scalar<int64_t>(40));
  const uint32_t records = access_.AddVariable("records", Tensor::Scalar<int32_t>(0));
  g_.Update("assign_add", "n", n, kInt64, {}, g_.Constant(Tensor::Scalar<int64_t>(1)));
  const Ref ones = g_.Op("cast", {g_.Op("ones_like", {g_.Column("x", kFloat32, {-1})})},
                         {{"dtype", testing::TypeAttr(kInt32)}});
  g_.Update("assign_add", "records", records, kInt32, {},
            Accumulate(g_.Op("reduce_sum", {ones}), "sum"));
  g_.Return("n", g_.Read("n", n, kInt64, {}));
  MU_ASSERT_OK(Run(BatchOf({1, 2, 3, 4})));
  EXPECT_EQ(*returns_[0].data<int64_t>(), 40);
  EXPECT_EQ(*access_.variable(n).data<int64_t>(), 41);
  EXPECT_EQ(*access_.variable(records).data<int32_t>(), 4);
  ASSERT_EQ(access_.pulled.size(), 1u) << "of the first slice, for the end";
  EXPECT_EQ(access_.pushes, 1);
}

TEST_F(MicroBatchesTest, EachSliceDrawsOtherNumbersTheFirstThoseOfAWholeBatch) {
  const Ref like = g_.Constant(Tensor::Of<float>({2}, {0, 0}));
  const Ref draw = g_.Op("random_uniform", {like}, {{"seed", IntAttr(1)}, {"index", IntAttr(0)}});
  g_.Return("draw", Accumulate(draw, "sum"));
  const auto sum_of = [&](const std::vector<float>& records, uint64_t step) {
    MU_EXPECT_OK(Run(BatchOf(records), step));
    return std::vector<float>(returns_[0].flat<float>().begin(), returns_[0].flat<float>().end());
  };
  const std::vector<float> first = sum_of({1}, 5), two = sum_of({1, 1}, 5),
                           three = sum_of({1, 1, 1}, 5);
  EXPECT_EQ(sum_of({1, 1}, 5), two);
  EXPECT_NE(sum_of({1}, 6), first);
  for (const int i : {0, 1}) {
    const float second = two[i] - first[i], third = three[i] - two[i];
    EXPECT_GT(std::abs(second - first[i]), 1e-4);
    EXPECT_GT(std::abs(third - first[i]), 1e-4);
    EXPECT_GT(std::abs(third - second), 1e-4);
  }
  GraphMaker whole;
  whole.Return("draw", whole.Op("random_uniform", {whole.Constant(Tensor::Of<float>({2}, {0, 0}))},
                                {{"seed", IntAttr(1)}, {"index", IntAttr(0)}}));
  g_ = whole;
  executor_.reset();
  EXPECT_EQ(sum_of({1, 1, 1}, 5), first);
}

TEST_F(MicroBatchesTest, ANanOfOneSliceIsBlamedOnTheOpThatMadeIt) {
  const uint32_t w = access_.AddVariable("w", Tensor::Scalar<float>(2));
  const uint32_t t = access_.AddTable("t", 1, {1, 1});
  const Ref x = g_.Column("x", kFloat32, {-1});
  const Ref log = g_.Op("log", {g_.Op("multiply", {x, g_.Read("w", w, kFloat32, {})})});
  const Ref mean = g_.Op("reduce_mean", {log});
  const Ref unique = g_.Op("unique", {g_.Column("ids", kInt64, {-1})});
  const Ref rows = g_.PullRows("t", t, 2, 1, unique);
  const Ref root = g_.Op("sqrt", {x});
  const Ref gradient = g_.Op(
      "gather_grad",
      {g_.Op("expand_dims", {root}, {{"axes", testing::IntsAttr({1})}}), unique.Output(1), rows});
  g_.Update("apply_gradient", "w", w, kFloat32, {}, Accumulate(mean, "mean"));
  const Ref all = g_.Op("accumulate_rows", {unique, gradient, rows});
  g_.PushRows("t", t, 2, 1, all, all.Output(1));
  MU_EXPECT_OK(Run(BatchOf({1, 2, 3, 4}, {0, 1, 0, 1})));
  EXPECT_EQ(access_.pushes, 1);
  EXPECT_THAT(Run(BatchOf({1, 2, 0, 4}, {0, 1, 0, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("op \"log\""), HasSubstr("logarithm of 0"),
                             HasSubstr("reaches the gradient of variable \"w\""))));
  g_.function().mutable_nodes(log.node)->set_op("exp");
  executor_.reset();
  EXPECT_THAT(
      Run(BatchOf({1, 2, 3, -4}, {0, 1, 0, 1})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("op \"sqrt\""), HasSubstr("reaches the gradient of table \"t\""))));
  EXPECT_EQ(access_.pushes, 1);
}

TEST_F(MicroBatchesTest, WhatOverflowsAfterTheSlicesIsNoticedToo) {
  const uint32_t w = access_.AddVariable("w", Tensor::Scalar<float>(2));
  const Ref sum = Accumulate(g_.Op("reduce_sum", {g_.Column("x", kFloat32, {-1})}), "sum");
  g_.Update("apply_gradient", "w", w, kFloat32, {}, sum);
  g_.Return("sum", Accumulate(g_.Op("reduce_sum", {g_.Column("x", kFloat32, {-1})}), "sum"));
  const float large = std::numeric_limits<float>::max();
  EXPECT_THAT(Run(BatchOf({large, large, large})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("reaches the returned value \"sum\"")));
  EXPECT_EQ(access_.pushes, 0);
}

TEST_F(MicroBatchesTest, ErrorsOfASliceAreNamed) {
  const uint32_t t = access_.AddTable("t", 1, {0, 1});
  const Ref unique = g_.Op("unique", {g_.Column("ids", kInt64, {-1})});
  const Ref rows = g_.PullRows("t", t, 2, 1, unique);
  g_.Return("sum", Accumulate(g_.Op("reduce_sum", {rows}), "sum"));
  EXPECT_THAT(Run(BatchOf({1, 1, 1, 1}, {0, 1, 1, 2})),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("op \"pull_rows\""), HasSubstr("no row 2"),
                             HasSubstr("in the batch's column \"ids\""))));
  Batch odd = BatchOf({1, 1, 1, 1}, {0, 1, 1, 0});
  odd.records = 3;
  EXPECT_THAT(Run(odd), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 entries")));
  EXPECT_THAT(executor_->RunStep({}, access_, &returns_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no batch to cut")));
  access_.pull_status = absl::UnavailableError("server gone");
  EXPECT_EQ(Run(BatchOf({1, 1}, {0, 1})), access_.pull_status);
}

TEST_F(MicroBatchesTest, SlicesMustGiveValuesOfOneShape) {
  g_.Return("x", Accumulate(g_.Column("x", kFloat32, {-1}), "sum"));
  MU_ASSERT_OK(Run(BatchOf({1, 2, 10, 20, 100, 200})));
  EXPECT_THAT(returns_[0].flat<float>(), ElementsAre(111, 222));
  EXPECT_THAT(Run(BatchOf({1, 2, 3, 4})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("op \"accumulate\""), HasSubstr("[1] in one slice"))));
}

TEST_F(MicroBatchesTest, AnEmptyBatchIsAStepLikeAnyOther) {
  g_.Return("sum", Accumulate(g_.Op("reduce_sum", {g_.Column("x", kFloat32, {-1})}), "sum"));
  g_.Return("mean", Accumulate(g_.Op("reduce_mean", {g_.Column("x", kFloat32, {-1})}), "mean"));
  MU_ASSERT_OK(Run(BatchOf({})));
  EXPECT_EQ(Returned(0), 0);
  EXPECT_EQ(Returned(1), 0);
}

// What this is for: activations and pulled rows of one slice only are in memory.
size_t MemoryOfStep(uint32_t micro_batches) {
  constexpr int64_t kRecords = 800, kWidth = 64, kLayers = 6;
  Access access;
  GraphMaker g;
  g.function().set_micro_batches(micro_batches);
  std::vector<float> table(kRecords * kWidth, 0.1f);
  const uint32_t t = access.AddTable("t", kWidth, table);
  const Ref unique = g.Op("unique", {g.Column("ids", kInt64, {-1})});
  Ref y = g.Op("gather", {g.PullRows("t", t, kRecords, kWidth, unique), unique.Output(1)});
  std::vector<Ref> layers;
  for (int64_t i = 0; i < kLayers; ++i) layers.push_back(y = g.Op("exp", {g.Op("tanh", {y})}));
  Ref sum = layers[0];  // all are needed at the end, as the gradients' are
  for (int64_t i = kLayers - 1; i > 0; --i) sum = g.Op("multiply", {sum, layers[i]});
  const Ref mean = g.Op("reduce_mean", {sum});
  g.Return("mean", micro_batches > 1 ? g.Op("accumulate", {mean}, {{"combine", StringAttr("mean")}})
                                     : mean);
  const auto compiled = Compile(g.function(), access.routing());
  EXPECT_THAT(compiled, testing::IsOk());
  const size_t before = MemoryBudget::Process().used();
  Executor executor(*compiled);
  Batch batch;
  batch.records = kRecords;
  batch.names = {"ids"};
  batch.columns = {Tensor(kInt64, {kRecords})};
  std::iota(batch.columns[0].data<int64_t>(), batch.columns[0].data<int64_t>() + kRecords, 0);
  std::vector<Tensor> returns;
  MU_EXPECT_OK(executor.RunStep({.batch = &batch}, access, &returns));
  return MemoryBudget::Process().used() - before;
}

TEST(MicroBatchMemoryTest, BuffersAreThoseOfASlice) {
  const size_t whole = MemoryOfStep(1);
  EXPECT_GT(whole, size_t{800} * 64 * 4 * 7) << "rows and activations of the batch";
  EXPECT_LT(MemoryOfStep(4), whole / 4 + 4096);
  EXPECT_LT(MemoryOfStep(16), whole / 16 + 4096);
}

TEST_F(MicroBatchesTest, TotalsAreWithinTheBudget) {
  constexpr int64_t kRows = 3000, kDim = 32;
  const uint32_t t = access_.AddTable("t", kDim, std::vector<float>(kRows * kDim, 0));
  const Ref unique = g_.Op("unique", {g_.Column("ids", kInt64, {-1})});
  const Ref rows = g_.PullRows("t", t, kRows, kDim, unique);
  const Ref all = g_.Op("accumulate_rows", {unique, rows, rows});
  g_.PushRows("t", t, kRows, kDim, all, all.Output(1));
  std::vector<int64_t> ids(kRows);
  std::iota(ids.begin(), ids.end(), 0);
  MemoryBudget& budget = MemoryBudget::Process();
  budget.SetLimit(budget.used() + kRows / 3 * kDim * 4 * 2);  // rows of a slice, but not all
  EXPECT_THAT(Run(BatchOf(std::vector<float>(kRows, 1), ids)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("op \"accumulate_rows\""), HasSubstr("fit"))));
  budget.SetLimit(0);
  MU_EXPECT_OK(Run(BatchOf(std::vector<float>(kRows, 1), ids)));
}

}  // namespace
}  // namespace mu
