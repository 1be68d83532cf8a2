#include "coordinator/cli/checkpoint_choice.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/run_status.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointChoiceTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return JoinPath(folder_->path(), name); }
  // A checkpoint of a run, complete at that second.
  std::string Take(const std::string& run, int number, int second) {
    const std::string path = Path(absl::StrCat(run, "/checkpoints/ckpt-0000000", number));
    MU_EXPECT_OK(MakeDirectories(path));
    pb::CheckpointProto manifest;
    manifest.set_format_version(kCheckpointFormat);
    MU_EXPECT_OK(WriteManifest(path, manifest));
    const timespec times[2] = {{.tv_sec = second, .tv_nsec = 0}, {.tv_sec = second, .tv_nsec = 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, JoinPath(path, "manifest.json").c_str(), times, 0), 0);
    return path;
  }
  // Lets a manifest name a file of ten bytes, which is not there.
  void Name(const std::string& file, const std::string& checkpoint) {
    pb::CheckpointProto manifest;
    manifest.set_format_version(kCheckpointFormat);
    manifest.add_files()->set_name(file);
    manifest.mutable_files(0)->set_bytes(10);
    MU_ASSERT_OK(WriteManifest(checkpoint, manifest));
  }
  void Record(const std::string& run, const std::string& job) {
    MU_ASSERT_OK(MakeDirectories(Path(run)));
    JobRecord record;
    record.status = "done";
    record.job.set_name(job);
    MU_ASSERT_OK(WriteJobRecord(Path(run), record));
  }
  // Their names, the newest first.
  std::vector<std::string> Runs(const std::string& job) {
    std::vector<std::string> names;
    for (const RunOfJob& run : RunsOfJob(folder_->path(), job))
      names.push_back(BaseName(run.directory));
    return names;
  }
  std::string Choose(const CheckpointCandidates& candidates,
                     const std::vector<std::string>& misfits = {}) {
    notes_.clear();
    problems_ = ProblemList();
    const auto fits = [&](const std::string& path) -> absl::Status {
      for (const std::string& misfit : misfits)
        if (path == misfit) return absl::InvalidArgumentError("it has other tables");
      return absl::OkStatus();
    };
    return ChooseCheckpoint(candidates, Place{"--checkpoint"}, fits, &notes_, &problems_);
  }

  absl::StatusOr<TempDirectory> folder_ = TempDirectory::Create("checkpoint-choice");
  std::vector<std::string> notes_;
  ProblemList problems_;
};

TEST_F(CheckpointChoiceTest, ARunIsOfTheJobThatItsRecordNames) {
  EXPECT_THAT(Runs("small"), IsEmpty());
  Record("mine", "small");
  EXPECT_THAT(Runs("small"), IsEmpty()) << "it has no checkpoint";
  Take("mine", 1, 100);
  EXPECT_THAT(Runs("small"), ElementsAre("mine"));
  EXPECT_THAT(Runs("mine"), IsEmpty());
  Record("small-20260101-000000", "other");
  Take("small-20260101-000000", 1, 200);
  EXPECT_THAT(Runs("small"), ElementsAre("mine")) << "its name says what its record does not";
  EXPECT_THAT(Runs("other"), ElementsAre("small-20260101-000000"));
}

TEST_F(CheckpointChoiceTest, ARunWithoutARecordIsOfTheJobThatItIsNamedAfter) {
  for (const char* run : {"small-20260101-000000", "small-20260101-000000-77", "small-more",
                          "small-more-20260101-000000", "mine"})
    Take(run, 1, 100);
  EXPECT_THAT(Runs("small"), ElementsAre("small-20260101-000000", "small-20260101-000000-77"));
  EXPECT_THAT(Runs("small-more"), ElementsAre("small-more-20260101-000000"));
  // One that is damaged says nothing, and neither does one from before a program trained there.
  MU_ASSERT_OK(WriteFileAtomic(Path("mine/job.json"), "{"));
  EXPECT_EQ(Runs("small").size(), 2u);
  Record("mine", "small");
  EXPECT_EQ(Runs("small").size(), 3u);
  MU_ASSERT_OK(MarkRun(Path("mine"), RunStatus::kRunning));
  EXPECT_EQ(Runs("small").size(), 2u);
}

TEST_F(CheckpointChoiceTest, TheRunWithTheNewestCheckpointComesFirst) {
  Take("small-20260101-000000", 1, 300);
  Take("small-20260202-000000", 1, 100);
  Record("mine", "small");
  Take("mine", 1, 50);
  const std::string newest = Take("mine", 2, 200);
  EXPECT_THAT(Runs("small"), ElementsAre("small-20260101-000000", "mine", "small-20260202-000000"));
  const RunOfJob mine = RunsOfJob(folder_->path(), "small")[1];
  EXPECT_EQ(mine.checkpoints.front(), newest);
  EXPECT_EQ(mine.checkpoints.size(), 2u);
  ASSERT_TRUE(mine.record.has_value());
  EXPECT_EQ(mine.record->status, "done");
}

TEST_F(CheckpointChoiceTest, WhichOfSeveralRunsIsTakenIsTold) {
  const std::string first = Take("a", 1, 100), second = Take("b", 1, 50);
  EXPECT_EQ(Choose({.paths = {first}}), first);
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(Choose({.paths = {first, second}, .runs = 2}), first);
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr(first + " is taken, of the newest of the 2 runs"),
                                        HasSubstr("--checkpoint=DIR names another"))));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(CheckpointChoiceTest, TheNewestThatFitsIsTaken) {
  const std::string newest = Take("a", 2, 200), older = Take("a", 1, 100), other = Take("b", 1, 50);
  EXPECT_EQ(Choose({.paths = {newest, older}}, {newest}), older);
  EXPECT_THAT(notes_,
              ElementsAre(newest + " does not fit the model: it has other tables. " + older +
                          " is taken, the newest that fits; --checkpoint=DIR names "
                          "another"));
  // Of many runs, one that does not fit is passed over as a whole.
  EXPECT_EQ(Choose({.paths = {newest, older, other}, .runs = 2}, {newest}), other);
  EXPECT_EQ(notes_.size(), 1u);
  EXPECT_EQ(Choose({.paths = {newest}}, {newest}), "");
  EXPECT_THAT(problems_.ToString(),
              HasSubstr("--checkpoint: " + newest + " does not fit the model"));
  EXPECT_EQ(Choose({.paths = {newest, older}}, {newest, older}), "");
  EXPECT_THAT(problems_.ToString(), HasSubstr("none of the checkpoints fits; " + newest));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(CheckpointChoiceTest, ADamagedOneIsPassedOverAndNamed) {
  const std::string oldest = Take("a", 1, 100), older = Take("a", 2, 200),
                    newest = Take("a", 3, 300);
  MU_ASSERT_OK(WriteFileAtomic(newest + "/manifest.json", "{"));
  Name("ps-0.safetensors", older);
  EXPECT_EQ(Choose({.paths = {newest, older, oldest}}), oldest);
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr(newest + "/manifest.json is damaged"),
                                        HasSubstr(". " + oldest +
                                                  " is taken, the newest good one; --checkpoint="
                                                  "DIR names another"))));
  MU_ASSERT_OK(WriteFileAtomic(older + "/ps-0.safetensors", "0123456789"));
  EXPECT_EQ(Choose({.paths = {newest, older, oldest}}), older);
  EXPECT_EQ(Choose({.paths = {older}}), older);
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_TRUE(problems_.empty());
}

TEST_F(CheckpointChoiceTest, OneThatIsNamedIsRefusedWithTheOneBeforeIt) {
  const std::string oldest = Take("a", 1, 100), older = Take("a", 2, 200),
                    newest = Take("a", 3, 300);
  Name("ps-0.safetensors", older);
  Name("ps-0.safetensors", newest);
  EXPECT_EQ(Choose({.paths = {newest}}), "");
  EXPECT_EQ(problems_.ToString(),
            "--checkpoint: " + newest +
                "/ps-0.safetensors is missing, which its manifest names; use another checkpoint; "
                "--checkpoint=" +
                oldest + " is the newest good one before it\n");
  EXPECT_EQ(InsteadOf(newest, Place{Path("a")}), oldest + " is the newest good one before it");
  EXPECT_EQ(InsteadOf(oldest, Place{"--checkpoint"}), "") << "there is none before it";
  EXPECT_EQ(Choose({.paths = {newest, older}}), "");
  EXPECT_THAT(problems_.ToString(), HasSubstr("none of the checkpoints is good; " + newest));
  EXPECT_THAT(notes_, IsEmpty());
}

}  // namespace
}  // namespace mu
