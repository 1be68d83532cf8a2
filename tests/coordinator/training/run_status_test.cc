#include "coordinator/training/run_status.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <climits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/training/job_record.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

class RunStatusTest : public ::testing::Test {
 protected:
  std::string Run() const { return directory_->path() + "/run"; }
  void Record(const std::string& status, bool starting = false) {
    JobRecord record;
    record.status = status;
    record.starting = starting;
    MU_ASSERT_OK(MakeDirectories(Run()));
    MU_ASSERT_OK(WriteJobRecord(Run(), record));
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("run-status");
};

TEST_F(RunStatusTest, OfAProgram) {
  EXPECT_FALSE(RunIsOver(Run())) << "there is nothing";
  MU_ASSERT_OK(MarkRun(Run(), RunStatus::kRunning));
  EXPECT_FALSE(RunIsOver(Run()));
  MU_ASSERT_OK(MarkRun(Run(), RunStatus::kDone));
  EXPECT_TRUE(RunIsOver(Run()));
  MU_ASSERT_OK(MarkRun(Run(), RunStatus::kRunning));
  EXPECT_FALSE(RunIsOver(Run()));
  MU_ASSERT_OK(MarkRun(Run(), RunStatus::kFailed));
  EXPECT_TRUE(RunIsOver(Run()));
  MU_ASSERT_OK(UnmarkRun(Run()));
  EXPECT_FALSE(RunIsOver(Run()));
  MU_EXPECT_OK(UnmarkRun(Run())) << "there is none any more";
}

TEST_F(RunStatusTest, OfAJob) {
  for (const char* status : {"done", "failed"}) {
    Record(status);
    EXPECT_TRUE(RunIsOver(Run())) << status;
  }
  for (const char* status : {"running", "stopped"}) {
    Record(status);
    EXPECT_FALSE(RunIsOver(Run())) << status;
  }
  for (const char* status : {"done", "failed"}) {
    Record(status, /*starting=*/true);
    EXPECT_FALSE(RunIsOver(Run())) << status;
  }
}

// A program trains where a job did, and the reverse.
TEST_F(RunStatusTest, TheMarkOfAProgramCountsAsLongAsItIsThere) {
  Record("done");
  MU_ASSERT_OK(MarkRun(Run(), RunStatus::kRunning));
  EXPECT_FALSE(RunIsOver(Run()));
  MU_ASSERT_OK(UnmarkRun(Run()));
  EXPECT_TRUE(RunIsOver(Run()));
  Record("running");
  MU_ASSERT_OK(MarkRun(Run(), RunStatus::kDone));
  EXPECT_TRUE(RunIsOver(Run()));
}

TEST_F(RunStatusTest, AMarkThatCannotBeReadSaysNothing) {
  Record("done");
  for (const char* text : {"", "{", "[]", "{}", "\"done\"", R"({"status": 1})"}) {
    MU_ASSERT_OK(WriteFileAtomic(Run() + "/run.json", text));
    EXPECT_FALSE(RunIsOver(Run())) << text;
    EXPECT_THAT(ReadRunIsOver(Run()),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("run.json is empty or damaged")))
        << text;
  }
}

TEST_F(RunStatusTest, NorDoesARecordThatCannotBeRead) {
  MU_ASSERT_OK_AND_ASSIGN(const bool before, ReadRunIsOver(Run()));
  EXPECT_FALSE(before) << "there is none";
  MU_ASSERT_OK(MakeDirectories(Run()));
  for (const char* text : {"", "{", "[]", "{}", R"({"status": "done"})"}) {
    MU_ASSERT_OK(WriteFileAtomic(Run() + "/job.json", text));
    EXPECT_FALSE(RunIsOver(Run())) << text;
    EXPECT_THAT(ReadRunIsOver(Run()),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("job.json is empty or damaged")))
        << text;
  }
  MU_ASSERT_OK(MarkRun(Run(), RunStatus::kDone));
  EXPECT_TRUE(RunIsOver(Run())) << "the record does not count";
}

// What ReadFile makes of it.
TEST_F(RunStatusTest, AFileThatIsNoneIsAnErrorOfItsOwn) {
  MU_ASSERT_OK(MakeDirectories(Run() + "/run.json"));
  EXPECT_THAT(ReadRunIsOver(Run()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run.json")));
}

// As on a full disk: here the name of the file that is written first is longer than paths may be.
TEST_F(RunStatusTest, ARunThatBeginsIsNotOverWhereThatCannotBeWritten) {
  constexpr size_t kLongest = PATH_MAX - sizeof "/run.json";
  std::string run = Run();
  while (run.size() + 1 < kLongest)
    absl::StrAppend(&run, "/", std::string(std::min<size_t>(200, kLongest - run.size() - 1), 'r'));
  MU_ASSERT_OK(MakeDirectories(run));
  MU_ASSERT_OK(CreateFileExclusive(run + "/run.json", R"({"status": "done"})"));
  EXPECT_FALSE(MarkRun(run, RunStatus::kFailed).ok());
  EXPECT_TRUE(RunIsOver(run)) << "it is, one way or the other";
  EXPECT_FALSE(MarkRun(run, RunStatus::kRunning).ok());
  EXPECT_FALSE(RunIsOver(run));
}

TEST_F(RunStatusTest, OnlyAFolderOfCheckpointsHasARun) {
  EXPECT_EQ(RunOfCheckpointFolder("/runs/a/checkpoints"), "/runs/a");
  EXPECT_EQ(RunOfCheckpointFolder("/runs/a/checkpoints/"), "/runs/a");
  EXPECT_EQ(RunOfCheckpointFolder("/runs/a/elsewhere"), "");
  EXPECT_EQ(RunOfCheckpointFolder(""), "");
}

}  // namespace
}  // namespace mu
