// What the runtime says of itself while many ask, and how often many daemons call it.
#include <thread>

#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using testing::PlayedClusterTest;
using testing::PlayedWorker;

using RuntimeCountsTest = PlayedClusterTest;

TEST_F(RuntimeCountsTest, AreThoseOfTheStatistics) {
  Start();
  RegisterServer(100);
  auto worker = Worker(11);
  Schedule(3);
  Schedule(2);
  for (int i = 0; i < 2; ++i) PlayedWorker::Finish(worker->NextRun());
  MU_ASSERT_OK(runtime_->Join());
  const RuntimeCounts counts = runtime_->Counts();
  const RuntimeStats stats = runtime_->Stats();
  EXPECT_EQ(counts.functions, 2u);
  EXPECT_EQ(counts.steps, 5u);
  EXPECT_EQ(counts.samples, 5u);
  EXPECT_EQ(counts.runs, 2u);
  EXPECT_EQ(counts.workers_ready, 1u);
  EXPECT_EQ(counts.servers, 1u);
  EXPECT_EQ(counts.unfinished, 0u);
  EXPECT_EQ(stats.functions, 2u);
  EXPECT_EQ(stats.workers_ready, 1u);
  EXPECT_EQ(stats.servers, 1u);
}

TEST_F(RuntimeCountsTest, AreReadWhileTheLoopIsBusy) {
  Start();
  auto worker = Worker(11);
  (void)runtime_->Stats();
  Notification read, busy;
  std::thread looks([&] {
    busy.Wait();
    EXPECT_EQ(runtime_->Counts().workers_ready, 1u);
    read.Notify();
  });
  runtime_->ChangeCatalog([&](Catalog&) {
    busy.Notify();
    EXPECT_TRUE(read.WaitFor(absl::Seconds(30)));
  });
  looks.join();
}

class Heartbeats : public PlayedClusterTest {
 protected:
  uint32_t Milliseconds(uint32_t workers) {
    options_.workers = workers;
    options_.timeout = absl::Seconds(10);
    Start();
    pb::RegisterRequest request;
    request.set_role(pb::ROLE_WORKER);
    request.set_address("memory:none");
    request.set_incarnation(7);
    request.set_protocol(kProtocol);
    const auto channel = transport_->Connect(runtime_->address(), pb::ROLE_COORDINATOR);
    const auto reply = Call<pb::RegisterReply>(*channel, "/muster.Coordinator/Register", request);
    MU_EXPECT_OK(reply);
    return reply.ok() ? reply->heartbeat_ms() : 0;
  }
};

TEST_F(Heartbeats, OfFewDaemonsAreFrequent) { EXPECT_EQ(Milliseconds(50), 250u); }
TEST_F(Heartbeats, OfManyAreFourHundredASecond) { EXPECT_NEAR(Milliseconds(400), 1000, 10); }
TEST_F(Heartbeats, SeveralMayBeLateHoweverManyDaemonsThereAre) {
  EXPECT_EQ(Milliseconds(100'000), 2500u);
}

}  // namespace
}  // namespace mu
