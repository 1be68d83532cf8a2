#include "coordinator/training/followed_run.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/crc32c.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/followed_checkpoints.h"
#include "coordinator/cluster/job_checkpoints.h"
#include "coordinator/training/job_record.h"
#include "coordinator/training/run_status.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using testing::StatusIs;

class FollowedRunTest : public ::testing::Test {
 protected:
  std::string Name(int number) const { return absl::StrFormat("ckpt-%08d", number); }
  std::string Folder(int number) const {
    return absl::StrCat(directory_->path(), "/checkpoints/", Name(number));
  }
  void Complete(int number) {
    MU_ASSERT_OK(MakeDirectories(Folder(number)));
    pb::CheckpointProto manifest;
    manifest.set_format_version(kCheckpointFormat);
    manifest.set_steps(100 * number);
    constexpr char kName[] = "ps-0.safetensors", kText[] = "values";
    constexpr size_t kBytes = sizeof kText - 1;
    pb::CheckpointFileProto* file = manifest.add_files();
    file->set_name(kName);
    file->set_bytes(kBytes);
    file->set_crc32c(ExtendCrc32c(0, kText, kBytes));
    MU_ASSERT_OK(WriteFileAtomic(JoinPath(Folder(number), kName), kText));
    MU_ASSERT_OK(WriteManifest(Folder(number), manifest));
  }
  void End(const std::string& status) {
    JobRecord record;
    record.status = status;
    MU_ASSERT_OK(WriteJobRecord(directory_->path(), record));
  }
  // As the run does that keeps its newest alone.
  void CompleteAndPrune(int first, int last) {
    JobCheckpoints run;
    run.Enable(directory_->path() + "/checkpoints");
    for (int number = first; number <= last; ++number) {
      Complete(number);
      MU_ASSERT_OK(run.Prune(1, [] { return false; }));
      EXPECT_THAT(*ListCheckpoints(directory_->path() + "/checkpoints"),
                  ElementsAre(Folder(number)));
    }
  }
  bool IsFollowed() const { return FileExists(directory_->path() + "/followed"); }
  FollowedRun Open() {
    FollowedRun run(directory_->path());
    MU_EXPECT_OK(run.Open().status());
    return run;
  }
  // Evaluates everything until the job is over; the names, in their order.
  std::vector<std::string> Follow(FollowedRun* run) {
    std::vector<std::string> names;
    while (true) {
      const auto next = run->Next(nullptr);
      MU_EXPECT_OK(next.status());
      if (!next.ok() || next->empty()) return names;
      EXPECT_TRUE(FileExists(JoinPath(*next, "ps-0.safetensors")));
      names.push_back(BaseName(*next));
      MU_EXPECT_OK(run->Add(*next, Evaluation{.examples = 5, .metrics = {{"auc", 0.5}}}));
    }
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("followed-run");
};

TEST_F(FollowedRunTest, EachOnceInTheirOrder) {
  for (const int number : {1, 2, 4, 10}) Complete(number);
  End("done");
  FollowedRun run = Open();
  EXPECT_THAT(Follow(&run), ElementsAre(Name(1), Name(2), Name(4), Name(10)));
  ASSERT_THAT(run.evaluations(), SizeIs(4));
  EXPECT_EQ(run.evaluations()[2].checkpoint, Name(4));
  FollowedRun again = Open();
  EXPECT_THAT(Follow(&again), IsEmpty());
  EXPECT_THAT(again.evaluations(), SizeIs(4));
  EXPECT_EQ(again.evaluations()[0].metrics.at("auc"), 0.5);
  EXPECT_FALSE(IsFollowed());
}

// Whenever it is started again, nothing is missed and nothing repeated.
TEST_F(FollowedRunTest, GoesOnAfterADeath) {
  for (int number = 1; number <= 3; ++number) Complete(number);
  {
    FollowedRun dies = Open();
    MU_ASSERT_OK_AND_ASSIGN(const std::string first, dies.Next(nullptr));
    MU_ASSERT_OK(dies.Add(first, Evaluation()));
    MU_ASSERT_OK(dies.Next(nullptr).status());  // the second is not written down
  }
  // One that was written down, and that could not be removed any more.
  MU_ASSERT_OK(MakeDirectories(directory_->path() + "/followed/" + Name(1)));
  MU_ASSERT_OK(MakeDirectories(directory_->path() + "/followed/" + Name(9) + ".partly/part"));
  Complete(4);
  End("done");
  FollowedRun run = Open();
  EXPECT_THAT(Follow(&run), ElementsAre(Name(2), Name(3), Name(4)));
  EXPECT_FALSE(IsFollowed());
}

// Some come and go before the first look, some while another is evaluated, some while nobody runs.
TEST_F(FollowedRunTest, WhatComesAndGoesBetweenTwoLooksIsNotMissed) {
  {
    FollowedRun dies = Open();
    CompleteAndPrune(1, 3);
    MU_ASSERT_OK_AND_ASSIGN(const std::string first, dies.Next(nullptr));
    EXPECT_EQ(BaseName(first), Name(1));
    CompleteAndPrune(4, 6);
    EXPECT_TRUE(FileExists(JoinPath(first, kManifestName))) << "it is being read";
    MU_ASSERT_OK(dies.Add(first, Evaluation()));
    CompleteAndPrune(7, 7);
    MU_ASSERT_OK(dies.Next(nullptr).status());  // the second is not written down
  }
  CompleteAndPrune(8, 10);
  End("done");
  FollowedRun run = Open();
  EXPECT_THAT(Follow(&run), ElementsAre(Name(2), Name(3), Name(4), Name(5), Name(6), Name(7),
                                        Name(8), Name(9), Name(10)));
  EXPECT_FALSE(IsFollowed());
}

// The run cannot know that it has been evaluated.
TEST_F(FollowedRunTest, WhatIsMovedAfterItsEvaluationIsNotRepeated) {
  FollowedRun run = Open();
  CompleteAndPrune(1, 1);
  MU_ASSERT_OK_AND_ASSIGN(const std::string first, run.Next(nullptr));
  MU_ASSERT_OK(run.Add(first, Evaluation()));
  EXPECT_FALSE(FileExists(first));
  CompleteAndPrune(2, 2);
  EXPECT_TRUE(FileExists(first));
  MU_ASSERT_OK_AND_ASSIGN(const std::string second, run.Next(nullptr));
  EXPECT_EQ(BaseName(second), Name(2));
  EXPECT_FALSE(FileExists(first));
  End("done");
  EXPECT_THAT(Follow(&run), ElementsAre(Name(2)));
}

// Both take hold of the same ones, and remove them, at any moment.
TEST_F(FollowedRunTest, ARunThatDoesNotWait) {
  constexpr int kLast = 60;
  static_assert(kLast < kMostFollowed);
  FollowedRun run = Open();
  std::thread trains([&] {
    CompleteAndPrune(1, kLast);
    End("done");
  });
  std::vector<std::string> all;
  for (int number = 1; number <= kLast; ++number) all.push_back(Name(number));
  EXPECT_THAT(Follow(&run), ElementsAreArray(all));
  trains.join();
  EXPECT_FALSE(IsFollowed());
}

// The run keeps its newest only; those that wait are held.
TEST_F(FollowedRunTest, WhatTheRunDeletesIsHeld) {
  for (int number = 1; number <= 3; ++number) Complete(number);
  FollowedRun run = Open();
  MU_ASSERT_OK_AND_ASSIGN(const std::string first, run.Next(nullptr));
  for (int number = 1; number <= 3; ++number) MU_ASSERT_OK(RemoveCheckpoint(Folder(number)));
  EXPECT_TRUE(FileExists(JoinPath(first, kManifestName)));
  End("done");
  EXPECT_THAT(Follow(&run), ElementsAre(Name(1), Name(2), Name(3)));
}

TEST_F(FollowedRunTest, EndsWithTheJobOrWhenItIsAskedTo) {
  const std::atomic<int> stop = 1;
  FollowedRun run = Open();
  EXPECT_THAT(run.Next(&stop), HasCode(absl::StatusCode::kCancelled));
  EXPECT_TRUE(IsFollowed()) << "it may be started again";
  End("failed");
  EXPECT_THAT(Follow(&run), IsEmpty());
  EXPECT_FALSE(IsFollowed());
}

// Each Next looks once, since a checkpoint waits.
TEST_F(FollowedRunTest, WarnsOnceOfEachReasonWhyItCannotTellWhetherTheRunIsOver) {
  constexpr int kLooks = 12;
  for (int number = 1; number <= kLooks; ++number) Complete(number);
  const std::string record = directory_->path() + "/job.json",
                    mark = directory_->path() + "/run.json";
  std::vector<std::string> warnings;
  FollowedRun run(directory_->path(), [&](const std::string& text) { warnings.push_back(text); });
  MU_ASSERT_OK(run.Open().status());
  int looks = 0;
  const auto look = [&]() -> size_t {
    ++looks;
    const auto next = run.Next(nullptr);
    MU_EXPECT_OK(next.status());
    if (next.ok()) MU_EXPECT_OK(run.Add(*next, Evaluation()));
    return warnings.size();
  };
  EXPECT_EQ(look(), 0u) << "it has not begun";
  MU_ASSERT_OK(WriteFileAtomic(record, ""));
  EXPECT_EQ(look(), 0u) << "it may be readable the next time";
  End("running");
  EXPECT_EQ(look(), 0u);
  MU_ASSERT_OK(WriteFileAtomic(record, ""));
  EXPECT_EQ(look(), 0u);
  EXPECT_EQ(look(), 1u);
  EXPECT_EQ(look(), 1u) << "it is the same";
  EXPECT_EQ(look(), 1u) << "it is the same";
  MU_ASSERT_OK(WriteFileAtomic(mark, "{"));
  EXPECT_EQ(look(), 1u);
  EXPECT_EQ(look(), 2u) << "it is another one";
  MU_ASSERT_OK(MarkRun(directory_->path(), RunStatus::kRunning));
  EXPECT_EQ(look(), 2u);
  MU_ASSERT_OK(WriteFileAtomic(mark, ""));
  EXPECT_EQ(look(), 2u);
  EXPECT_EQ(look(), 3u) << "it was readable meanwhile";
  EXPECT_EQ(looks, kLooks);
  const auto says = [&](const std::string& file) {
    return AllOf(HasSubstr(file + " is empty or damaged"),
                 HasSubstr("write {\"status\": \"done\"} into " + mark),
                 HasSubstr("stop this process"));
  };
  EXPECT_THAT(warnings, ElementsAre(says(record), says(mark), says(mark)));
}

// All that was saved has been evaluated long since: without a warning it would wait for ever.
TEST_F(FollowedRunTest, WarnsWhileItWaitsAndEndsAsTheWarningSays) {
  Complete(1);
  MU_ASSERT_OK(WriteFileAtomic(directory_->path() + "/job.json", ""));
  std::atomic<int> stop = 0;
  std::atomic<bool> ended = false;
  int warnings = 0;
  FollowedRun run(directory_->path(), [&](const std::string&) {
    ++warnings;
    MU_EXPECT_OK(WriteFileAtomic(directory_->path() + "/run.json", R"({"status": "done"})"));
  });
  MU_ASSERT_OK(run.Open().status());
  MU_ASSERT_OK_AND_ASSIGN(const std::string first, run.Next(nullptr));
  MU_ASSERT_OK(run.Add(first, Evaluation()));
  std::thread patience([&] {
    testing::WaitWhile([&] { return !ended; });
    stop = 1;
  });
  const absl::StatusOr<std::string> next = run.Next(&stop);
  ended = true;
  patience.join();
  MU_ASSERT_OK(next.status());
  EXPECT_THAT(*next, IsEmpty());
  EXPECT_EQ(warnings, 1);
  EXPECT_FALSE(IsFollowed());
}

// As a run does at its beginning and its end, at any moment of a look.
TEST_F(FollowedRunTest, FilesThatAreBeingReplacedAreNoReasonToWarn) {
  constexpr int kTimes = 50;
  Complete(1);
  std::vector<std::string> warnings;
  FollowedRun run(directory_->path(), [&](const std::string& text) { warnings.push_back(text); });
  MU_ASSERT_OK(run.Open().status());
  std::atomic<bool> replaced = false;
  std::thread replaces([&] {
    for (int i = 0; i < kTimes; ++i) {
      End("running");
      MU_EXPECT_OK(MarkRun(directory_->path(), RunStatus::kRunning));
      MU_EXPECT_OK(UnmarkRun(directory_->path()));
    }
    replaced = true;
  });
  while (!replaced) {
    MU_EXPECT_OK(run.Next(nullptr).status());  // one look: the checkpoint still waits
    MU_EXPECT_OK(ReadRunIsOver(directory_->path()));
  }
  replaces.join();
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(FollowedRunTest, ADamagedOneIsWrittenDownAndOthersAreTriedAgain) {
  Complete(1);
  End("done");
  FollowedRun run = Open();
  MU_ASSERT_OK_AND_ASSIGN(const std::string folder, run.Next(nullptr));
  EXPECT_THAT(run.Add(folder, absl::UnavailableError("a server was lost")),
              HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(run.Add(folder, absl::DataLossError("the data is damaged, not the checkpoint")),
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(run.evaluations(), IsEmpty());
  MU_ASSERT_OK(WriteFileAtomic(JoinPath(folder, "ps-0.safetensors"), "VALUES"));
  MU_ASSERT_OK(run.Add(folder, absl::DataLossError("a checksum")));
  ASSERT_THAT(run.evaluations(), SizeIs(1));
  EXPECT_EQ(run.evaluations()[0].examples, 0u);
  EXPECT_THAT(Follow(&run), IsEmpty());
}

TEST_F(FollowedRunTest, OneThatLacksAFileIsADamagedCheckpoint) {
  Complete(1);
  End("done");
  FollowedRun run = Open();
  MU_ASSERT_OK_AND_ASSIGN(const std::string folder, run.Next(nullptr));
  EXPECT_THAT(run.Add(folder, absl::NotFoundError("the data is missing, not the checkpoint")),
              HasCode(absl::StatusCode::kNotFound));
  EXPECT_THAT(run.evaluations(), IsEmpty());
  MU_ASSERT_OK(RemoveFile(JoinPath(folder, "ps-0.safetensors")));
  EXPECT_THAT(run.Add(folder, absl::UnavailableError("a server was lost")),
              HasCode(absl::StatusCode::kUnavailable));
  MU_ASSERT_OK(run.Add(folder, absl::NotFoundError("is missing, which its manifest names")));
  ASSERT_THAT(run.evaluations(), SizeIs(1));
  EXPECT_EQ(run.evaluations()[0].examples, 0u);
  EXPECT_EQ(run.evaluations()[0].steps, 100u) << "the manifest is there";
  EXPECT_THAT(Follow(&run), IsEmpty());
}

TEST_F(FollowedRunTest, ADamagedManifestIsADamagedCheckpoint) {
  Complete(1);
  End("done");
  FollowedRun run = Open();
  MU_ASSERT_OK_AND_ASSIGN(const std::string folder, run.Next(nullptr));
  MU_ASSERT_OK(WriteFileAtomic(JoinPath(folder, kManifestName), "no manifest"));
  MU_ASSERT_OK(run.Add(folder, ReadManifest(folder).status()));
  EXPECT_THAT(run.evaluations(), SizeIs(1));
  EXPECT_THAT(Follow(&run), IsEmpty());
}

// Who looks for checkpoints first, and then whether the job is over, would miss it.
TEST_F(FollowedRunTest, TheLastOneComesWhileItIsAskedWhetherTheJobIsOver) {
  const std::string record = directory_->path() + "/job.json";
  ASSERT_EQ(::mkfifo(record.c_str(), 0600), 0);
  std::thread trains([&] {
    std::ofstream asked(record);  // waits until somebody reads it
    Complete(1);
    End("done");  // in the place of what is being read
    asked << ReadFile(record).value_or("");
  });
  FollowedRun run = Open();
  EXPECT_THAT(Follow(&run), ElementsAre(Name(1)));
  trains.join();
}

// The run deletes the newest first while this process takes hold of them, oldest first. Where they
// meet, one has been found and then lost its manifest.
TEST_F(FollowedRunTest, WhatIsLeftOfADeletedOneIsNotTaken) {
  constexpr int kMany = 100;
  Complete(1);
  bool met = false;
  for (int first = 2; !met && !HasFailure() && first < 20 * kMany; first += kMany) {
    const int last = first + kMany - 1;
    for (int number = first; number <= last; ++number) {
      std::filesystem::create_directory(Folder(number));
      for (const char* const file : {kManifestName, "ps-0.safetensors"})
        std::filesystem::create_hard_link(JoinPath(Folder(1), file),
                                          JoinPath(Folder(number), file));
    }
    const auto held = [&](int number) {
      return JoinPath(FollowedFolder(directory_->path()), Name(number));
    };
    FollowedRun run = Open();
    std::thread deletes([&] {
      testing::WaitWhile([&] { return !FileExists(held(first)); });
      for (int number = last; number > first; --number)
        MU_EXPECT_OK(RemoveFile(JoinPath(Folder(number), kManifestName)));
    });
    MU_EXPECT_OK(run.Next(nullptr).status());
    deletes.join();
    for (int number = first; number <= last; ++number) {
      const bool whole = FileExists(JoinPath(held(number), kManifestName));
      EXPECT_EQ(FileExists(held(number)), whole) << Name(number);
      met |= !whole;
    }
  }
  EXPECT_TRUE(met);
}

// On a full disk, say. The run does not keep it any more: nobody else has it.
TEST_F(FollowedRunTest, WhatCannotBeWrittenDownStaysToBeEvaluatedAgain) {
  Complete(1);
  End("done");
  const std::string record = directory_->path() + "/evaluations.json";
  {
    FollowedRun dies = Open();
    MU_ASSERT_OK_AND_ASSIGN(const std::string folder, dies.Next(nullptr));
    MU_ASSERT_OK(RemoveCheckpoint(Folder(1)));
    MU_ASSERT_OK(MakeDirectories(record + "/in its place"));
    EXPECT_FALSE(dies.Add(folder, Evaluation()).ok());
    EXPECT_TRUE(FileExists(JoinPath(folder, kManifestName)));
  }
  MU_ASSERT_OK(RemoveTree(record));
  FollowedRun run = Open();
  EXPECT_THAT(Follow(&run), ElementsAre(Name(1)));
}

// The best values were brought back at the end; functions that ran have changed them since.
TEST_F(FollowedRunTest, StepsAreThoseThatTheValuesHaveSeen) {
  TrainingHistory history;
  history.AddLoss(7, 0.5, 1);
  history.SetBroughtBack({.steps = 30, .epoch = 3});
  for (const int number : {1, 2, 3}) {
    Complete(number);
    MU_ASSERT_OK_AND_ASSIGN(pb::CheckpointProto manifest, ReadManifest(Folder(number)));
    if (number > 1) manifest.set_user_state(history.ToString());
    if (number == 3) manifest.mutable_position()->add_functions()->set_steps(1);
    MU_ASSERT_OK(WriteManifest(Folder(number), manifest));
  }
  End("done");
  FollowedRun run = Open();
  EXPECT_THAT(Follow(&run), SizeIs(3));
  std::vector<std::pair<uint64_t, uint32_t>> moments;
  for (const Evaluation& evaluation : run.evaluations())
    moments.emplace_back(evaluation.steps, evaluation.epoch);
  EXPECT_THAT(moments, ElementsAre(Pair(100u, 0u), Pair(30u, 3u), Pair(300u, 7u)));
}

TEST_F(FollowedRunTest, ARecordThatCannotBeReadIsRefused) {
  MU_ASSERT_OK(WriteFileAtomic(directory_->path() + "/evaluations.json", "[{"));
  EXPECT_THAT(FollowedRun(directory_->path() + "/checkpoints").Open().status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("remove it to evaluate all again")));
}

}  // namespace
}  // namespace mu
