// Parameter servers that leave, hang or are cut off: leases, and who may take a place when.
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"
#include "tests/psserver/frames.h"
#include "tests/testing/slow_proxy.h"

namespace mu {
namespace {

using testing::Bytes;
using testing::CheckedJob;
using testing::Frame;
using testing::Losses;
using testing::SlowProxy;
using testing::TestCluster;
using testing::WaitWhile;

// All that a checkpointer of these tests does of itself.
CheckpointerOptions EverySteps(const TestCluster& cluster, uint64_t steps) {
  return {.directory = cluster.directory() + "/checkpoints",
          .every = absl::InfiniteDuration(),
          .every_steps = steps,
          .keep = 2};
}

TEST(Conformance, PsDrains) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, EverySteps(*cluster, 1'000'000));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 8000}));
  job.ScheduleAll(50);
  for (const int server : {1, 0}) {
    job.WaitForSteps(c.Stats().steps + 200);
    const ExitStatus status = cluster->TerminateServer(server);
    EXPECT_EQ(status.code, 0) << status.ToString();
    MU_ASSERT_OK(cluster->StartServer(server));
  }
  job.JoinAndCheck();
  const RuntimeStats stats = c.Stats();
  ASSERT_EQ(stats.failures.size(), 2u);
  for (const MemberFailure& failure : stats.failures) {
    EXPECT_EQ(failure.kind, "left");
    EXPECT_EQ(failure.steps_repeated, 0u);
    EXPECT_EQ(failure.updates_rolled_back, 0);
    EXPECT_GE(failure.recovered_seconds, 0);
  }
  MU_ASSERT_OK_AND_ASSIGN(const auto complete,
                          ListCheckpoints(cluster->directory() + "/checkpoints"));
  EXPECT_EQ(complete.size(), 2u) << "one before each leave";
}

// A server that is asked to leave while another is being recovered takes its leave when that has
// its state again.
TEST(Conformance, PsDrainsWhileAnotherIsRecovered) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, EverySteps(*cluster, 1'000'000));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 8000}));
  job.ScheduleAll(50);
  job.WaitForSteps(200);
  cluster->KillServer(0);
  WaitWhile([&] { return c.Stats().servers > 1; });
  const std::unique_ptr<Subprocess> leaving = cluster->Release("psserver", 1);
  MU_ASSERT_OK(leaving->Kill(SIGTERM));
  const auto waits = [&] {
    const pb::GetStatusReply status = c.runtime().Status();
    for (const pb::MemberStatus& member : status.members()) {
      if (member.role() == pb::ROLE_PSSERVER && member.index() == 1)
        return member.state() == "leaving";
    }
    return false;
  };
  WaitWhile([&] { return !waits(); });
  MU_ASSERT_OK(cluster->StartServer(0));
  const std::optional<ExitStatus> status = leaving->WaitFor(absl::Seconds(20));
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 0) << status->ToString();
  MU_ASSERT_OK(cluster->StartServer(1));
  job.JoinAndCheck();
  const RuntimeStats stats = c.Stats();
  ASSERT_THAT(Losses(c, pb::ROLE_PSSERVER), ::testing::ElementsAre("died", "left"));
  EXPECT_GT(stats.failures[0].steps_repeated, 0u);
  EXPECT_EQ(stats.failures[1].steps_repeated, 0u);
  EXPECT_EQ(stats.failures[1].updates_rolled_back, 0);
  EXPECT_GE(stats.failures[1].recovered_seconds, 0);
  MU_ASSERT_OK_AND_ASSIGN(const auto complete,
                          ListCheckpoints(cluster->directory() + "/checkpoints"));
  EXPECT_EQ(complete.size(), 1u) << "the one before the leave";
}

constexpr int64_t kUpdatesOfAStep = 24;  // of a CheckedJob: partitions of two variables

// A server is stopped, another takes its place, the first one wakes up: what it says then harms
// nobody.
TEST(Conformance, PsHangs) {
  MU_ASSERT_OK_AND_ASSIGN(
      auto cluster,
      TestCluster::Start({.workers = 2, .ps = 2, .member_timeout = absl::Seconds(1)}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, EverySteps(*cluster, 1'000'000));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 8000}));
  job.ScheduleAll(50);
  job.WaitForSteps(200);
  MU_ASSERT_OK(checkpointer.TakeNow());
  job.WaitForSteps(c.Stats().steps + 100);  // which a replacement does not have
  cluster->StopServer(1);
  WaitWhile([&] { return c.Stats().servers > 1; });
  std::unique_ptr<Subprocess> hung = cluster->Release("psserver", 1);
  MU_ASSERT_OK(cluster->StartServer(1));
  job.WaitForSteps(c.Stats().steps + 50);  // with the replacement
  MU_ASSERT_OK(hung->Kill(SIGCONT));
  job.JoinAndCheck();
  ASSERT_THAT(Losses(c, pb::ROLE_PSSERVER), ::testing::ElementsAre("silent"));
  for (const MemberFailure& failure : c.Stats().failures) {
    if (failure.role != pb::ROLE_PSSERVER) continue;
    EXPECT_EQ(failure.index, 1u);
    EXPECT_GT(failure.recovered_seconds, 0);
    EXPECT_GE(failure.steps_repeated, 100u);
    EXPECT_EQ(failure.samples_repeated, 4 * failure.steps_repeated);
    EXPECT_GE(failure.updates_rolled_back, 100 * kUpdatesOfAStep);
  }
}

constexpr int kPartitions = 12;  // spread over all servers
constexpr int64_t kMuch = 1000;

// An update of a partition of the variable, of a function that the coordinator does not know.
absl::Status PushTo(Channel& channel, const pb::RequestContext& context, const Variable& variable,
                    uint32_t partition, int64_t delta) {
  pb::PushRequest request;
  *request.mutable_context() = context;
  request.set_function(1'000'000'000 + static_cast<uint64_t>(delta));
  auto* const update = request.add_variables();
  update->set_variable(variable.proto().id());
  update->set_partition(partition);
  update->set_kind(pb::VariableUpdate::ASSIGN_ADD);
  absl::Status status;
  Notification done;
  channel.Unary("/muster.PsServer/Push", Frame(request, Bytes<int64_t>({delta})), {},
                [&](absl::Status answer, Buffer) {
                  status = std::move(answer);
                  done.Notify();
                });
  done.Wait();
  return status;
}

// One of those that this server holds: it has acknowledged a 1 for it.
std::optional<uint32_t> PartitionThatTakes(Channel& channel, const pb::RequestContext& context,
                                           const Variable& variable) {
  for (uint32_t partition = 0; partition < kPartitions; ++partition) {
    if (PushTo(channel, context, variable, partition, 1).ok()) return partition;
  }
  return std::nullopt;
}

// A server that the coordinator does not reach any more, while the workers do: when its place is
// taken, its lease has run out, and it acknowledges nothing.
TEST(Conformance, PsCutOffFromCoordinator) {
  std::unique_ptr<SlowProxy> cable;  // between the first server 1 and the coordinator
  bool laid = false;
  testing::TestClusterOptions options;
  options.workers = 2;
  options.ps = 2;
  options.member_timeout = absl::Seconds(1);
  options.adjust = [&](const std::string& role, int index, SubprocessOptions* daemon) {
    if (role != "psserver" || index != 1 || std::exchange(laid, true)) return;
    constexpr char kFlag[] = "--coordinator=";
    for (std::string& arg : daemon->args) {
      if (arg.rfind(kFlag, 0) != 0) continue;
      auto proxy = SlowProxy::Start({.target = arg.substr(sizeof(kFlag) - 1),
                                     .delay = absl::ZeroDuration(),
                                     .stall_probability = 0});
      ASSERT_THAT(proxy, testing::IsOk());
      cable = *std::move(proxy);
      arg = kFlag + cable->address();
    }
  };
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(options));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, EverySteps(*cluster, 2000));
  MU_ASSERT_OK_AND_ASSIGN(const Variable probe,
                          c.CreateVariable({.name = "probe",
                                            .shape = Shape({kPartitions}),
                                            .dtype = kInt64,
                                            .partitioner = FixedShards{kPartitions}}));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 80'000}));
  job.ScheduleAll(50);
  job.WaitForSteps(300);
  Member cut_off;
  for (const Member& member : c.runtime().Servers()) {
    if (member.index == 1) cut_off = member;
  }
  const std::shared_ptr<Channel> channel = c.runtime().ChannelTo(cut_off.address);
  const pb::RequestContext context = c.runtime().Context();
  const std::optional<uint32_t> partition = PartitionThatTakes(*channel, context, probe);
  ASSERT_TRUE(partition.has_value()) << "it acknowledges updates while it has its lease";
  const uint64_t steps = c.Stats().steps;
  cable.reset();
  WaitWhile([&] { return c.Stats().servers > 1; });
  EXPECT_GT(c.Stats().steps, steps) << "the workers reached it until then";
  std::unique_ptr<Subprocess> older = cluster->Release("psserver", 1);
  EXPECT_THAT(PushTo(*channel, context, probe, *partition, kMuch),
              testing::StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("lease")));
  MU_ASSERT_OK(cluster->StartServer(1));
  job.WaitForSteps(c.Stats().steps + 50);  // with the replacement
  EXPECT_FALSE(PushTo(*channel, context, probe, *partition, kMuch).ok());
  job.JoinAndCheck();
  MU_ASSERT_OK_AND_ASSIGN(const Tensor probed, c.Read(probe));
  EXPECT_THAT(probed.flat<int64_t>(), ::testing::Each(::testing::Lt(kMuch)));
  EXPECT_EQ(older->TryWait(), std::nullopt) << "it lived all the while";
  EXPECT_THAT(Losses(c, pb::ROLE_PSSERVER), ::testing::ElementsAre("silent"));
}

// The replacement of a server that is not known to be dead waits until the older one's lease must
// have run out.
TEST(Conformance, PsReplacedWhileItLives) {
  // Longer than the new process takes to register, also where the machine is busy.
  constexpr absl::Duration kLease = absl::Seconds(4);
  MU_ASSERT_OK_AND_ASSIGN(auto cluster,
                          TestCluster::Start({.workers = 1, .ps = 2, .member_timeout = kLease}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, EverySteps(*cluster, 200));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 4000}));
  job.ScheduleAll(50);
  job.WaitForSteps(300);
  cluster->StopServer(0);
  std::unique_ptr<Subprocess> hung = cluster->Release("psserver", 0);
  MU_ASSERT_OK(cluster->StartServer(0));
  job.WaitForSteps(UINT64_MAX);
  MU_ASSERT_OK(hung->Kill(SIGCONT));
  job.JoinAndCheck();
  const RuntimeStats stats = c.Stats();
  ASSERT_EQ(stats.failures.size(), 1u);
  EXPECT_EQ(stats.failures[0].kind, "replaced");
  // The last heartbeat came before the loss was noticed, one interval earlier at most (and what the
  // machine adds).
  EXPECT_GT(stats.failures[0].recovered_seconds, absl::ToDoubleSeconds(kLease) / 3);
}

}  // namespace
}  // namespace mu
