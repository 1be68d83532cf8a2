// A fence and a push that is being applied meanwhile.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::Eventually;
using testing::Frame;
using testing::PushAndWait;

constexpr uint32_t kKernel = 5, kParts = 3;
constexpr size_t kRowsOfPart = 100, kColumns = 700;

// It takes much longer than to ask whether it is there.
Buffer LargePush(const pb::RequestContext& context, uint64_t function) {
  pb::PushRequest request;
  *request.mutable_context() = context;
  request.set_function(function);
  for (uint32_t p = 0; p < kParts; ++p) {
    auto* update = request.add_variables();
    update->set_variable(kKernel);
    update->set_partition(p);
    update->set_kind(pb::VariableUpdate::GRADIENT);
  }
  return Frame(request, testing::Bytes(std::vector<float>(kParts * kRowsOfPart * kColumns, 0.5f)));
}

TEST(PsServerFence, ReturnsWhenThePushesBelowItHaveEnded) {
  Telemetry telemetry;
  PsServer server({.telemetry = &telemetry});
  pb::ConfigurePsRequest configure;
  pb::RequestContext& context = *configure.mutable_context();
  context.set_job(1);
  context.set_epoch(1);
  context.set_generation(1);
  *configure.mutable_routing() = testing::SmallModel(1);
  MU_ASSERT_OK(server.Configure(configure));
  // Rounds in which the fence came while the push was being applied.
  int met = 0;
  for (uint64_t function = 1; met < 4 && function <= 200; ++function) {
    const Buffer large = LargePush(context, function);
    pb::PushRequest same;  // of the same id, and nothing that it names is there
    *same.mutable_context() = context;
    same.set_function(function);
    same.add_variables()->set_variable(999);
    const Buffer probe = Frame(same, "");
    std::atomic<bool> ended{false};
    std::thread pushing([&] {
      while (!PushAndWait(&server, large).ok()) {  // it came while the probe was being refused
      }
      ended = true;
    });
    // One that is not answered at once waits for the push under way.
    const auto answered = std::make_shared<std::atomic<bool>>(true);
    while (!ended && *answered) {
      *answered = false;
      server.Push(probe, [answered](const absl::StatusOr<pb::PushReply>&) { *answered = true; });
    }
    const bool under_way = !*answered;
    std::atomic<bool> fenced{false};
    pb::FenceRequest fence;
    *fence.mutable_context() = context;
    fence.mutable_context()->set_low_water(function + 1);
    uint64_t applied = 0;
    std::thread fencing([&] {
      MU_EXPECT_OK(server.Fence(fence));
      applied = server.GetStats({})->pushes();
      fenced = true;
    });
    pushing.join();
    const bool woken = Eventually([&] { return fenced.load(); }, absl::Seconds(10));
    EXPECT_TRUE(woken) << "nobody tells it that the push has ended";
    if (!woken) {
      fence.mutable_context()->set_low_water(0);
      MU_EXPECT_OK(server.Fence(fence));  // wakes it
    }
    fencing.join();
    ASSERT_TRUE(woken);
    ASSERT_EQ(applied, function) << "a push below the mark was applied after the fence";
    met += under_way ? 1 : 0;
  }
  EXPECT_EQ(met, 4);
}

}  // namespace
}  // namespace mu
