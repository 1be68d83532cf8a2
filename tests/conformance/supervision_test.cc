// Daemons of this machine under the supervisor of mu::Local.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>

#include "common/env/file.h"
#include "coordinator/launch/launch.h"
#include "tests/conformance/checked_job.h"
#include "tests/testing/suspend.h"

namespace mu {
namespace {

using testing::BinaryDirectory;
using testing::CheckedJob;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Losses;
using testing::WaitForWorkers;
using testing::WaitWhile;

std::map<uint32_t, pid_t> WorkerPids(Coordinator& c) {
  std::map<uint32_t, pid_t> pids;
  const pb::GetStatusReply status = c.runtime().Status();
  for (const auto& member : status.members()) {
    if (member.role() == pb::ROLE_WORKER) pids[member.index()] = static_cast<pid_t>(member.pid());
  }
  return pids;
}

ClusterOptions LocalOptions(const std::string& directory) {
  ClusterOptions options;
  options.workers = 2;
  options.ps = 2;
  options.name = "test";
  options.job_dir = directory + "/job";
  options.binary_dir = BinaryDirectory();
  return options;
}

// A folder of programs whose worker 1 dies at every start while `deadly` exists, and notes that in
// `starts`.
void MakeProgramsThatDie(const std::string& folder, const std::string& deadly,
                         const std::string& starts) {
  MU_ASSERT_OK(MakeDirectories(folder));
  std::ofstream(folder + "/worker")
      << "#!/bin/sh\n"
      << "case \"$*\" in *--index=1*)\n"
      << "  if [ -e " << deadly << " ]; then echo started >> " << starts << "; exit 4; fi;;\n"
      << "esac\n"
      << "exec " << BinaryDirectory() << "/worker \"$@\"\n";
  ASSERT_EQ(chmod((folder + "/worker").c_str(), 0755), 0);
  ASSERT_EQ(symlink((BinaryDirectory() + "/psserver").c_str(), (folder + "/psserver").c_str()), 0);
}

size_t LinesOf(const std::string& file) {
  const std::string text = ReadFile(file).value_or("");
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Conformance, WorkerKilledAgainAndAgain) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory,
                          TempDirectory::Create("muster-supervision"));
  const std::string deadly = directory.path() + "/deadly", starts = directory.path() + "/starts";
  ClusterOptions options = LocalOptions(directory.path());
  options.binary_dir = directory.path() + "/bin";
  MakeProgramsThatDie(options.binary_dir, deadly, starts);
  MU_ASSERT_OK_AND_ASSIGN(const auto c, Local(options));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(*c, directory.path(), {.epochs = 4}));
  job.ScheduleAll(20);
  job.WaitForSteps(100);
  std::ofstream(deadly) << "from now on\n";
  ASSERT_EQ(kill(WorkerPids(*c).at(1), SIGKILL), 0);
  WaitWhile([&] { return LinesOf(starts) < 4; });
  job.JoinAndCheck();  // by the other one
  EXPECT_EQ(WorkerPids(*c).count(1), 0u);
  ASSERT_EQ(unlink(deadly.c_str()), 0);
  WaitForWorkers(*c, 2);  // it is still tried
  EXPECT_THAT(Losses(*c, pb::ROLE_WORKER), ::testing::SizeIs(1))
      << "what never came back was not lost again";
  EXPECT_LT(LinesOf(starts), 12u) << "the delay grows";
}

// What the kernel does to a process that needs more memory than there is, wherever it runs.
TEST(Conformance, FunctionThatEndsItsWorkers) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory,
                          TempDirectory::Create("muster-supervision"));
  MU_ASSERT_OK_AND_ASSIGN(const auto c, Local(LocalOptions(directory.path())));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*c, directory.path(), {}));
  // One step takes about a second.
  constexpr int64_t kSize = 2048;
  MU_ASSERT_OK_AND_ASSIGN(const Function huge, c->DefineFunction("huge", [&](FunctionBuilder& f) {
    const Sym column =
        Reshape(ConstantTensor(Tensor::Of<float>(Shape({kSize}), std::vector<float>(kSize, 1e-3f))),
                {-1, 1});
    Sym all = MatMul(column, Reshape(column, {1, -1}));
    for (int i = 0; i < 4; ++i) all = MatMul(all, all);
    f.Return("sum", ReduceSum(all));
  }));
  job.ScheduleAll(100);
  MU_ASSERT_OK(c->Join());
  const RemoteValue value = c->Schedule(huge);
  while (!value.WaitFor(absl::Milliseconds(1))) {
    const pb::GetStatusReply status = c->runtime().Status();
    for (const auto& member : status.members()) {
      if (member.in_flight() > 0) kill(static_cast<pid_t>(member.pid()), SIGKILL);
    }
  }
  EXPECT_THAT(c->Join(), testing::StatusIs(absl::StatusCode::kResourceExhausted,
                                           ::testing::AllOf(HasSubstr("10 workers in a row"),
                                                            HasSubstr("('huge')"))));
  EXPECT_THAT(value.Fetch(), testing::HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Losses(*c, pb::ROLE_WORKER), ::testing::SizeIs(10));
  job.JoinAndCheck();
}

// Two workers hang. One is continued before the supervisor loses patience and is welcome back, the
// other is replaced.
TEST(Conformance, HungWorkerIsReplacedByTheSupervisor) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory,
                          TempDirectory::Create("muster-supervision"));
  ClusterOptions options = LocalOptions(directory.path());
  options.member_timeout = absl::Seconds(6);
  MU_ASSERT_OK_AND_ASSIGN(const auto c, Local(options));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(*c, directory.path(), {.epochs = 4}));
  job.ScheduleAll(20);
  job.WaitForSteps(100);
  const auto before = WorkerPids(*c);
  for (const auto& [index, pid] : before) ASSERT_TRUE(testing::Suspend(pid));
  WaitWhile([&] { return Losses(*c, pb::ROLE_WORKER).size() < 2; });
  EXPECT_THAT(Losses(*c, pb::ROLE_WORKER), ::testing::Each("silent"));
  ASSERT_EQ(kill(before.at(1), SIGCONT), 0);
  WaitForWorkers(*c, 2);
  EXPECT_EQ(WorkerPids(*c).at(1), before.at(1));
  EXPECT_NE(WorkerPids(*c).at(0), before.at(0));
  job.JoinAndCheck();
}

}  // namespace
}  // namespace mu
