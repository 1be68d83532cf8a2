// A program that defines a function in its loop: the mistake is told, and what was defined works.
#include "common/graph/limits.h"
#include "tests/conformance/conformance.h"

namespace mu {
namespace {

using testing::TestCluster;

TEST(FunctionLimit, TooManyAreRefusedAndTheOthersRun) {
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  const auto define = [&](int64_t i) {
    return c.DefineFunction("constant", [&](FunctionBuilder& f) {
      f.Return("value", ConstantTensor(Tensor::Scalar<float>(static_cast<float>(i))));
    });
  };
  MU_ASSERT_OK_AND_ASSIGN(const Function first, define(0));
  for (size_t i = 1; i < kMostFunctions; ++i) MU_ASSERT_OK(define(static_cast<int64_t>(i)));
  EXPECT_THAT(define(kMostFunctions), testing::StatusIs(absl::StatusCode::kResourceExhausted,
                                                        ::testing::HasSubstr("outside the loop")));
  MU_ASSERT_OK_AND_ASSIGN(const Function same, define(5));  // it is there
  const RemoteValue value = c.Schedule(same);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, c.Fetch(value));
  EXPECT_FLOAT_EQ(*result.Mean("value"), 5);
}

}  // namespace
}  // namespace mu
