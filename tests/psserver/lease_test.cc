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

TEST(PsServerLeaseTest, ServesOnlyWhileItsLeaseLasts) {
  ManualClock clock(0);
  Telemetry telemetry;
  PsServer server({.clock = &clock, .leased = true, .telemetry = &telemetry});
  pb::ConfigurePsRequest configure;
  pb::RequestContext& context = *configure.mutable_context();
  context.set_job(1);
  *configure.mutable_routing() = testing::SmallModel(1);
  MU_ASSERT_OK(server.Configure(configure));
  const auto push = [&](uint32_t step) {
    return PushAndWait(&server, CountingPush(context, 1, step)).status();
  };
  EXPECT_THAT(push(0), HasCode(absl::StatusCode::kUnavailable)) << "no lease yet";
  server.RenewLease(/*sent_ns=*/0, absl::Seconds(2), 0);
  MU_EXPECT_OK(push(0));
  clock.Advance(absl::Seconds(2));
  const absl::Status expired = push(1);
  EXPECT_THAT(expired, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lease")));
  EXPECT_EQ(KindOf(expired), pb::ERROR_MACHINE);
  EXPECT_EQ(DetailOf(expired)->role(), pb::ROLE_PSSERVER);
  server.RenewLease(absl::ToInt64Nanoseconds(absl::Seconds(1)), absl::Seconds(2), 0);
  MU_EXPECT_OK(push(1));
  server.RenewLease(0, absl::Seconds(1), 0);
  MU_EXPECT_OK(push(2)) << "an old reply that comes late takes nothing away";
}

// It had been replaced, and has the place again since its replacement died.
TEST(PsServerLeaseTest, ServesAnOlderStateOnlyAfterARestore) {
  ManualClock clock(0);
  Telemetry telemetry;
  PsServer server({.clock = &clock, .leased = true, .telemetry = &telemetry});
  pb::ConfigurePsRequest configure;
  pb::RequestContext& context = *configure.mutable_context();
  context.set_job(1);
  context.set_generation(7);
  *configure.mutable_routing() = testing::SmallModel(1);
  MU_ASSERT_OK(server.Configure(configure));
  const auto push = [&](uint32_t step) {
    return PushAndWait(&server, CountingPush(context, 1, step)).status();
  };
  server.RenewLease(/*sent_ns=*/0, absl::Seconds(2), /*least_generation=*/7);
  MU_EXPECT_OK(push(0));
  server.RenewLease(/*sent_ns=*/0, absl::Seconds(2), /*least_generation=*/9);
  const absl::Status behind = push(1);
  EXPECT_THAT(behind, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("generation 7")));
  EXPECT_EQ(KindOf(behind), pb::ERROR_MACHINE);
  server.RenewLease(/*sent_ns=*/0, absl::Seconds(2), /*least_generation=*/7);
  EXPECT_THAT(push(1), HasCode(absl::StatusCode::kUnavailable)) << "an old reply that comes late";

  pb::RestoreRequest restore;
  context.set_generation(9);
  *restore.mutable_context() = context;
  restore.set_keep_state(true);
  MU_ASSERT_OK(server.Restore(restore));
  MU_EXPECT_OK(push(1));
}

}  // namespace
}  // namespace mu
