// A step that makes a NaN pushes nothing and says which op made it.
#include <limits>

#include "common/base/status.h"
#include "common/exec/executor.h"
#include "tests/testing/fake_parameters.h"
#include "tests/testing/graph_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::FakeParameterAccess;
using ::mu::testing::GraphMaker;
using ::mu::testing::HasCode;
using ::testing::HasSubstr;
using Ref = GraphMaker::Ref;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class NonFiniteTest : public ::testing::Test {
 protected:
  absl::Status Run(const std::vector<float>& x) {
    auto compiled = Compile(graph.function(), access.routing());
    if (!compiled.ok()) return compiled.status();
    Executor executor(*compiled);
    Batch batch;
    batch.names = {"x", "ids"};
    Tensor ids(kInt64, {static_cast<int64_t>(x.size())});
    for (size_t i = 0; i < x.size(); ++i) ids.data<int64_t>()[i] = static_cast<int64_t>(i);
    batch.columns = {Tensor::Of<float>({static_cast<int64_t>(x.size())}, x), ids};
    return executor.RunStep({.batch = &batch}, access, &returns);
  }
  void ExpectBlamed(const absl::Status& status, const char* op, const char* text) {
    EXPECT_THAT(status, HasCode(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    ASSERT_TRUE(DetailOf(status).has_value());
    EXPECT_EQ(DetailOf(status)->op(), op) << status;
    EXPECT_EQ(DetailOf(status)->kind(), pb::ERROR_USER);
    EXPECT_EQ(DetailOf(status)->location().file(), "test.cc");
    EXPECT_EQ(access.pushes, 0);
    EXPECT_TRUE(returns.empty());
  }

  FakeParameterAccess access;
  GraphMaker graph;
  std::vector<Tensor> returns;
};

TEST_F(NonFiniteTest, TheFirstOpOfAReturnedNanIsNamed) {
  const Ref x = graph.Column("x", kFloat32, {-1});
  const Ref root = graph.Op("log", {graph.Op("negate", {x})});
  graph.Return("loss", graph.Op("reduce_mean", {graph.Op("square", {graph.Op("add", {root, x})})}));
  ExpectBlamed(Run({-1, 2}), "log", "makes NaN, which reaches the returned value \"loss\"");
  MU_EXPECT_OK(Run({-1, -2}));
}

// Another learning rate would not help there.
TEST_F(NonFiniteTest, SaysWhatTheOpDoesNotTake) {
  const auto of = [&](const char* op, float x) {
    GraphMaker one;
    const Ref column = one.Column("x", kFloat32, {-1});
    const bool binary = std::string(op) == "divide" || std::string(op) == "pow";
    one.Return("y",
               binary ? one.Op(op, {column, one.Op("negate", {column})}) : one.Op(op, {column}));
    graph = one;
    const std::string message(Run({x}).message());
    EXPECT_THAT(message, ::testing::Not(HasSubstr("learning rate")));
    return message;
  };
  EXPECT_THAT(of("log", -2), HasSubstr("the logarithm of a negative number: keep its input above"));
  EXPECT_THAT(of("log", 0), HasSubstr("the logarithm of 0: add a small number to its input"));
  EXPECT_THAT(of("log1p", -2), HasSubstr("for an x below -1: keep its input above -1"));
  EXPECT_THAT(of("log1p", -1), HasSubstr("for x = -1: bound its input from below"));
  EXPECT_THAT(of("sqrt", -2), HasSubstr("the square root of a negative number"));
  EXPECT_THAT(of("divide", 0), HasSubstr("0 divided by 0: add a small number to the divisor"));
  EXPECT_THAT(of("pow", -2.5), HasSubstr("a negative number to a power that is no whole number"));
  EXPECT_THAT(of("pow", -40), HasSubstr("a power beyond the largest number"));
  EXPECT_THAT(of("relu", kInf), HasSubstr("Look at the data"));
}

TEST_F(NonFiniteTest, AnInfiniteGradientIsNotPushed) {
  const uint32_t v = access.AddVariable("v", Tensor::Of<float>({1}, {2}));
  const Ref x = graph.Column("x", kFloat32, {-1});
  const Ref value = graph.Read("v", v, kFloat32, {1});
  const Ref big = graph.Op("exp", {graph.Op("multiply", {x, value})});
  graph.Update("apply_gradient", "v", v, kFloat32, {1}, graph.Op("reduce_to_like", {big, value}));
  ExpectBlamed(Run({1, 100}), "exp",
               "makes infinity, which reaches the gradient of variable \"v\"; nothing of this step "
               "was applied. A lower learning rate");
  EXPECT_EQ(*access.variable(v).data<float>(), 2);
}

TEST_F(NonFiniteTest, OpsThatDoNotMatterAreNotBlamed) {
  const Ref x = graph.Column("x", kFloat32, {-1});
  const Ref unrelated = graph.Op("log", {x});  // infinite, and used only where it does no harm
  const Ref harmless = graph.Op("greater", {x, unrelated});
  graph.Return("flags", harmless);
  graph.Return("y", graph.Op("divide", {x, x}));
  ExpectBlamed(Run({0, 1}), "divide", "makes NaN");
}

TEST_F(NonFiniteTest, ANanInWhatIsPulledOrReadIsBlamedOnIt) {
  const uint32_t t = access.AddTable("t", 1, {0, kNan});
  const Ref x = graph.Column("x", kFloat32, {-1});
  const Ref unique = graph.Op("unique", {graph.Column("ids", kInt64, {-1})});
  const Ref rows = graph.PullRows("t", t, 2, 1, unique);
  const Ref looked_up = graph.Op("gather", {rows, unique.Output(1)});
  graph.PushRows("t", t, 2, 1, unique,
                 graph.Op("gather_grad", {looked_up, unique.Output(1), rows}));
  graph.Return("sum", graph.Op("reduce_sum", {x}));
  ExpectBlamed(Run({0, 1}), "pull_rows",
               "table \"t\" holds NaN, which reaches the gradient of table \"t\"");
  MU_EXPECT_OK(Run({0}));
  access.pushes = 0;
  returns.clear();
  ExpectBlamed(Run({kInf}), "batch_column", "column \"x\" of the batch holds infinity");
}

TEST_F(NonFiniteTest, AnOpThatWasFusedAwayIsNamed) {
  const uint32_t w = access.AddVariable("w", Tensor::Of<float>({1, 2}, {3e38f, 1}));
  const uint32_t b = access.AddVariable("b", Tensor::Of<float>({2}, {1, 1}));
  const Ref x = graph.Op("reshape", {graph.Column("x", kFloat32, {-1})},
                         {{"shape", testing::ShapeAttr({-1, 1})}});
  const Ref product = graph.Op("matmul", {x, graph.Read("w", w, kFloat32, {1, 2})});
  graph.Return("y",
               graph.Op("relu", {graph.Op("add", {product, graph.Read("b", b, kFloat32, {2})})}));
  ExpectBlamed(Run({1, 10}), "matmul", "makes infinity");
}

}  // namespace
}  // namespace mu
