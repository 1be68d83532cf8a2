// What the runtime says of itself while many ask, and how often many daemons call it.
#include <thread>

#include "common/base/steady_now.h"
#include "tests/coordinator/cluster/played_worker.h"
#include "tests/testing/wait.h"

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

// `coordinator status` prints it as "PHASE for N s".
TEST_F(RuntimeCountsTest, APhasesTimeBeginsWithIt) {
  Start();
  const auto seconds = [&] { return runtime_->Status().seconds(); };
  testing::WaitWhile([&] { return seconds() < 0.2; });
  const absl::Time begin = SteadyNow();
  runtime_->SetPhase("training");
  const double lasted = seconds();
  EXPECT_LE(lasted, absl::ToDoubleSeconds(SteadyNow() - begin));
  EXPECT_EQ(runtime_->Status().phase(), "training");
  const double before = seconds();
  runtime_->SetPhase("training");
  EXPECT_GE(seconds(), before) << "it is the same one";
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
