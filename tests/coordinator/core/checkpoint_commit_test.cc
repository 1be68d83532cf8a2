// The rules of a checkpoint's commit, as transcripts of events and what follows.
#include "coordinator/core/checkpoint_commit.h"

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

constexpr CheckpointNumber kOne{1}, kTwo{2};
const absl::Status kOk;
const absl::Status kFull = absl::ResourceExhaustedError("the disk is full");

std::string ToString(const CheckpointAction& action) {
  using Kind = CheckpointAction::Kind;
  const std::string name = absl::StrCat("checkpoint ", action.checkpoint.value());
  switch (action.kind) {
    case Kind::kSave:
      return absl::StrCat(name, ": save");
    case Kind::kWriteManifest:
      return absl::StrCat(name, ": write manifest");
    case Kind::kCommitted:
      return absl::StrCat(name, ": committed");
    case Kind::kAborted:
      return absl::StrCat(name, ": aborted, ", std::string(action.reason.message()));
  }
  return "?";
}

class Transcript {
 public:
  void operator()(const std::string& event, const CheckpointCommit::Next& next) {
    absl::StrAppend(&text, event, "\n");
    if (next.has_value()) absl::StrAppend(&text, "  ", ToString(*next), "\n");
  }
  CheckpointCommit commit;
  std::string text = "\n";
};

TEST(CheckpointCommit, IsCompleteWhenEverythingIsWritten) {
  Transcript t;
  t("begin 1", t.commit.Begin(kOne));
  t("saved", t.commit.Saved(kOne, kOk));
  t("saved again", t.commit.Saved(kOne, kOk));
  t("manifest", t.commit.ManifestWritten(kOne, kOk));
  t("manifest again", t.commit.ManifestWritten(kOne, kOk));
  EXPECT_EQ(t.text, R"(
begin 1
  checkpoint 1: save
saved
  checkpoint 1: write manifest
saved again
manifest
  checkpoint 1: committed
manifest again
)");
}

// While servers save, cuts may still be taken: what happens then ends the checkpoint. Before and
// afterwards it does not.
void ExpectAbortedWhileServersSave(CheckpointCommit::Next (CheckpointCommit::*happens)(),
                                   const std::string& reason) {
  Transcript t;
  t("happens", (t.commit.*happens)());
  t("begin 1", t.commit.Begin(kOne));
  t("happens", (t.commit.*happens)());
  t("saved", t.commit.Saved(kOne, kOk));
  t("begin 2", t.commit.Begin(kTwo));
  t("saved", t.commit.Saved(kTwo, kOk));
  t("happens", (t.commit.*happens)());
  t("manifest", t.commit.ManifestWritten(kTwo, kOk));
  EXPECT_EQ(t.text, absl::StrCat(R"(
happens
begin 1
  checkpoint 1: save
happens
  checkpoint 1: aborted, )",
                                 reason, R"(
saved
begin 2
  checkpoint 2: save
saved
  checkpoint 2: write manifest
happens
manifest
  checkpoint 2: committed
)"));
}

TEST(CheckpointCommit, CancelledFunctionsAbortWhileCutsMayBeTaken) {
  ExpectAbortedWhileServersSave(&CheckpointCommit::FunctionsCancelled,
                                "functions were cancelled meanwhile; take it again");
}

TEST(CheckpointCommit, ALeaveAbortsWhileServersSave) {
  ExpectAbortedWhileServersSave(&CheckpointCommit::ServerLeaves,
                                "a server leaves meanwhile; take it again");
}

TEST(CheckpointCommit, ALossAtAnyPointAborts) {
  Transcript t;
  t("begin 1", t.commit.Begin(kOne));
  t("lost 0", t.commit.ServerLost(0));
  t("begin 2", t.commit.Begin(kTwo));
  t("saved 1", t.commit.Saved(kOne, kOk));
  t("saved 1 failed", t.commit.Saved(kOne, kFull));
  t("manifest of 1", t.commit.ManifestWritten(kOne, kOk));
  t("manifest too early", t.commit.ManifestWritten(kTwo, kOk));
  t("saved 2", t.commit.Saved(kTwo, kOk));
  t("lost 1", t.commit.ServerLost(1));
  t("manifest", t.commit.ManifestWritten(kTwo, kOk));
  t("lost 1 again", t.commit.ServerLost(1));
  EXPECT_EQ(t.text, R"(
begin 1
  checkpoint 1: save
lost 0
  checkpoint 1: aborted, server 0 was lost meanwhile
begin 2
  checkpoint 2: save
saved 1
saved 1 failed
manifest of 1
manifest too early
saved 2
  checkpoint 2: write manifest
lost 1
  checkpoint 2: aborted, server 1 was lost meanwhile
manifest
lost 1 again
)");
}

TEST(CheckpointCommit, AFailureAborts) {
  Transcript t;
  t("begin 1", t.commit.Begin(kOne));
  t("save failed", t.commit.Saved(kOne, kFull));
  t("begin 2", t.commit.Begin(kTwo));
  t("saved", t.commit.Saved(kTwo, kOk));
  t("manifest failed", t.commit.ManifestWritten(kTwo, kFull));
  EXPECT_EQ(t.text, R"(
begin 1
  checkpoint 1: save
save failed
  checkpoint 1: aborted, the disk is full
begin 2
  checkpoint 2: save
saved
  checkpoint 2: write manifest
manifest failed
  checkpoint 2: aborted, the disk is full
)");
}

TEST(CheckpointCommit, AnOlderCoordinatorCommitsNothing) {
  Transcript t;
  t("begin 1", t.commit.Begin(kOne));
  t("saved", t.commit.Saved(kOne, kOk));
  t("superseded", t.commit.Superseded());
  t("manifest", t.commit.ManifestWritten(kOne, kOk));
  t("begin 2", t.commit.Begin(kTwo));
  EXPECT_EQ(t.text, R"(
begin 1
  checkpoint 1: save
saved
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
