// Workers on nodes that lack the data, have another copy of it, or whose disks are of no use.
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/env/host_name.h"
#include "coordinator/training/exit_code.h"
#include "tests/conformance/checked_job.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::CheckedJob;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StateOf;
using testing::TestCluster;
using testing::TestClusterOptions;

// A directory in which this process and the workers that see the data work; others work in an
// empty one beside it. So the same path is a file for some and nothing for others, as on nodes
// whose mounts differ.
class Nodes {
 public:
  Nodes() {
    auto made = TempDirectory::Create("muster-test");
    EXPECT_THAT(made, testing::IsOk());
    directory_ = std::make_unique<TempDirectory>(*std::move(made));
    EXPECT_THAT(MakeDirectories(WithData()), testing::IsOk());
    EXPECT_THAT(MakeDirectories(WithoutData()), testing::IsOk());
    back_ = *AbsolutePath(".");
    EXPECT_EQ(chdir(WithData().c_str()), 0);
  }
  ~Nodes() { EXPECT_EQ(chdir(back_.c_str()), 0); }

  std::string WithData() const { return directory_->path() + "/with"; }
  std::string WithoutData() const { return directory_->path() + "/without"; }

  // Starts a daemon so that it does not see the data.
  void Blind(SubprocessOptions* options) const {
    std::vector<std::string> args = {"-c", "cd \"$0\" && exec \"$@\"", WithoutData(),
                                     options->path};
    args.insert(args.end(), options->args.begin(), options->args.end());
    options->path = "/bin/sh";
    options->args = std::move(args);
  }
  // The workers `blind` do not see the data.
  TestClusterOptions Cluster(int workers, std::vector<int> blind) const {
    return {.workers = workers,
            .ps = 2,
            .adjust = [this, blind](const std::string& role, int index, SubprocessOptions* o) {
              if (role == "worker" && std::count(blind.begin(), blind.end(), index) > 0) Blind(o);
            }};
  }

 private:
  std::unique_ptr<TempDirectory> directory_;
  std::string back_;
};

void UseAsCache(const std::string& directory, SubprocessOptions* options) {
  for (std::string& arg : options->args) {
    if (absl::StartsWith(arg, "--cache_dir=")) arg = "--cache_dir=" + directory;
  }
}

void ExpectSetAside(Coordinator& c, const std::vector<uint32_t>& workers, const std::string& why) {
  std::vector<uint32_t> set_aside;
  for (const MemberFailure& failure : c.Stats().failures) {
    EXPECT_EQ(failure.kind, "set_aside") << failure.message;
    EXPECT_THAT(failure.message, HasSubstr(why));
    set_aside.push_back(failure.index);
    EXPECT_EQ(StateOf(c, static_cast<int>(failure.index)), "set aside");
  }
  std::sort(set_aside.begin(), set_aside.end());
  EXPECT_EQ(set_aside, workers);
}

TEST(Conformance, NodeWithoutData) {
  // The first worker is the one that counts the file's records.
  for (const int blind : {0, 1}) {
    SCOPED_TRACE(absl::StrCat("worker ", blind));
    const Nodes nodes;
    MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(nodes.Cluster(2, {blind})));
    MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                            CheckedJob::Create(cluster->coordinator(), ".", {.records = 4000}));
    job.ScheduleAll(10);
    job.JoinAndCheck();
    ExpectSetAside(cluster->coordinator(), {static_cast<uint32_t>(blind)}, "./checked.csv");
  }
}

TEST(Conformance, NodeWithoutDataThatIsGivenIt) {
  const Nodes nodes;
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(nodes.Cluster(2, {1})));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(c, ".", {.records = 4000, .epochs = 2}));
  for (int i = 0; i < 100; ++i) c.Schedule(job.step(), {.steps = 10});
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(StateOf(c, 1), "set aside");
  std::ofstream(nodes.WithoutData() + "/checked.csv") << *ReadFile("checked.csv");
  cluster->TerminateWorker(1);
  MU_ASSERT_OK(cluster->StartWorker(1));
  testing::WaitWhile([&] { return StateOf(c, 1) != "ready"; });
  for (int i = 0; i < 100; ++i) c.Schedule(job.step(), {.steps = 10});
  job.JoinAndCheck();
  EXPECT_GT(testing::StatusOfWorker(c, 1)->steps(), 0u) << "it works";
}

TEST(Conformance, NodeWithAnotherCopy) {
  const Nodes nodes;
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(nodes.Cluster(2, {1})));
  testing::WriteFile(nodes.WithoutData() + "/checked.csv", "7\n" + testing::Numbers(0, 4000));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(cluster->coordinator(), ".", {.records = 4000}));
  job.ScheduleAll(10);
  EXPECT_THAT(cluster->coordinator().Join(),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr(absl::StrCat(
                                    "./checked.csv has changed since the job began to read it, or ",
                                    HostName(), " has another copy of it"))));
}

TEST(Conformance, NodesAllWithoutData) {
  for (const int workers : {1, 2, 5}) {
    SCOPED_TRACE(absl::StrCat(workers, " workers"));
    const Nodes nodes;
    std::vector<int> all(static_cast<size_t>(workers));
    for (int i = 0; i < workers; ++i) all[static_cast<size_t>(i)] = i;
    MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(nodes.Cluster(workers, all)));
    Coordinator& c = cluster->coordinator();
    MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(c, ".", {.records = 400}));
    const absl::Time begun = absl::Now();
    job.ScheduleAll(10);
    const absl::Status status = c.Join();
    EXPECT_LT(absl::Now() - begun, absl::Seconds(5));
    EXPECT_THAT(status, testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("./checked.csv")));
    EXPECT_EQ(ExitCodeOf(status), kExitBadJob);
    // The input was at fault. Who was set aside before it had all functions gets the rest now.
    for (int i = 0; i < workers; ++i)
      EXPECT_TRUE(testing::Eventually([&] { return StateOf(c, i) == "ready"; })) << StateOf(c, i);
  }
}

TEST(Conformance, NodeWithABrokenCache) {
  const Nodes nodes;
  TestClusterOptions options = nodes.Cluster(2, {});
  options.adjust = [&](const std::string&, int index, SubprocessOptions* started) {
    // A file has the name that its directory would have.
    if (index == 1) UseAsCache(nodes.WithData() + "/a file", started);
  };
  std::ofstream("a file") << "in the way";
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(options));
  MU_ASSERT_OK_AND_ASSIGN(
      const CheckedJob job,
      CheckedJob::Create(cluster->coordinator(), ".", {.records = 4000, .file = "checked.csv.gz"}));
  job.ScheduleAll(10);
  job.JoinAndCheck();
  ExpectSetAside(cluster->coordinator(), {1}, "a file");
}

TEST(Conformance, NodeWithAFullDisk) {
  const Nodes nodes;
  const std::string disk = nodes.WithoutData();
  if (geteuid() != 0 || mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=16k") != 0) {
    GTEST_SKIP() << "a small file system can be mounted by root only";
  }
  struct Unmount {
    const std::string& disk;
    ~Unmount() { umount2(disk.c_str(), MNT_DETACH); }
  } unmount{disk};
  TestClusterOptions options = nodes.Cluster(2, {});
  options.adjust = [&](const std::string&, int index, SubprocessOptions* started) {
    if (index == 0) UseAsCache(disk, started);
  };
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(options));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(cluster->coordinator(), ".",
                                             {.records = 10000, .file = "checked.csv.gz"}));
  job.ScheduleAll(10);
  job.JoinAndCheck();
  ExpectSetAside(cluster->coordinator(), {0}, "No space left on device");
}

TEST(Conformance, NodesAllWithBrokenDisks) {
  const Nodes nodes;
  TestClusterOptions options = nodes.Cluster(2, {});
  options.adjust = [&](const std::string&, int, SubprocessOptions* started) {
    UseAsCache(nodes.WithData() + "/a file", started);
  };
  std::ofstream("a file") << "in the way";
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(options));
  MU_ASSERT_OK_AND_ASSIGN(
      const CheckedJob job,
      CheckedJob::Create(cluster->coordinator(), ".", {.records = 400, .file = "checked.csv.gz"}));
  job.ScheduleAll(10);
  const absl::Status status = cluster->coordinator().Join();
  EXPECT_EQ(ExitCodeOf(status), kExitMachines) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no worker is left"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("a file"));
}

}  // namespace
}  // namespace mu
