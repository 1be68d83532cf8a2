#include "tests/testing/cluster.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "coordinator/launch/cluster_options.h"
#include "tests/testing/suspend.h"
#include "tests/testing/wait.h"

namespace mu::testing {
namespace {

// Of a daemon that was started; some come in vain.
constexpr absl::Duration kUntilKnown = absl::Seconds(2);

}  // namespace

static_assert(SIGKILL == 9 && SIGTERM == 15 && SIGSTOP == 19 && SIGCONT == 18);

std::string BinaryDirectory() {
  const char* directory = std::getenv("MUSTER_BIN_DIR");
  return directory != nullptr ? directory : MUSTER_BIN_DIR;
}

TestCluster::TestCluster(TestClusterOptions options, TempDirectory directory)
    : options_(std::move(options)), directory_(std::move(directory)) {}

absl::StatusOr<std::unique_ptr<TestCluster>> TestCluster::Start(TestClusterOptions options) {
  MU_ASSIGN_OR_RETURN(TempDirectory directory, TempDirectory::Create("muster-test"));
  std::unique_ptr<TestCluster> cluster(new TestCluster(options, std::move(directory)));
  MU_RETURN_IF_ERROR(cluster->CreateCoordinator(options.listen));
  if (options.gathers) return cluster;
  for (int i = 0; i < options.ps; ++i) MU_RETURN_IF_ERROR(cluster->StartServer(i));
  for (int i = 0; i < options.workers; ++i) MU_RETURN_IF_ERROR(cluster->StartWorker(i));
  MU_RETURN_IF_ERROR(cluster->coordinator().WaitForCluster(options.workers));
  cluster->started_ = true;
  return cluster;
}

absl::Status TestCluster::CreateCoordinator(const std::string& listen) {
  ClusterOptions full;
  full.workers = std::max(options_.workers, 1);
  full.ps = options_.ps;
  full.name = "test";
  full.job_dir = directory();
  full.seed = options_.seed;
  full.default_optimizer = options_.default_optimizer;
  full.functions_in_flight = options_.functions_in_flight;
  full.queue_bound = options_.queue_bound;
  full.listen = listen;
  full.heartbeat = options_.heartbeat;
  full.member_timeout = options_.member_timeout;
  full.backup_after = options_.backup_after;
  MU_ASSIGN_OR_RETURN(coordinator_,
                      mu::CreateCoordinator(full, options_.coordinator_transport != nullptr
                                                      ? options_.coordinator_transport()
                                                      : NewGrpcTransport()));
  address_ = coordinator_->address();
  return absl::OkStatus();
}

absl::Status TestCluster::StartCoordinator() {
  MU_RETURN_IF_ERROR(CreateCoordinator(address_));
  return coordinator_->WaitForCluster(options_.workers);
}

TestCluster::~TestCluster() {
  coordinator_.reset();
  for (auto& [name, process] : processes_) process->Kill(SIGKILL).IgnoreError();
  if (::testing::Test::HasFailure()) {
    for (const auto& [name, process] : processes_) {
      std::fprintf(stderr, "---- log of %s %d\n%s", name.first.c_str(), name.second,
                   LogOf(name.first, name.second).c_str());
    }
  }
}

absl::Status TestCluster::StartWorker(int index, std::vector<std::string> flags) {
  flags.insert(flags.end(), options_.worker_flags.begin(), options_.worker_flags.end());
  flags.push_back(absl::StrCat("--cache_dir=", directory(), "/cache-", index));
  MU_RETURN_IF_ERROR(StartDaemon("worker", index, std::move(flags)));
  WaitUntilKnown("worker", index);
  return absl::OkStatus();
}

absl::Status TestCluster::StartServer(int index) {
  MU_RETURN_IF_ERROR(StartDaemon("psserver", index, {}));
  WaitUntilKnown("psserver", index);
  return absl::OkStatus();
}

void TestCluster::WaitUntilKnown(const std::string& role, int index) {
  if (coordinator_ == nullptr || !started_) return;
  Subprocess& daemon = process(role, index);
  static_cast<void>(
      Eventually([&] { return coordinator_->runtime().IsMember(daemon.pid()) || daemon.TryWait(); },
                 kUntilKnown));
}

absl::Status TestCluster::StartDaemon(const std::string& role, int index,
                                      std::vector<std::string> flags) {
  SubprocessOptions options;
  options.path = absl::StrCat(BinaryDirectory(), "/", role);
  options.args = std::move(flags);
  options.args.push_back(absl::StrCat("--coordinator=", coordinator_->address()));
  options.args.push_back(absl::StrCat("--index=", index));
  options.output_file = absl::StrCat(directory(), "/", role, "-", index, ".log");
  options.ready_pipe = true;
  options.parent_pipe = true;
  if (options_.adjust != nullptr) options_.adjust(role, index, &options);
  MU_ASSIGN_OR_RETURN(std::unique_ptr<Subprocess> process, Subprocess::Start(options));
  MU_RETURN_IF_ERROR(process->ReadReadyLine(absl::Seconds(20)).status());
  processes_[{role, index}] = std::move(process);
  return absl::OkStatus();
}

ExitStatus TestCluster::End(const std::string& role, int index, int signal) {
  Subprocess& ended = process(role, index);
  ended.Kill(signal).IgnoreError();
  ExitStatus status = ended.Wait();
  // A cluster manager knows that it is dead; without that its replacement would wait until its
  // lease must have run out.
  if (role == "psserver" && signal == SIGKILL && coordinator_ != nullptr) {
    coordinator_->runtime().DaemonDied(ended.pid(), "killed by the test");
  }
  return status;
}

std::unique_ptr<Subprocess> TestCluster::Release(const std::string& role, int index) {
  return std::move(processes_.extract({role, index}).mapped());
}

void TestCluster::Signal(const std::string& role, int index, int signal) {
  if (signal == SIGSTOP) {
    EXPECT_TRUE(Suspend(process(role, index).pid()));
    return;
  }
  process(role, index).Kill(signal).IgnoreError();
}

std::vector<pid_t> TestCluster::pids() const {
  std::vector<pid_t> pids;
  for (const auto& [name, process] : processes_) pids.push_back(process->pid());
  return pids;
}

std::string TestCluster::LogOf(const std::string& role, int index) const {
  return ReadFile(absl::StrCat(directory(), "/", role, "-", index, ".log")).value_or("(no log)\n");
}

}  // namespace mu::testing
