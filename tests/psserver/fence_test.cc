// A fence and a push that is being applied meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/base/mutex.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::Eventually;
using testing::Frame;
using testing::PushAndWait;

constexpr uint64_t kFunction = 1;

Buffer OnePush(const pb::RequestContext& context, uint32_t variable) {
  pb::PushRequest request;
  *request.mutable_context() = context;
  request.set_function(kFunction);
  auto* update = request.add_variables();
  update->set_variable(variable);
  update->set_kind(pb::VariableUpdate::ASSIGN_ADD);
  return Frame(request, testing::Bytes<int64_t>({1}));
}

TEST(PsServerFence, ReturnsWhenThePushesBelowItHaveEnded) {
  Telemetry telemetry;
  Notification applying, go_on;
  PsServer server({.telemetry = &telemetry, .at = [&](absl::string_view moment) {
                     if (moment != "push") return;
                     applying.Notify();
                     go_on.Wait();
                   }});
  pb::ConfigurePsRequest configure;
  pb::RequestContext& context = *configure.mutable_context();
  context.set_job(1);
  context.set_epoch(1);
  context.set_generation(1);
  *configure.mutable_routing() = testing::SmallModel(1);
  MU_ASSERT_OK(server.Configure(configure));
  std::thread pushing([&] { MU_EXPECT_OK(PushAndWait(&server, OnePush(context, 2))); });
  applying.Wait();
  std::atomic<bool> fenced{false};
  pb::FenceRequest fence;
  *fence.mutable_context() = context;
  fence.mutable_context()->set_low_water(kFunction + 1);
  std::thread fencing([&] {
    MU_EXPECT_OK(server.Fence(fence));
    fenced = true;
  });
  EXPECT_FALSE(Eventually([&] { return fenced.load(); }, absl::Milliseconds(100)))
      << "it did not wait for the push";
  EXPECT_EQ(server.GetStats({})->pushes(), 0u);
  go_on.Notify();
  pushing.join();
  const bool woken = Eventually([&] { return fenced.load(); }, absl::Seconds(10));
  EXPECT_TRUE(woken) << "nobody tells it that the push has ended";
  if (!woken) {
    fence.mutable_context()->set_low_water(0);
    MU_EXPECT_OK(server.Fence(fence));  // wakes it
  }
  fencing.join();
  EXPECT_EQ(server.GetStats({})->pushes(), 1u);
}

}  // namespace
}  // namespace mu
