// Networks that are slow, that reset connections, that are cut: real daemons behind proxies or in
// network namespaces.
#include <signal.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"
#include "tests/testing/netns.h"
#include "tests/testing/slow_proxy.h"

namespace mu {
namespace {

using ::testing::AnyOf;
using testing::CheckedJob;
using ::testing::Each;
using ::testing::Eq;
using ::testing::IsEmpty;
using testing::Losses;
using testing::NetworkNamespace;
using testing::SlowProxy;
using testing::TestCluster;
using testing::WaitForWorkers;
using testing::WaitWhile;

// Proxies before every process of a cluster: each daemon says that it is called at its proxy's
// address, and calls the coordinator through another one.
class SlowProxies {
 public:
  void PutBefore(const std::string& role, int index, SubprocessOptions* daemon) {
    // An address that nobody else on this machine uses, so that its port can be chosen before the
    // daemon starts.
    const int pid = getpid();
    const std::string listen =
        absl::StrFormat("127.%d.%d.%d:%d", 64 + (pid >> 16) % 64, (pid >> 8) & 255, pid & 255,
                        7000 + 100 * (role == "worker") + index);
    daemon->args.push_back("--listen=" + listen);
    daemon->args.push_back("--advertise=" + To(listen).address());
    for (std::string& arg : daemon->args) {
      constexpr char kFlag[] = "--coordinator=";
      if (absl::StartsWith(arg, kFlag)) arg = kFlag + To(arg.substr(sizeof(kFlag) - 1)).address();
    }
  }
  SlowProxy::Counts Sum() const {
    SlowProxy::Counts sum;
    for (const auto& [target, proxy] : proxies_) {
      const SlowProxy::Counts counts = proxy->counts();
      sum.connections += counts.connections;
      sum.chunks += counts.chunks;
      sum.stalls += counts.stalls;
      sum.resets += counts.resets;
    }
    return sum;
  }

 private:
  SlowProxy& To(const std::string& target) {
    std::unique_ptr<SlowProxy>& proxy = proxies_[target];
    if (proxy == nullptr) {
      proxy = SlowProxy::Start(
                  {.target = target, .chunks_between_resets = 150, .seed = proxies_.size()})
                  .value();
    }
    return *proxy;
  }
  std::map<std::string, std::unique_ptr<SlowProxy>> proxies_;
};

TEST(Conformance, SlowNetwork) {
  SlowProxies proxies;
  MU_ASSERT_OK_AND_ASSIGN(
      auto cluster,
      TestCluster::Start(
          {.workers = 2, .ps = 2, .adjust = [&](const auto& role, int index, auto* options) {
             proxies.PutBefore(role, index, options);
           }}));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(*cluster, {.records = 240, .batch = 2}));
  job.ScheduleAll(5);
  job.JoinAndCheck();
  const SlowProxy::Counts counts = proxies.Sum();
  EXPECT_GT(counts.stalls, 0) << "of " << counts.chunks << " chunks";
  EXPECT_GT(counts.resets, 0);
  EXPECT_THAT(Losses(cluster->coordinator(), pb::ROLE_PSSERVER), IsEmpty())
      << "a slow server is not a lost one";
}

// The coordinator and some daemons on this machine, some behind the cable of `net`.
absl::StatusOr<std::unique_ptr<TestCluster>> StartAcross(
    const NetworkNamespace& net,
    const std::function<bool(const std::string& role, int index)>& inside) {
  testing::TestClusterOptions options;
  options.workers = 2;
  options.ps = 2;
  options.heartbeat = absl::Milliseconds(100);
  options.member_timeout = absl::Seconds(2);
  options.worker_flags = {
      "--slow_down=4"};  // so that there is something left to do when the cable is in again
  options.listen = net.outside_ip() + ":0";
  options.adjust = [&net, inside](const std::string& role, int index, SubprocessOptions* daemon) {
    const bool is_inside = inside(role, index);
    daemon->args.push_back("--insecure");
    daemon->args.push_back(
        absl::StrCat("--listen=", is_inside ? net.inside_ip() : net.outside_ip(), ":0"));
    if (is_inside) *daemon = net.Inside(*daemon);
  };
  return TestCluster::Start(std::move(options));
}

class Partition : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status usable = NetworkNamespace::Usable(); !usable.ok()) {
      GTEST_SKIP() << "cannot cut networks here: " << usable.message();
    }
    MU_ASSERT_OK_AND_ASSIGN(net_, NetworkNamespace::Create());
  }
  // Long enough to be cut in the middle.
  static constexpr CheckedJob::Size kSize = {.records = 4000, .batch = 4, .epochs = 5};
  std::unique_ptr<NetworkNamespace> net_;
};

TEST_F(Partition, PartitionWorker) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, StartAcross(*net_, [](const std::string& role, int index) {
                            return role == "worker" && index == 1;
                          }));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, kSize));
  job.ScheduleAll(50);
  job.WaitForSteps(200);
  MU_ASSERT_OK(net_->Cut(NetworkNamespace::kInside));
  WaitWhile([&] { return Losses(c, pb::ROLE_WORKER).empty(); });
  job.WaitForSteps(c.Stats().steps + 500);  // by the other one
  MU_ASSERT_OK(net_->Heal());
  WaitForWorkers(c, 2);  // the same process is back
  job.JoinAndCheck();
  EXPECT_FALSE(cluster->process("worker", 1).TryWait().has_value());
  EXPECT_THAT(Losses(c, pb::ROLE_WORKER), Each(AnyOf(Eq("silent"), Eq("unreachable"))));
  EXPECT_THAT(Losses(c, pb::ROLE_PSSERVER), IsEmpty());
}

TEST_F(Partition, PartitionPs) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, StartAcross(*net_, [](const std::string& role, int index) {
                            return role == "psserver" && index == 1;
                          }));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(
      &c, {.directory = cluster->directory() + "/checkpoints", .every_steps = 500});
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, kSize));
  job.ScheduleAll(50);
  job.WaitForSteps(200);
  // So short that nobody calls it a loss: calls are late, that is all.
  MU_ASSERT_OK(net_->Cut(NetworkNamespace::kInside));
  MU_ASSERT_OK(net_->Heal());
  job.WaitForSteps(c.Stats().steps + 500);
  EXPECT_THAT(Losses(c, pb::ROLE_PSSERVER), IsEmpty());
  // Its lease ends; what it had is lost, although it comes back with it.
  MU_ASSERT_OK(net_->Cut(NetworkNamespace::kInside));
  WaitWhile([&] { return Losses(c, pb::ROLE_PSSERVER).empty(); });
  MU_ASSERT_OK(net_->Heal());
  job.JoinAndCheck();
  EXPECT_FALSE(cluster->process("psserver", 1).TryWait().has_value());
  EXPECT_THAT(Losses(c, pb::ROLE_PSSERVER), Each("silent"));
}

TEST_F(Partition, PartitionCoordinator) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster,
                          StartAcross(*net_, [](const std::string&, int) { return true; }));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(
      &c, {.directory = cluster->directory() + "/checkpoints", .every_steps = 500});
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, kSize));
  job.ScheduleAll(50);
  job.WaitForSteps(200);
  // Workers and servers still reach each other: what they do alone must not count.
  MU_ASSERT_OK(net_->Cut(NetworkNamespace::kOutside));
  WaitWhile([&] { return Losses(c, pb::ROLE_PSSERVER).size() < 2; });
  MU_ASSERT_OK(net_->Heal());
  job.JoinAndCheck();
  for (const pid_t pid : cluster->pids()) EXPECT_EQ(kill(pid, 0), 0) << "all daemons live";
}

}  // namespace
}  // namespace mu
