// Pushes while everything that excludes them goes on as well: each is applied once, and nobody
// waits for ever.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "common/env/file.h"
#include "psserver/server.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::CountingPush;
using testing::Frame;
using testing::PushAndWait;

TEST(PsServerConcurrency, PushesAreAppliedOnceBesideFencesSavesAndRestores) {
  constexpr uint32_t kThreads = 3, kSteps = 150;
  Telemetry telemetry;
  PsServer server({.telemetry = &telemetry});
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-together"));
  std::atomic<uint64_t> generation{1};
  const auto context = [&generation] {
    pb::RequestContext now;
    now.set_job(1);
    now.set_epoch(1);
    now.set_generation(generation);
    return now;
  };
  pb::ConfigurePsRequest configure;
  *configure.mutable_context() = context();
  *configure.mutable_routing() = testing::SmallModel(1);
  MU_ASSERT_OK(server.Configure(configure));

  std::atomic<bool> stop{false};
  std::atomic<uint64_t> acknowledged{0};
  std::vector<std::thread> others;
  others.emplace_back([&] {
    pb::FenceRequest fence;
    while (!stop) {
      *fence.mutable_context() = context();
      fence.mutable_context()->set_low_water(5);
      (void)server.Fence(fence);  // it may be of an older generation
    }
  });
  others.emplace_back([&] {
    for (uint64_t attempt = 1; !stop; ++attempt) {
      pb::SaveRequest save;
      *save.mutable_context() = context();
      save.set_directory(directory.path());
      save.set_file("file");
      save.set_attempt(attempt);
      (void)server.Save(save);  // a restore may end it
    }
  });
  others.emplace_back([&] {
    while (!stop) {
      pb::RestoreRequest restore;
      *restore.mutable_context() = context();
      restore.mutable_context()->set_generation(generation + 1);
      restore.set_keep_state(true);
      MU_EXPECT_OK(server.Restore(restore));
      ++generation;
      // Pushes are of one generation: some must get through.
      const uint64_t before = acknowledged;
      while (!stop && acknowledged < before + 3) std::this_thread::yield();
    }
  });
  std::vector<std::thread> pushing;
  for (uint32_t t = 0; t < kThreads; ++t) {
    pushing.emplace_back([&, t] {
      const auto push = [&](uint32_t step) {
        while (!PushAndWait(&server, CountingPush(context(), 10 + t, step)).ok()) {
        }
        ++acknowledged;
      };
      for (uint32_t step = 0; step < kSteps; ++step) {
        std::thread repeat([&] { push(step); });  // at the same time
        push(step);
        repeat.join();
      }
    });
  }
  for (std::thread& thread : pushing) thread.join();
  stop = true;
  for (std::thread& thread : others) thread.join();

  pb::PullRequest pull;
  *pull.mutable_context() = context();
  pull.add_variables()->set_variable(2);
  MU_ASSERT_OK_AND_ASSIGN(const Buffer reply, server.Pull(Frame(pull, "")));
  pb::PullReply header;
  MU_ASSERT_OK_AND_ASSIGN(const auto payload, ParseFrame(reply, &header));
  int64_t steps = 0;
  ASSERT_EQ(payload.size(), sizeof(steps));
  std::memcpy(&steps, payload.data(), sizeof(steps));
  EXPECT_EQ(steps, int64_t{kThreads} * kSteps);
}

}  // namespace
}  // namespace mu
