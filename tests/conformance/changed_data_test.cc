// Data files that change while a job uses them. The worker that reads them may be a new one, which
// never saw the old state.
#include <string>
#include <utility>

#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::StatusIs;
using testing::TestCluster;
using testing::WriteFile;

constexpr int64_t kRecords = 4000;

// Other numbers in the same places.
std::string OtherDigits(std::string text) {
  for (char& c : text) {
    if (c != '\n') c = static_cast<char>('9' - (c - '0'));
  }
  return text;
}

TEST(Conformance, FileReplacedWhileItsWorkerIsDead) {
  for (const auto& [what, text] :
       {std::pair("a line in front", "7\n" + Numbers(0, kRecords)),
        std::pair("the same length", OtherDigits(Numbers(0, kRecords)))}) {
    SCOPED_TRACE(what);
    MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
    Coordinator& c = cluster->coordinator();
    MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                            CheckedJob::Create(*cluster, {.records = kRecords}));
    for (int i = 0; i < 10; ++i) c.Schedule(job.step(), {.steps = 10});
    MU_ASSERT_OK(c.Join());
    cluster->KillWorker(0);
    WriteFile(cluster->directory() + "/checked.csv", text);
    MU_ASSERT_OK(cluster->StartWorker(0));
    c.Schedule(job.step(), {.steps = 10});
    const absl::Status status = c.Join();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("checked.csv has changed since the job began")));
    EXPECT_EQ(KindOf(status), pb::ERROR_USER) << "another try would not help";
    EXPECT_EQ(c.Stats().steps, 100u) << "no step has read what is there now";
  }
}

// One that is as it was is read by whoever comes.
TEST(Conformance, FileWrittenAgainWhileItsWorkerIsDead) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(*cluster, {.records = kRecords}));
  job.ScheduleAll(10);
  job.WaitForSteps(100);
  cluster->KillWorker(0);
  WriteFile(cluster->directory() + "/checked.csv", Numbers(0, kRecords));
  MU_ASSERT_OK(cluster->StartWorker(0));
  job.JoinAndCheck();
}

}  // namespace
}  // namespace mu
