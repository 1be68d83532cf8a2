// A run that is followed before it has begun.
#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/followed_checkpoints.h"
#include "coordinator/cluster/job_checkpoints.h"
#include "coordinator/training/followed_run.h"
#include "coordinator/training/run_status.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StatusIs;

class FollowedRunWaitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(directory_.status());
    run_ = JoinPath(directory_->path(), "run");
  }
  std::string Lock() const { return JoinPath(FollowedFolder(run_), kFollowerLock); }
  // Takes so many checkpoints and keeps the newest alone.
  void Train(int checkpoints) {
    JobCheckpoints run;
    run.Enable(run_ + "/checkpoints");
    for (int i = 0; i < checkpoints; ++i) {
      MU_ASSERT_OK_AND_ASSIGN(const std::string folder, run.Claim(/*begun=*/true));
      MU_ASSERT_OK(WriteManifest(folder, {}));
      MU_ASSERT_OK(run.Prune(1, [] { return false; }));
    }
  }
  // A follower that notes that it waits.
  FollowedRun Follower() {
    return FollowedRun(run_, nullptr, [this](const std::string& text) {
      notes_.push_back(text);
      told_ = true;
    });
  }
  auto SaysThatThereIsNone(const std::string& remedy) const {
    return AllOf(HasSubstr("there is no run in " + run_ + " yet; waiting for its first checkpoint"),
                 HasSubstr(remedy));
  }
  // Evaluates everything until the run is over; the names.
  std::vector<std::string> Evaluate(FollowedRun* run) {
    std::vector<std::string> names;
    while (true) {
      const auto next = run->Next(nullptr);
      MU_EXPECT_OK(next.status());
      if (!next.ok() || next->empty()) return names;
      names.push_back(BaseName(*next));
      MU_EXPECT_OK(run->Add(*next, Evaluation()));
    }
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("followed-run-wait");
  std::string run_;
  std::vector<std::string> notes_;
  std::atomic<bool> told_ = false;
};

TEST_F(FollowedRunWaitTest, AFolderThatIsNotThereIsNotMade) {
  std::atomic<int> stop = 0;
  FollowedRun run(run_ + "/checkpoints", nullptr, [&](const std::string& text) {
    notes_.push_back(text);
    stop = 1;
  });
  MU_ASSERT_OK_AND_ASSIGN(const std::string record, run.Open());
  EXPECT_EQ(record, run_ + "/evaluations.json");
  EXPECT_THAT(run.Next(&stop), HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(notes_, ElementsAre(SaysThatThereIsNone("no such folder: if the name is wrong")));
  EXPECT_FALSE(FileExists(run_));
}

// The run keeps its newest checkpoint alone, from the moment when somebody can follow it.
TEST_F(FollowedRunWaitTest, NoneIsMissedOnceTheFolderIsThere) {
  constexpr int kCheckpoints = 5;
  FollowedRun run = Follower();
  MU_ASSERT_OK(run.Open());
  std::thread trains([&] {
    testing::WaitWhile([&] { return !told_; });
    MU_EXPECT_OK(MakeDirectories(run_));
    testing::WaitWhile([&] { return !FileExists(Lock()); });
    Train(kCheckpoints);
    MU_EXPECT_OK(MarkRun(run_, RunStatus::kDone));
  });
  EXPECT_THAT(Evaluate(&run), ElementsAre("ckpt-00000001", "ckpt-00000002", "ckpt-00000003",
                                          "ckpt-00000004", "ckpt-00000005"));
  trains.join();
  EXPECT_THAT(notes_, ElementsAre(SaysThatThereIsNone("")));
  EXPECT_FALSE(FileExists(FollowedFolder(run_)));
}

// As a volume that is mounted late. What is written down there is not evaluated again.
TEST_F(FollowedRunWaitTest, AFolderThatComesWithARecord) {
  const std::string elsewhere = JoinPath(directory_->path(), "elsewhere");
  FollowedRun run = Follower();
  MU_ASSERT_OK(run.Open());
  std::thread moves([&] {
    testing::WaitWhile([&] { return !told_; });
    for (const char* const name : {"ckpt-00000001", "ckpt-00000002"}) {
      const std::string folder = absl::StrCat(elsewhere, "/checkpoints/", name);
      MU_EXPECT_OK(MakeDirectories(folder));
      MU_EXPECT_OK(WriteManifest(folder, {}));
    }
    MU_EXPECT_OK(WriteFileAtomic(JoinPath(elsewhere, "evaluations.json"),
                                 R"([{"checkpoint": "ckpt-00000001", "metrics": {}}])"));
    MU_EXPECT_OK(MarkRun(elsewhere, RunStatus::kDone));
    MU_EXPECT_OK(RenameFile(elsewhere, run_));
  });
  EXPECT_THAT(Evaluate(&run), ElementsAre("ckpt-00000002"));
  moves.join();
  EXPECT_EQ(run.evaluations().size(), 2u);
}

// It is marked at once: the run that is about to begin there looks for the mark when it deletes.
TEST_F(FollowedRunWaitTest, AFolderWithoutARunIsMarked) {
  MU_ASSERT_OK(MakeDirectories(run_));
  std::atomic<int> stop = 0;
  FollowedRun run(run_, nullptr, [&](const std::string& text) {
    notes_.push_back(text);
    stop = 1;
  });
  MU_ASSERT_OK(run.Open());
  EXPECT_TRUE(FileExists(Lock()));
  EXPECT_THAT(run.Next(&stop), HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(notes_, ElementsAre(SaysThatThereIsNone("remove " + FollowedFolder(run_))));
}

// The second look at a record that cannot be read is a warning; the note would come at the first.
TEST_F(FollowedRunWaitTest, ARecordIsARunThoughItHasNoCheckpoint) {
  MU_ASSERT_OK(MakeDirectories(run_));
  for (const char* const record : {"job.json", "run.json"}) {
    MU_ASSERT_OK(WriteFileAtomic(JoinPath(run_, record), ""));
    FollowedRun run(
        run_, [&](const std::string&) { MU_EXPECT_OK(MarkRun(run_, RunStatus::kDone)); },
        [&](const std::string& text) { notes_.push_back(text); });
    EXPECT_THAT(Evaluate(&run), IsEmpty());
    EXPECT_THAT(notes_, IsEmpty()) << record;
    MU_ASSERT_OK(RemoveFile(JoinPath(run_, record)));
    UnmarkRun(run_).IgnoreError();
  }
}

// A program's that does not say whether its run is over. Each look removes what has been evaluated.
TEST_F(FollowedRunWaitTest, CheckpointsAreARunThoughNothingIsWrittenOfIt) {
  Train(1);
  FollowedRun run = Follower();
  MU_ASSERT_OK_AND_ASSIGN(const std::string folder, run.Next(nullptr));
  MU_ASSERT_OK(run.Add(folder, Evaluation()));
  MU_ASSERT_OK(MakeDirectories(folder));
  std::thread ends([&] {
    testing::WaitWhile([&] { return FileExists(folder); });
    MU_EXPECT_OK(MarkRun(run_, RunStatus::kDone));
  });
  EXPECT_THAT(Evaluate(&run), IsEmpty());
  ends.join();
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(FollowedRunWaitTest, AFileInItsPlaceIsAnError) {
  MU_ASSERT_OK(WriteFileAtomic(run_, ""));
  EXPECT_THAT(FollowedRun(run_).Open(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(run_)));
}

}  // namespace
}  // namespace mu
