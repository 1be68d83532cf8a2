#include "common/exec/executor.h"

#include <cmath>
#include <limits>

#include "common/base/status.h"
#include "common/exec/compiled_function.h"
#include "common/obs/telemetry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_parameters.h"
#include "tests/testing/graph_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::FakeParameterAccess;
using ::mu::testing::GraphMaker;
using ::mu::testing::IsOk;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ref = GraphMaker::Ref;

Batch MakeBatch(std::vector<std::pair<std::string, Tensor>> columns) {
  Batch batch;
  for (auto& [name, tensor] : columns) {
    batch.records = static_cast<uint32_t>(tensor.shape()[0]);
    batch.names.push_back(name);
    batch.columns.push_back(tensor);
  }
  return batch;
}

// y = x * w + b, squared error against t, and the gradients of w and b by hand.
struct LinearModel {
  LinearModel() {
    w = access.AddVariable("w", Tensor::Of<float>({2, 1}, {1, -1}));
    b = access.AddVariable("b", Tensor::Of<float>({1}, {0.5}));
    const Ref x = graph.Column("x", kFloat32, {-1, 2});
    const Ref t = graph.Column("t", kFloat32, {-1, 1});
    const Ref product = graph.Op("matmul", {x, graph.Read("w", w, kFloat32, {2, 1})});
    const Ref bias = graph.Read("b", b, kFloat32, {1});
    const Ref y = graph.Op("add", {product, bias});
    const Ref error = graph.Op("subtract", {y, t});
    graph.Return("loss", graph.Op("mean_squared_error", {y, t}));
    const Ref two = graph.Constant(Tensor::Scalar<float>(2));
    const Ref scaled =
        graph.Op("multiply", {error, graph.Op("divide", {two, graph.Op("count", {error})})});
    const Ref dw = graph.Op("matmul", {x, scaled}, {{"transpose_a", testing::BoolAttr(true)}});
    graph.Update("apply_gradient", "w", w, kFloat32, {2, 1}, dw);
    graph.Update("apply_gradient", "b", b, kFloat32, {1},
                 graph.Op("reduce_to_like", {scaled, bias}));
  }
  FakeParameterAccess access{0.1f};
  GraphMaker graph;
  uint32_t w, b;
};

Batch LinearBatch(int rows, uint64_t seed) {
  Tensor x(kFloat32, {rows, 2}), t(kFloat32, {rows, 1});
  for (int i = 0; i < rows; ++i) {
    const float a = static_cast<float>((seed + i) % 7) - 3,
                b = static_cast<float>((seed + 3 * i) % 5) - 2;
    x.data<float>()[2 * i] = a;
    x.data<float>()[2 * i + 1] = b;
    t.data<float>()[i] = 3 * a - 2 * b + 1;
  }
  return MakeBatch({{"x", x}, {"t", t}});
}

TEST(ExecutorTest, ALinearModelIsLearnedWithBatchesOfAnySize) {
  LinearModel model;
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(model.graph.function(), model.access.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  for (int step = 0; step < 300; ++step) {
    const Batch batch = LinearBatch(1 + step * 7 % 40, step);
    MU_ASSERT_OK(executor.RunStep({.batch = &batch}, model.access, &returns));
  }
  EXPECT_NEAR(*returns[0].data<float>(), 0, 1e-6);
  EXPECT_NEAR(model.access.variable(model.w).data<float>()[0], 3, 1e-3);
  EXPECT_NEAR(model.access.variable(model.w).data<float>()[1], -2, 1e-3);
  EXPECT_NEAR(model.access.variable(model.b).data<float>()[0], 1, 1e-3);
  EXPECT_EQ(model.access.pulls, 300);
  EXPECT_EQ(model.access.pushes, 300);
}

// They would take twenty times as long, and carry nothing.
TEST(ExecutorTest, DenormalsAreZero) {
  constexpr float kSmall = 1e-30f, kDenormal = 1e-39f;
  FakeParameterAccess access;
  GraphMaker g;
  const Ref x = g.Column("x", kFloat32, {-1, 3});
  g.Return("of results", g.Op("multiply", {x, x}));
  g.Return("of operands", g.Op("add", {x, x}));
  g.Return("of products", g.Op("matmul", {x, x}, {{"transpose_b", testing::BoolAttr(true)}}));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(g.function(), access.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  Tensor values(kFloat32, {3, 3});
  for (float& value : values.flat<float>()) value = kDenormal;
  for (int i = 0; i < 3; ++i) values.data<float>()[i] = 1e-20f;
  const Batch batch = MakeBatch({{"x", values}});
  MU_ASSERT_OK(executor.RunStep({.batch = &batch}, access, &returns));
  EXPECT_THAT(returns[0].flat<float>(), Each(0.0f));
  EXPECT_THAT(returns[1].flat<float>().subspan(3), Each(0.0f));
  EXPECT_THAT(returns[2].flat<float>(), Each(0.0f));
  // The rest of the thread is as it was.
  volatile float small = kSmall;
  EXPECT_GT(small * 1e-10f, 0.0f);
}

TEST(ExecutorTest, RowsArePulledOnceAndTheirGradientsSummed) {
  FakeParameterAccess access;
  const uint32_t id = access.AddTable("t", 2, {0, 1, 10, 11, 20, 21, 30, 31});
  GraphMaker g;
  const Ref ids = g.Column("ids", kInt32, {-1});
  const Ref unique = g.Op("unique", {ids});
  const Ref rows = g.PullRows("t", id, 4, 2, unique);
  const Ref y = g.Op("gather", {rows, unique.Output(1)});
  g.Return("y", y);
  const Ref dy = g.Op("ones_like", {y});
  g.PushRows("t", id, 4, 2, unique, g.Op("gather_grad", {dy, unique.Output(1), rows}));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(g.function(), access.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  Batch batch = MakeBatch({{"ids", Tensor::Of<int32_t>({4}, {3, 1, 3, 3})}});
  MU_ASSERT_OK(executor.RunStep({.batch = &batch}, access, &returns));
  EXPECT_THAT(returns[0].flat<float>(), ElementsAre(30, 31, 10, 11, 30, 31, 30, 31));
  EXPECT_THAT(access.table(id).values, ElementsAre(0, 1, 9, 10, 20, 21, 27, 28));
  // An empty batch is a step like any other.
  batch = MakeBatch({{"ids", Tensor(kInt32, {0})}});
  MU_ASSERT_OK(executor.RunStep({.batch = &batch}, access, &returns));
  EXPECT_EQ(returns[0].shape(), Shape({0, 2}));
  EXPECT_EQ(access.pushes, 2);
}

TEST(ExecutorTest, ReadsSeeTheValuesOfTheBeginningOfTheStep) {
  FakeParameterAccess access;
  const uint32_t n = access.AddVariable("n", Tensor::Scalar<int64_t>(40));
  GraphMaker g;
  const Ref step = g.Arg("by", kInt64);
  g.Update("assign_add", "n", n, kInt64, {}, step);
  g.Return("n", g.Read("n", n, kInt64, {}));
  g.Return("worker", g.Op("worker_index"));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(g.function(), access.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  const Tensor by = Tensor::Scalar<int64_t>(2);
  MU_ASSERT_OK(executor.RunStep({.args = {&by, 1}, .worker_index = 5}, access, &returns));
  EXPECT_EQ(*returns[0].data<int64_t>(), 40);
  EXPECT_EQ(*returns[1].data<int64_t>(), 5);
  const Tensor kept = returns[0];
  MU_ASSERT_OK(executor.RunStep({.args = {&by, 1}}, access, &returns));
  EXPECT_EQ(*returns[0].data<int64_t>(), 42);
  EXPECT_EQ(*kept.data<int64_t>(), 40);
}

TEST(ExecutorTest, ErrorsOfTheAccessPassThroughUnchanged) {
  LinearModel model;
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(model.graph.function(), model.access.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  const Batch batch = LinearBatch(3, 0);
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_STALE);
  model.access.pull_status = WithDetail(absl::FailedPreconditionError("old generation"), detail);
  EXPECT_EQ(executor.RunStep({.batch = &batch}, model.access, &returns), model.access.pull_status);
  EXPECT_EQ(model.access.pushes, 0);
  model.access.pull_status = absl::OkStatus();
  model.access.push_status = absl::UnavailableError("server gone");
  EXPECT_EQ(executor.RunStep({.batch = &batch}, model.access, &returns), model.access.push_status);
  EXPECT_TRUE(returns.empty());
  model.access.push_status = absl::OkStatus();
  MU_EXPECT_OK(executor.RunStep({.batch = &batch}, model.access, &returns));
}

TEST(ExecutorTest, AnIdThatTheTableLacksIsTheAccessesError) {
  FakeParameterAccess access;
  const uint32_t id = access.AddTable("t", 1, {0, 1});
  GraphMaker g;
  const Ref unique = g.Op("unique", {g.Column("ids", kInt64, {-1})});
  g.Return("rows", g.PullRows("t", id, 2, 1, unique));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(g.function(), access.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  const Batch batch = MakeBatch({{"ids", Tensor::Of<int64_t>({2}, {1, 2})}});
  EXPECT_THAT(executor.RunStep({.batch = &batch}, access, &returns),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("op \"pull_rows\""), HasSubstr("at test.cc:3"),
                             HasSubstr("no row 2"), HasSubstr("in the batch's column \"ids\""))));
}

TEST(ExecutorTest, BadInputsAreNamed) {
  LinearModel model;
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(model.graph.function(), model.access.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  EXPECT_THAT(executor.RunStep({}, model.access, &returns),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no batch")));
  Batch batch = MakeBatch({{"x", Tensor(kFloat32, {1, 2})}});
  EXPECT_THAT(executor.RunStep({.batch = &batch}, model.access, &returns),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no column \"t\"")));
  batch = MakeBatch({{"x", Tensor(kFloat32, {1, 3})}, {"t", Tensor(kFloat32, {1, 1})}});
  EXPECT_THAT(executor.RunStep({.batch = &batch}, model.access, &returns),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is float32[1, 3]")));
  // Columns of different lengths are found by the op that joins them.
  Tensor x(kFloat32, {2, 2}), t(kFloat32, {3, 1});
  std::fill_n(x.data<float>(), 4, 1.0f);
  std::fill_n(t.data<float>(), 3, 1.0f);
  batch = MakeBatch({{"x", x}, {"t", t}});
  const absl::Status status = executor.RunStep({.batch = &batch}, model.access, &returns);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("do not broadcast")));
  ASSERT_TRUE(DetailOf(status).has_value());
  EXPECT_EQ(DetailOf(status)->op(), "subtract");
  EXPECT_EQ(DetailOf(status)->location().file(), "test.cc");
  EXPECT_EQ(DetailOf(status)->kind(), pb::ERROR_USER);
  EXPECT_EQ(model.access.pushes, 0);
}

TEST(ExecutorTest, ArgumentsAreChecked) {
  FakeParameterAccess access;
  GraphMaker g;
  g.Return("rate", g.Arg("rate", kFloat32));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(g.function(), access.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  EXPECT_THAT(executor.RunStep({}, access, &returns),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"rate\" is missing")));
  const Tensor wrong = Tensor::Scalar<int64_t>(1);
  EXPECT_THAT(
      executor.RunStep({.args = {&wrong, 1}}, access, &returns),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes a scalar of type float32")));
  EXPECT_EQ(access.pulls, 0);
}

TEST(ExecutorTest, BitsDoNotDependOnTheAlignmentOfTheBatch) {
  std::vector<std::string> results;
  for (const size_t shift : {0, 4, 12, 36}) {
    LinearModel model;
    MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(model.graph.function(), model.access.routing()));
    Executor executor(compiled);
    Batch batch = LinearBatch(37, 5);
    for (Tensor& column : batch.columns) {
      auto memory = std::make_shared<std::vector<char>>(column.bytes() + 64);
      std::memcpy(memory->data() + shift, column.raw(), column.bytes());
      column = Tensor(column.dtype(), column.shape(), memory, memory->data() + shift);
    }
    std::vector<Tensor> returns;
    MU_ASSERT_OK(executor.RunStep({.batch = &batch}, model.access, &returns));
    results.push_back(returns[0].ToProto().data() +
                      model.access.variable(model.w).ToProto().data());
    EXPECT_EQ(results.back(), results.front()) << shift;
  }
}

TEST(ExecutorTest, PartsOfAStepAreTimed) {
  LinearModel model;
  Telemetry telemetry;
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(model.graph.function(), model.access.routing()));
  Executor executor(compiled, &telemetry);
  std::vector<Tensor> returns;
  const Batch batch = LinearBatch(3, 0);
  for (int i = 0; i < 2; ++i)
    MU_ASSERT_OK(executor.RunStep({.batch = &batch}, model.access, &returns));
  for (const char* part : {"step.ids", "step.pull", "step.compute", "step.push"}) {
    EXPECT_EQ(telemetry.timer(part)->count(), 2) << part;
  }
}

}  // namespace
}  // namespace mu
