// Scalars that a program gives to a function's arguments: each type takes the values that it has.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "coordinator/cluster/coordinator.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

absl::StatusOr<Tensor> Given(const ArgValue& value, DType dtype) {
  pb::ArgProto arg;
  arg.set_name("x");
  arg.set_dtype(dtype);
  MU_ASSIGN_OR_RETURN(const pb::TensorProto proto, value.ToProto(arg));
  return Tensor::FromProto(proto);
}

template <typename T>
void ExpectTaken(const ArgValue& value, T expected) {
  MU_ASSERT_OK_AND_ASSIGN(const Tensor tensor, Given(value, DTypeOf<T>::value));
  EXPECT_EQ(*tensor.data<T>(), expected);
}

template <typename T>
void ExpectRefused(const ArgValue& value) {
  const std::string type(DTypeName(DTypeOf<T>::value));
  EXPECT_THAT(Given(value, DTypeOf<T>::value),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(", which is no " + type)));
}

template <typename T>
class IntegerArgTest : public ::testing::Test {};
using Integers = ::testing::Types<bool, uint8_t, int32_t, int64_t>;
TYPED_TEST_SUITE(IntegerArgTest, Integers);

TYPED_TEST(IntegerArgTest, TakesWhatTheTypeHas) {
  const auto least = static_cast<int64_t>(std::numeric_limits<TypeParam>::min());
  const auto most = static_cast<int64_t>(std::numeric_limits<TypeParam>::max());
  ExpectTaken<TypeParam>(least, std::numeric_limits<TypeParam>::min());
  ExpectTaken<TypeParam>(most, std::numeric_limits<TypeParam>::max());
  ExpectTaken<TypeParam>(static_cast<double>(least), std::numeric_limits<TypeParam>::min());
  ExpectTaken<TypeParam>(1.0, TypeParam{1});
}

TYPED_TEST(IntegerArgTest, RefusesWhatItHasNot) {
  for (const double value : {0.5, 1e30, -1e30, kInfinity, -kInfinity, std::nan("")}) {
    SCOPED_TRACE(value);
    ExpectRefused<TypeParam>(value);
  }
  // Of int64 the largest one is no double: the next is 2^63.
  ExpectRefused<TypeParam>(static_cast<double>(std::numeric_limits<TypeParam>::max()) + 1);
  ExpectRefused<TypeParam>(2 * static_cast<double>(std::numeric_limits<TypeParam>::min()) - 1e4);
}

TEST(ArgValue, TakesTheLargestDoublesThatAreInt64) {
  ExpectTaken<int64_t>(9223372036854774784.0, int64_t{9223372036854774784});
  ExpectRefused<int64_t>(9223372036854775808.0);
}

TEST(ArgValue, RefusesWhatBecomesInfiniteAsFloat32) {
  ExpectTaken<float>(0.5, 0.5f);
  ExpectTaken<float>(3.4e38, 3.4e38f);
  ExpectTaken<float>(kInfinity, std::numeric_limits<float>::infinity());
  ExpectTaken<float>(int64_t{1} << 62, 4611686018427387904.0f);
  for (const double value : {3.5e38, -1e39}) ExpectRefused<float>(value);
}

}  // namespace
}  // namespace mu
