#include "coordinator/core/file_scan.h"

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::Pair;

const absl::Time kStart = absl::UnixEpoch();
const CallError kGone = CallError::Of(absl::UnavailableError("connection refused"));
const CallError kBroken =
    CallError::Of(WithKind(absl::InternalError("i/o error"), pb::ERROR_MACHINE, pb::ROLE_WORKER));

TEST(FileScan, FilesAreShared) {
  FileScan scan({3, 5, 8});
  EXPECT_THAT(
      scan.Begin({WorkerId(1), WorkerId(4)}, kStart),
      ElementsAre(Pair(WorkerId(1), ElementsAre(3u, 8u)), Pair(WorkerId(4), ElementsAre(5u))));
  for (const size_t file : {3, 5, 8}) {
    EXPECT_FALSE(scan.done());
    EXPECT_TRUE(scan.Counted(file, WorkerId(1), kStart));
  }
  EXPECT_TRUE(scan.done());
  EXPECT_EQ(scan.Pause(), absl::ZeroDuration());
}

TEST(FileScan, AnotherWorkerTriesWhatOneCouldNot) {
  FileScan scan({0, 1});
  const std::vector<WorkerId> workers = {WorkerId(0), WorkerId(1), WorkerId(2)};
  std::set<WorkerId> asked;
  for (int round = 0; round < 3; ++round) {
    for (const auto& [worker, files] : scan.Begin(workers, kStart)) {
      for (const size_t file : files) {
        if (file == 1) {
          asked.insert(worker);
          MU_EXPECT_OK(scan.Failed(file, worker, kBroken, kStart));
        }
      }
    }
    scan.Counted(0, WorkerId(0), kStart);
  }
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_THAT(scan.Begin({WorkerId(1)}, kStart), ElementsAre(Pair(WorkerId(1), ElementsAre(1u))))
      << "whoever is left is asked again";
}

TEST(FileScan, TenAnswersAreEnoughForOneFile) {
  FileScan scan({0, 1});
  for (int i = 0; i < 9; ++i) {
    MU_EXPECT_OK(scan.Failed(0, WorkerId(0), kBroken, kStart));
    MU_EXPECT_OK(scan.Failed(1, WorkerId(0), kBroken, kStart)) << "each by itself";
  }
  EXPECT_THAT(scan.Failed(1, WorkerId(0), kBroken, kStart), HasCode(absl::StatusCode::kInternal));
}

TEST(FileScan, WorkersThatAreLostAreNobodysFault) {
  FileScan scan({0});
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(scan.Begin({WorkerId(0)}, kStart).size(), 1u);
    ASSERT_TRUE(scan.Failed(0, WorkerId(0), kGone, kStart).ok());
    ASSERT_GE(scan.Pause(), absl::Milliseconds(50)) << "but they are not asked without a pause";
    ASSERT_LE(scan.Pause(), absl::Seconds(5));
  }
}

TEST(FileScan, WhatIsTheUsersFaultIsToldAtOnce) {
  FileScan scan({0});
  const CallError wrong = CallError::Of(
      WithKind(absl::InvalidArgumentError("no column 'id'"), pb::ERROR_USER, pb::ROLE_WORKER));
  EXPECT_THAT(scan.Failed(0, WorkerId(0), wrong, kStart),
              HasCode(absl::StatusCode::kInvalidArgument));
}

class FileScanSilence : public ::testing::Test {
 protected:
  // As "1 has 2 files from 3 for 30s".
  std::vector<std::string> Silent() {
    std::vector<std::string> texts;
    for (const FileScan::Silence& silence : scan_.Silent(now_)) {
      texts.push_back(absl::StrCat(silence.worker.value(), " has ", silence.files, " files from ",
                                   silence.first, " for ", absl::FormatDuration(silence.lasts)));
    }
    return texts;
  }
  FileScan scan_{{3, 5, 8}};
  absl::Time now_ = kStart;
};

TEST_F(FileScanSilence, AWorkerWithoutAnAnswerIsReportedLessAndLess) {
  scan_.Begin({WorkerId(1), WorkerId(4)}, now_);  // 1: 3 and 8, 4: 5
  now_ += absl::Seconds(29);
  EXPECT_THAT(Silent(), ElementsAre());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Silent(),
              ElementsAre("1 has 2 files from 3 for 30s", "4 has 1 files from 5 for 30s"));
  EXPECT_THAT(Silent(), ElementsAre()) << "that was said";
  EXPECT_TRUE(scan_.Counted(3, WorkerId(1), now_));
  now_ += absl::Seconds(29);
  EXPECT_THAT(Silent(), ElementsAre());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Silent(), ElementsAre("1 has 1 files from 8 for 30s", "4 has 1 files from 5 for 1m"));
  now_ += absl::Seconds(59);
  EXPECT_THAT(Silent(), ElementsAre("1 has 1 files from 8 for 1m29s"));
  now_ += absl::Seconds(1);
  EXPECT_THAT(Silent(), ElementsAre("4 has 1 files from 5 for 2m"));
}

TEST_F(FileScanSilence, WhoHasNothingToDoHelps) {
  scan_.Begin({WorkerId(1), WorkerId(4), WorkerId(6)}, now_);  // one each
  EXPECT_TRUE(scan_.Counted(5, WorkerId(4), now_));
  now_ += absl::Seconds(29);
  EXPECT_THAT(scan_.Help(now_), ElementsAre()) << "others may just have longer files";
  now_ += absl::Seconds(1);
  EXPECT_THAT(scan_.Help(now_), ElementsAre(Pair(WorkerId(4), 3u)));
  EXPECT_THAT(scan_.Help(now_), ElementsAre()) << "6 has its own";
  EXPECT_TRUE(scan_.Counted(3, WorkerId(4), now_));
  EXPECT_THAT(scan_.Help(now_), ElementsAre(Pair(WorkerId(4), 8u)));
  EXPECT_TRUE(scan_.Counted(8, WorkerId(6), now_));
  EXPECT_TRUE(scan_.done());
  EXPECT_FALSE(scan_.Counted(8, WorkerId(4), now_)) << "the first answer counts";
  MU_EXPECT_OK(scan_.Failed(3, WorkerId(1), kBroken, now_)) << "nobody needs it";
  EXPECT_TRUE(scan_.done());
}

TEST_F(FileScanSilence, WhoHasFailedWithAFileDoesNotHelpWithIt) {
  scan_.Begin({WorkerId(1), WorkerId(4), WorkerId(6)}, now_);
  now_ += FileScan::kPatience;
  EXPECT_TRUE(scan_.Counted(5, WorkerId(4), now_));
  EXPECT_TRUE(scan_.Counted(8, WorkerId(6), now_));
  EXPECT_THAT(scan_.Help(now_), ElementsAre(Pair(WorkerId(4), 3u))) << "one is enough";
  MU_EXPECT_OK(scan_.Failed(3, WorkerId(4), kBroken, now_));
  EXPECT_THAT(scan_.Help(now_), ElementsAre(Pair(WorkerId(6), 3u)));
  MU_EXPECT_OK(scan_.Failed(3, WorkerId(6), kBroken, now_));
  EXPECT_THAT(scan_.Help(now_), ElementsAre());
}

}  // namespace
}  // namespace mu
