// The rules of a checkpoint's commit, as transcripts of events and the actions that follow.
#include "coordinator/core/checkpoint_commit.h"

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

constexpr CheckpointNumber kOne{1}, kTwo{2};

class Transcript {
 public:
  void operator()(const std::string& event, const CheckpointCommit::Actions& actions) {
    absl::StrAppend(&text, event, "\n");
    for (const CheckpointAction& action : actions)
      absl::StrAppend(&text, "  ", ToString(action), "\n");
  }
  CheckpointCommit commit;
  std::string text = "\n";
};

TEST(CheckpointCommit, IsCompleteWhenEverythingIsWritten) {
  Transcript t;
  t("begin 1", t.commit.Begin(kOne, {0, 1}));
  t("begin 2", t.commit.Begin(kTwo, {0, 1}));
  t("position", t.commit.PositionTaken(kOne));
  t("saved 1", t.commit.Saved(kOne, 1));
  t("saved 1 again", t.commit.Saved(kOne, 1));
  t("saved 0", t.commit.Saved(kOne, 0));
  t("manifest", t.commit.ManifestWritten(kOne));
  t("manifest again", t.commit.ManifestWritten(kOne));
  EXPECT_EQ(t.text, R"(
begin 1
  checkpoint 1: take position
begin 2
  checkpoint 2: aborted, another checkpoint is being taken
position
  checkpoint 1: save server 0
  checkpoint 1: save server 1
saved 1
saved 1 again
saved 0
  checkpoint 1: write manifest
manifest
  checkpoint 1: committed
manifest again
)");
}

TEST(CheckpointCommit, CancelledFunctionsAbortWhileCutsMayBeTaken) {
  Transcript t;
  t("cancelled", t.commit.FunctionsCancelled());
  t("begin 1", t.commit.Begin(kOne, {0, 1}));
  t("position", t.commit.PositionTaken(kOne));
  t("saved 0", t.commit.Saved(kOne, 0));
  t("cancelled", t.commit.FunctionsCancelled());
  t("saved 1", t.commit.Saved(kOne, 1));
  t("begin 2", t.commit.Begin(kTwo, {0}));
  t("position", t.commit.PositionTaken(kTwo));
  t("saved 0", t.commit.Saved(kTwo, 0));
  t("cancelled", t.commit.FunctionsCancelled());
  t("manifest", t.commit.ManifestWritten(kTwo));
  EXPECT_EQ(t.text, R"(
cancelled
begin 1
  checkpoint 1: take position
position
  checkpoint 1: save server 0
  checkpoint 1: save server 1
saved 0
cancelled
  checkpoint 1: aborted, functions were cancelled meanwhile; take it again
saved 1
begin 2
  checkpoint 2: take position
position
  checkpoint 2: save server 0
saved 0
  checkpoint 2: write manifest
cancelled
manifest
  checkpoint 2: committed
)");
}

TEST(CheckpointCommit, ALossAtAnyPointAborts) {
  Transcript t;
  t("begin 1", t.commit.Begin(kOne, {0, 1}));
  t("lost 0", t.commit.ServerLost(0));
  t("position", t.commit.PositionTaken(kOne));
  t("begin 2", t.commit.Begin(kTwo, {0, 1}));
  t("position", t.commit.PositionTaken(kTwo));
  t("saved 0 of 1", t.commit.Saved(kOne, 0));
  t("saved 0", t.commit.Saved(kTwo, 0));
  t("saved 1", t.commit.Saved(kTwo, 1));
  t("lost 1", t.commit.ServerLost(1));
  t("manifest", t.commit.ManifestWritten(kTwo));
  t("lost 1 again", t.commit.ServerLost(1));
  EXPECT_EQ(t.text, R"(
begin 1
  checkpoint 1: take position
lost 0
  checkpoint 1: aborted, server 0 was lost meanwhile
position
begin 2
  checkpoint 2: take position
position
  checkpoint 2: save server 0
  checkpoint 2: save server 1
saved 0 of 1
saved 0
saved 1
  checkpoint 2: write manifest
lost 1
  checkpoint 2: aborted, server 1 was lost meanwhile
manifest
lost 1 again
)");
}

TEST(CheckpointCommit, AFailureAborts) {
  Transcript t;
  t("begin 1", t.commit.Begin(kOne, {0}));
  t("position", t.commit.PositionTaken(kOne));
  t("save failed", t.commit.SaveFailed(kOne, 0, absl::ResourceExhaustedError("the disk is full")));
  t("begin 2", t.commit.Begin(kTwo, {0}));
  t("position", t.commit.PositionTaken(kTwo));
  t("saved 0", t.commit.Saved(kTwo, 0));
  t("manifest failed",
    t.commit.ManifestFailed(kTwo, absl::ResourceExhaustedError("the disk is full")));
  EXPECT_EQ(t.text, R"(
begin 1
  checkpoint 1: take position
position
  checkpoint 1: save server 0
save failed
  checkpoint 1: aborted, the disk is full
begin 2
  checkpoint 2: take position
position
  checkpoint 2: save server 0
saved 0
  checkpoint 2: write manifest
manifest failed
  checkpoint 2: aborted, the disk is full
)");
}

TEST(CheckpointCommit, AnOlderCoordinatorCommitsNothing) {
  Transcript t;
  t("begin 1", t.commit.Begin(kOne, {0}));
  t("position", t.commit.PositionTaken(kOne));
  t("saved 0", t.commit.Saved(kOne, 0));
  t("superseded", t.commit.Superseded());
  t("manifest", t.commit.ManifestWritten(kOne));
  t("begin 2", t.commit.Begin(kTwo, {0}));
  EXPECT_EQ(t.text, R"(
begin 1
  checkpoint 1: take position
position
  checkpoint 1: save server 0
saved 0
  checkpoint 1: write manifest
superseded
  checkpoint 1: aborted, a newer coordinator has taken over
manifest
begin 2
  checkpoint 2: aborted, a newer coordinator has taken over
)");
}

}  // namespace
}  // namespace mu
