#include "coordinator/training/kept_checkpoints.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/kept_checkpoint.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class KeptCheckpointsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(directory_);
    for (int i = 1; i <= 4; ++i) {
      MU_ASSERT_OK(MakeDirectories(Folder(i)));
      MU_ASSERT_OK(WriteManifest(Folder(i), {}));
    }
  }
  static std::string Name(int number) { return absl::StrCat("ckpt-0000000", number); }
  std::string Folder(int number) const { return JoinPath(directory_->path(), Name(number)); }
  std::vector<int> Marked() const {
    std::vector<int> marked;
    for (int i = 1; i <= 4; ++i) {
      if (IsKept(Folder(i))) marked.push_back(i);
    }
    return marked;
  }
  static TrainingHistory Pending(int number) {
    TrainingHistory history;
    history.SetPending(PendingEvaluation{number == 0 ? "" : Name(number), 10, 1});
    return history;
  }
  // As a checkpoint has it.
  static TrainingHistory OnDisk(const TrainingHistory& history) {
    return TrainingHistory::Parse(history.ToString());
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("muster-kept-checkpoints");
  KeptCheckpoints kept_{directory_->path()};
};

TEST_F(KeptCheckpointsTest, WhatIsNeededIsMarkedAndNothingElse) {
  MU_EXPECT_OK(kept_.Need({"", Name(2), Name(3), "ckpt-00000009"}, {}));
  EXPECT_THAT(Marked(), ElementsAre(2, 3));
  MU_EXPECT_OK(kept_.Need({Name(4)}, {}));
  EXPECT_THAT(Marked(), ElementsAre(4));
}

// What was evaluated is not needed any more, but a job that stopped now would evaluate it again.
TEST_F(KeptCheckpointsTest, WhatTheNewestOneNamesStaysUntilANewerOneDoesNot) {
  MU_EXPECT_OK(kept_.Need({Name(1)}, {}));
  MU_EXPECT_OK(kept_.Complete(OnDisk(Pending(1))));
  MU_EXPECT_OK(kept_.Need({}, {}));
  EXPECT_THAT(Marked(), ElementsAre(1));
  MU_EXPECT_OK(kept_.Complete(OnDisk(Pending(1)))) << "it was begun before the result was there";
  EXPECT_THAT(Marked(), ElementsAre(1));
  MU_EXPECT_OK(kept_.Complete(OnDisk(Pending(0)))) << "it asks for itself";
  EXPECT_THAT(Marked(), IsEmpty());
}

TEST_F(KeptCheckpointsTest, TheBestThatAJobGoesBackToStayAsLong) {
  TrainingHistory history;
  EarlyStopping stopping({.metric = "auc"});
  stopping.Observe(0.7, 10, Name(1));
  history.SetEarlyStopping(stopping);
  BestCheckpoints best({.metric = "auc", .count = 2});
  best.Offer({Name(2), 0.8, 20});
  best.Offer({Name(3), 0.9, 30});
  history.SetBest(best);
  MU_EXPECT_OK(kept_.Complete(OnDisk(history)));
  MU_EXPECT_OK(kept_.Need({}, {.of_early_stopping = true}));
  EXPECT_THAT(Marked(), ElementsAre(1));
  MU_EXPECT_OK(kept_.Need({}, {.of_keep_best = true}));
  EXPECT_THAT(Marked(), ElementsAre(2, 3));
  MU_EXPECT_OK(kept_.Need({}, {}));
  EXPECT_THAT(Marked(), IsEmpty()) << "nobody asks for them";
}

// A checkpoint may be taken before the job's options are known.
TEST_F(KeptCheckpointsTest, NoMarkGoesBeforeItIsKnownWhatIsNeeded) {
  MU_ASSERT_OK(MarkKept(Folder(2), true));
  MU_EXPECT_OK(kept_.Complete(TrainingHistory()));
  EXPECT_THAT(Marked(), ElementsAre(2));
  MU_EXPECT_OK(kept_.Need({}, {}));
  EXPECT_THAT(Marked(), IsEmpty());
}

TEST_F(KeptCheckpointsTest, AFolderThatIsNotThereIsNoError) {
  KeptCheckpoints none(JoinPath(directory_->path(), "none"));
  MU_EXPECT_OK(none.Need({Name(1)}, {}));
  EXPECT_THAT(Marked(), IsEmpty());
}

}  // namespace
}  // namespace mu
