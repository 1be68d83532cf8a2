// Until when, and in which generation of its state, a server serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "psserver/server.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::CountingPush;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::PushAndWait;
using testing::StatusIs;

class PsServerLeaseTest : public ::testing::Test {
 protected:
  void Configure(uint64_t generation) {
    context_.set_job(1);
    context_.set_generation(generation);
    pb::ConfigurePsRequest request;
    *request.mutable_context() = context_;
    *request.mutable_routing() = testing::SmallModel(1);
    MU_ASSERT_OK(server_.Configure(request));
  }
  absl::Status Push(uint32_t step) {
    return PushAndWait(&server_, CountingPush(context_, 1, step)).status();
  }

  ManualClock clock_{0};
  Telemetry telemetry_;
  PsServer server_{{.clock = &clock_, .leased = true, .telemetry = &telemetry_}};
  pb::RequestContext context_;
};

TEST_F(PsServerLeaseTest, ServesOnlyWhileItsLeaseLasts) {
  Configure(/*generation=*/0);
  EXPECT_THAT(Push(0), HasCode(absl::StatusCode::kUnavailable)) << "no lease yet";
  server_.RenewLease(/*sent_ns=*/0, absl::Seconds(2), 0);
  MU_EXPECT_OK(Push(0));
  clock_.Advance(absl::Seconds(2));
  const absl::Status expired = Push(1);
  EXPECT_THAT(expired, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lease")));
  EXPECT_EQ(KindOf(expired), pb::ERROR_MACHINE);
  EXPECT_EQ(DetailOf(expired)->role(), pb::ROLE_PSSERVER);
  server_.RenewLease(absl::ToInt64Nanoseconds(absl::Seconds(1)), absl::Seconds(2), 0);
  MU_EXPECT_OK(Push(1));
  server_.RenewLease(0, absl::Seconds(1), 0);
  MU_EXPECT_OK(Push(2)) << "an old reply that comes late takes nothing away";
}

// It had been replaced, and has the place again since its replacement died.
TEST_F(PsServerLeaseTest, ServesAnOlderStateOnlyAfterARestore) {
  Configure(/*generation=*/7);
  server_.RenewLease(/*sent_ns=*/0, absl::Seconds(2), /*least_generation=*/7);
  MU_EXPECT_OK(Push(0));
  server_.RenewLease(/*sent_ns=*/0, absl::Seconds(2), /*least_generation=*/9);
  const absl::Status behind = Push(1);
  EXPECT_THAT(behind, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("generation 7")));
  EXPECT_EQ(KindOf(behind), pb::ERROR_MACHINE);
  server_.RenewLease(/*sent_ns=*/0, absl::Seconds(2), /*least_generation=*/7);
  EXPECT_THAT(Push(1), HasCode(absl::StatusCode::kUnavailable)) << "an old reply that comes late";

  pb::RestoreRequest restore;
  context_.set_generation(9);
  *restore.mutable_context() = context_;
  restore.set_keep_state(true);
  MU_ASSERT_OK(server_.Restore(restore));
  MU_EXPECT_OK(Push(1));
}

}  // namespace
}  // namespace mu
