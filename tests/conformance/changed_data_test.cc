// Data files that change while a job uses them. The worker that reads them may be a new one, which
// never saw the old state.
#include <algorithm>
#include <string>
#include <utility>

#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/checkpointer.h"
#include "coordinator/training/exit_code.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::OnRequest;
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

// The same records in another order.
std::string LastRecordFirst(std::string text) {
  std::reverse(text.begin(), text.end());  // the digits of each number, too
  text.erase(text.begin());
  text += '\n';
  for (auto begin = text.begin(); begin != text.end();) {
    const auto end = std::find(begin, text.end(), '\n');
    std::reverse(begin, end);
    begin = end + 1;
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

// The job stops with no call under way, so there is no lease that says what was in the file. It
// would go on at its place in other records.
TEST(Conformance, FileWrittenAgainBeforeTheJobIsContinued) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  const std::string checkpoints = cluster->directory() + "/checkpoints";
  {
    Coordinator& c = cluster->coordinator();
    Checkpointer checkpointer(&c, OnRequest(checkpoints));
    MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                            CheckedJob::Create(*cluster, {.records = kRecords}));
    for (int i = 0; i < 10; ++i) c.Schedule(job.step(), {.steps = 10});
    MU_ASSERT_OK(c.Join());
    MU_ASSERT_OK_AND_ASSIGN(const std::string checkpoint, checkpointer.TakeNow());
    MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(checkpoint));
    EXPECT_EQ(manifest.position().functions_size(), 0) << "nothing is under way";
    EXPECT_EQ(manifest.position().steps(), 100u);
  }
  const std::string numbers = Numbers(0, kRecords);
  for (const auto& [what, text] : {std::pair("other records", OtherDigits(numbers)),
                                   std::pair("another order", LastRecordFirst(numbers))}) {
    SCOPED_TRACE(what);
    ASSERT_EQ(text.size(), numbers.size());
    ASSERT_NE(text, numbers);
    cluster->DestroyCoordinator();
    MU_ASSERT_OK(cluster->StartCoordinator());
    Coordinator& c = cluster->coordinator();
    Checkpointer checkpointer(&c, OnRequest(checkpoints));
    MU_ASSERT_OK(CheckedJob::Create(*cluster, {.records = kRecords}).status());
    WriteFile(cluster->directory() + "/checked.csv", text);
    const absl::Status status = c.Restore().status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("/checked.csv has changed since the job began to read "
                                           "it; continued, the job would use some records twice")));
    EXPECT_EQ(ExitCodeOf(status), kExitBadJob) << "another try would not help";
  }
  // It has been put back, with another time.
  cluster->DestroyCoordinator();
  MU_ASSERT_OK(cluster->StartCoordinator());
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(checkpoints));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(*cluster, {.records = kRecords}));
  MU_ASSERT_OK(c.Restore().status());
  for (int i = 10; i < 100; ++i) c.Schedule(job.step(), {.steps = 10});
  job.JoinAndCheck();
}

}  // namespace
}  // namespace mu
