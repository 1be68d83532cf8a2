#include "common/base/status.h"

#include <gmock/gmock.h>

#include <memory>

#include "absl/container/flat_hash_set.h"
#include "common/base/ids.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;

absl::StatusOr<std::unique_ptr<int>> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return std::make_unique<int>(value / 2);
}

absl::StatusOr<int> Quarter(int value) {
  MU_ASSIGN_OR_RETURN(const std::unique_ptr<int> half, Half(value));
  MU_ASSIGN_OR_RETURN(std::unique_ptr<int> quarter, Half(*half));
  return *quarter;
}

absl::Status Check(int value) {
  MU_RETURN_IF_ERROR(Half(value).status());
  if (value > 100) MU_RETURN_IF_ERROR(absl::OutOfRangeError("large"));
  return absl::OkStatus();
}

TEST(Status, MacrosReturnTheFirstError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  MU_EXPECT_OK(Check(2));
  EXPECT_THAT(Check(3), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_THAT(Check(102), StatusIs(absl::StatusCode::kOutOfRange, "large"));
}

TEST(Status, DetailsDecideTheKind) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_STALE);
  detail.set_op("matmul");
  const absl::Status status = WithDetail(absl::UnavailableError("u"), detail);
  EXPECT_EQ(KindOf(status), pb::ERROR_STALE);
  EXPECT_EQ(DetailOf(status)->op(), "matmul");
  EXPECT_EQ(DetailOf(Annotate(status, "where"))->op(), "matmul");
  EXPECT_EQ(Annotate(status, "where").message(), "where: u");
  MU_EXPECT_OK(Annotate(absl::OkStatus(), "where"));
  MU_EXPECT_OK(WithDetail(absl::OkStatus(), detail));
}

TEST(Status, CodesDecideTheKindWithoutADetail) {
  EXPECT_FALSE(DetailOf(absl::InternalError("x")).has_value());
  for (const absl::Status& machine :
       {absl::UnavailableError(""), absl::DeadlineExceededError(""), absl::CancelledError("")}) {
    EXPECT_EQ(KindOf(machine), pb::ERROR_MACHINE);
  }
  EXPECT_EQ(KindOf(absl::InvalidArgumentError("")), pb::ERROR_USER);
  EXPECT_EQ(KindOf(WithDetail(absl::CancelledError(""), pb::ErrorDetail())), pb::ERROR_MACHINE);
  absl::Status broken = absl::InternalError("");
  broken.SetPayload("type.googleapis.com/muster.ErrorDetail", absl::Cord("\xFF"));
  EXPECT_FALSE(DetailOf(broken).has_value());
}

TEST(Ids, AreTypesOrderedAndHashable) {
  static_assert(!std::is_convertible_v<WorkerId, PsId>);
  static_assert(!std::is_convertible_v<int, WorkerId>);
  EXPECT_LT(WorkerId(1), WorkerId(2));
  EXPECT_EQ(WorkerId(1).Next(), WorkerId(2));
  EXPECT_EQ(WorkerId().value(), 0u);
  const absl::flat_hash_set<FunctionId> ids = {FunctionId(1), FunctionId(1), FunctionId(2)};
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(::testing::PrintToString(WorkerId(7)), "7");
}

}  // namespace
}  // namespace mu
