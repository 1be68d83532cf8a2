#include "common/base/error_kind.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

TEST(ErrorKind, WithoutAKindOverTheWireItIsAMachines) {
  const absl::Status bare = absl::InvalidArgumentError("odd");
  EXPECT_EQ(KindOf(bare), pb::ERROR_USER) << "within the process";
  EXPECT_EQ(KindOf(FromWire(bare)), pb::ERROR_MACHINE);
  EXPECT_EQ(FromWire(bare).message(), "odd");
  EXPECT_EQ(FromWire(bare).code(), bare.code());
  for (const pb::ErrorKind kind : {pb::ERROR_USER, pb::ERROR_STALE, pb::ERROR_NOT_INSTALLED}) {
    const absl::Status typed = WithKind(bare, kind, pb::ROLE_WORKER);
    EXPECT_EQ(FromWire(typed), typed);
    EXPECT_EQ(KindOf(FromWire(typed)), kind);
    EXPECT_EQ(WithKind(typed, pb::ERROR_MACHINE, pb::ROLE_PSSERVER), typed) << "it has a kind";
  }
  pb::ErrorDetail detail;
  detail.set_op("log");
  EXPECT_EQ(DetailOf(FromWire(WithDetail(bare, detail)))->op(), "log");
  EXPECT_EQ(KindOf(FromWire(WithDetail(bare, detail))), pb::ERROR_MACHINE);
  MU_EXPECT_OK(FromWire(absl::OkStatus()));
  MU_EXPECT_OK(WithKind(absl::OkStatus(), pb::ERROR_USER, pb::ROLE_WORKER));
  EXPECT_FALSE(DetailOf(FromWire(absl::UnavailableError("gone"))).has_value());
}

TEST(ErrorKind, InputFaultsAreMachines) {
  const absl::Status status =
      WithInputFault(absl::NotFoundError("a.csv"), pb::InputFault::MISSING, /*file=*/7);
  EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE);
  EXPECT_EQ(DetailOf(status)->role(), pb::ROLE_WORKER);
  EXPECT_EQ(InputFaultOf(Annotate(status, "step 3")).kind(), pb::InputFault::MISSING);
  EXPECT_EQ(InputFaultOf(status).file(), 7u);
  EXPECT_EQ(InputFaultOf(absl::NotFoundError("a.csv")).kind(), pb::InputFault::NONE);
  EXPECT_EQ(InputFaultOf(absl::OkStatus()).kind(), pb::InputFault::NONE);
  MU_EXPECT_OK(WithInputFault(absl::OkStatus(), pb::InputFault::DEVICE, 0));
}

TEST(ErrorKind, CodesOfMachines) {
  for (const auto code : {absl::StatusCode::kUnavailable, absl::StatusCode::kInternal,
                          absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnknown,
                          absl::StatusCode::kAborted, absl::StatusCode::kCancelled,
                          absl::StatusCode::kDeadlineExceeded})
    EXPECT_TRUE(IsMachineCode(code));
  for (const auto code : {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
                          absl::StatusCode::kDataLoss, absl::StatusCode::kOk})
    EXPECT_FALSE(IsMachineCode(code));
}

}  // namespace
}  // namespace mu
