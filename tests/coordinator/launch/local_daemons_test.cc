// Processes that are supervised, and what chaos does to them. The daemons are scripts here.
#include "coordinator/launch/local_daemons.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/env/file.h"
#include "coordinator/launch/chaos.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class LocalDaemonsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(directory_.status());
    // The ready line is a daemon's first; then it waits for its end.
    for (const char* name : {"worker", "psserver"}) {
      const std::string path = JoinPath(directory_->path(), name);
      MU_ASSERT_OK(WriteFileAtomic(path,
                                   "#!/bin/bash\n"
                                   "for arg in \"$@\"; do\n"
                                   "  case $arg in --ready_fd=*) eval \"echo up >&${arg#*=}\";; "
                                   "esac\n"
                                   "done\n"
                                   ": >$0.up\n"
                                   "exec sleep 1000\n"));
      ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    }
    LocalDaemonsOptions options;
    options.binary_dir = options.log_dir = options.cache_dir = directory_->path();
    options.workers = 1;
    options.ps = 0;
    options.coordinator = "127.0.0.1:1";
    options.died = [this](int64_t, const std::string&) {
      EXPECT_THAT(daemons_->Processes(), IsEmpty()) << "another one was started before";
      ++died_;
    };
    options.cannot_start = [](absl::Status error) { ADD_FAILURE() << error; };
    MU_ASSERT_OK_AND_ASSIGN(daemons_, LocalDaemons::Start(std::move(options)));
    // One that ends before it has ever served is another matter.
    ASSERT_TRUE(testing::Eventually([&] { return FileExists(directory_->path() + "/worker.up"); }));
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("local-daemons");
  std::atomic<int> died_ = 0;
  std::unique_ptr<LocalDaemons> daemons_;
};

TEST_F(LocalDaemonsTest, OneThatHasEndedIsNotListedAndGetsNoSignal) {
  ASSERT_THAT(daemons_->Processes(), SizeIs(1));
  const pid_t first = daemons_->Processes()[0].pid;
  ASSERT_TRUE(daemons_->Signal(first, SIGKILL));
  // Until it is started again, under another pid.
  ASSERT_TRUE(testing::Eventually([&] {
    const auto processes = daemons_->Processes();
    return processes.empty() || processes[0].pid != first;
  }));
  EXPECT_FALSE(daemons_->Signal(first, SIGKILL));
  EXPECT_FALSE(daemons_->Signal(::getpid(), SIGKILL)) << "none of ours";
  ASSERT_TRUE(testing::Eventually([&] { return daemons_->Processes().size() == 1; }));
  EXPECT_NE(daemons_->Processes()[0].pid, first);
  EXPECT_EQ(died_, 1);
}

// Faster than the daemon is started again, whose delay grows.
TEST_F(LocalDaemonsTest, ChaosCountsWhatItHasDone) {
  MU_ASSERT_OK_AND_ASSIGN(ChaosPlan plan, ChaosPlan::Parse("worker:kill:every=1ms:count=3"));
  std::multiset<pid_t> killed;
  std::atomic<int> kills = 0;
  {
    Chaos chaos(
        std::move(plan),
        [this] {
          std::vector<Chaos::Target> targets;
          for (const auto& process : daemons_->Processes())
            targets.push_back({process.name, process.pid, /*worker=*/true});
          return targets;
        },
        [&](pid_t pid, int signal) {
          if (!daemons_->Signal(pid, signal)) return false;
          killed.insert(pid);
          ++kills;
          return true;
        });
    ASSERT_TRUE(testing::Eventually([&] { return kills == 3; }));
  }
  EXPECT_THAT(std::set<pid_t>(killed.begin(), killed.end()), SizeIs(3));
}

}  // namespace
}  // namespace mu
