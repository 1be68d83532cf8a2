// A cluster of real processes: a coordinator in the test, `worker` and `psserver` daemons that the
// test starts, stops, continues and kills.
//
//   MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
//   cluster->coordinator().CreateVariable(...);
//   cluster->KillWorker(0);
//   MU_ASSERT_OK(cluster->StartWorker(0));
//
// The daemons are those of MUSTER_BIN_DIR: from the environment, else the build's. Their logs are
// below directory(); where a test has failed they are printed. No daemon outlives the test, however
// that ends. Not thread safe, but for coordinator().
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "coordinator/cluster/coordinator.h"

namespace mu::testing {

// Where the daemons' programs are.
std::string BinaryDirectory();

struct TestClusterOptions {
  int workers = 1;  // started at once; others by StartWorker
  int ps = 1;
  bool gathers = false;  // Start starts no daemon and waits for none: the test does
  int functions_in_flight = 2;
  size_t queue_bound = 1000;
  uint64_t seed = 1;
  std::optional<Optimizer> default_optimizer = Sgd{.learning_rate = 0.1f};
  absl::Duration member_timeout = absl::Seconds(10);
  absl::Duration backup_after = absl::Seconds(30);
  std::vector<std::string> worker_flags = {};
  absl::Duration heartbeat = absl::Milliseconds(250);
  std::string listen = "127.0.0.1:0";  // the coordinator
  // What carries the coordinator's calls; gRPC without it.
  std::function<std::unique_ptr<Transport>()> coordinator_transport = nullptr;
  // Changes how a daemon is started: its program, its flags ("--coordinator=..." is one of them).
  std::function<void(const std::string& role, int index, SubprocessOptions*)> adjust = nullptr;
};

class TestCluster {
 public:
  // Returns when all daemons have registered, but see `gathers`.
  static absl::StatusOr<std::unique_ptr<TestCluster>> Start(TestClusterOptions options);
  ~TestCluster();

  Coordinator& coordinator() { return *coordinator_; }
  void DestroyCoordinator() { coordinator_.reset(); }
  // Another coordinator of the same job, at the same address; waits for the daemons, which must be
  // up.
  absl::Status StartCoordinator();

  // Returns when it is a member, so that a test which kills it at once kills what somebody knows;
  // after two seconds also if it listens only. A worker's index may be used again after its
  // process has ended.
  absl::Status StartWorker(int index, std::vector<std::string> flags = {});
  absl::Status StartServer(int index);

  // SIGKILL, and waits for the end.
  void KillWorker(int index) { End("worker", index, 9); }
  void KillServer(int index) { End("psserver", index, 9); }
  // SIGTERM, and waits for the end.
  ExitStatus TerminateWorker(int index) { return End("worker", index, 15); }
  ExitStatus TerminateServer(int index) { return End("psserver", index, 15); }
  void StopWorker(int index) { Signal("worker", index, 19); }
  void ContinueWorker(int index) { Signal("worker", index, 18); }
  void StopServer(int index) { Signal("psserver", index, 19); }
  void ContinueServer(int index) { Signal("psserver", index, 18); }

  // Hands a process over: its index may be used again while it lives on.
  std::unique_ptr<Subprocess> Release(const std::string& role, int index);
  Subprocess& process(const std::string& role, int index) { return *processes_.at({role, index}); }
  std::vector<pid_t> pids() const;
  const std::string& directory() const { return directory_.path(); }
  std::string LogOf(const std::string& role, int index) const;

 private:
  TestCluster(TestClusterOptions options, TempDirectory directory);
  absl::Status CreateCoordinator(const std::string& listen);
  absl::Status StartDaemon(const std::string& role, int index, std::vector<std::string> flags);
  void WaitUntilKnown(const std::string& role, int index);
  ExitStatus End(const std::string& role, int index, int signal);
  void Signal(const std::string& role, int index, int signal);

  const TestClusterOptions options_;
  TempDirectory directory_;
  std::string address_;
  std::unique_ptr<Coordinator> coordinator_;
  bool started_ = false;  // Start has waited for all
  std::map<std::pair<std::string, int>, std::unique_ptr<Subprocess>> processes_;
};

}  // namespace mu::testing
