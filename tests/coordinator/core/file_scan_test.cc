#include "coordinator/core/file_scan.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/error_kind.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;

const CallError kGone = CallError::Of(absl::UnavailableError("connection refused"));
const CallError kBroken =
    CallError::Of(WithKind(absl::InternalError("i/o error"), pb::ERROR_MACHINE, pb::ROLE_WORKER));
constexpr absl::Duration kPatience = absl::Seconds(30);

class FileScanTest : public ::testing::Test {
 protected:
  // As "1: 3 8; 4 helps: 5".
  std::string Give(const std::vector<uint32_t>& workers) {
    std::vector<WorkerId> ids;
    for (const uint32_t worker : workers) ids.emplace_back(worker);
    std::vector<std::string> texts;
    for (const FileScan::Given& given : scan_.Give(ids, now_)) {
      texts.push_back(absl::StrCat(given.worker.value(), given.helps ? " helps: " : ": ",
                                   absl::StrJoin(given.files, " ")));
    }
    return absl::StrJoin(texts, "; ");
  }
  bool Counted(uint32_t file, uint32_t worker) {
    return scan_.Counted(file, WorkerId(worker), now_);
  }
  absl::Status Failed(uint32_t file, uint32_t worker, const CallError& error = kBroken) {
    return scan_.Failed(file, WorkerId(worker), error, now_);
  }
  // Until the pause after a failure is over; how long it was.
  absl::Duration Pause() {
    const absl::Time alarm = scan_.alarm(now_);
    EXPECT_LT(alarm, absl::InfiniteFuture());
    return alarm - std::exchange(now_, alarm);
  }
  // As "1 has 2 files from 3 for 30s".
  std::vector<std::string> Silent() {
    std::vector<std::string> texts;
    for (const FileScan::Silence& silence : scan_.Silent(now_)) {
      texts.push_back(absl::StrCat(silence.worker.value(), " has ", silence.files, " files from ",
                                   silence.first, " for ", absl::FormatDuration(silence.lasts)));
    }
    return texts;
  }

  FileScan scan_{{3, 5, 8}, kPatience};
  absl::Time now_ = absl::UnixEpoch();
};

// A worker has a thread for each file that it looks through.
TEST(FileScan, AWorkerHasAFewAtOnce) {
  std::vector<uint32_t> files(20);
  std::iota(files.begin(), files.end(), 0u);
  FileScan scan(files, kPatience);
  absl::Time now = absl::UnixEpoch();
  const auto give = [&] {
    std::vector<std::string> texts;
    for (const FileScan::Given& given : scan.Give({WorkerId(1), WorkerId(4)}, now))
      texts.push_back(absl::StrCat(given.worker.value(), ": ", absl::StrJoin(given.files, " ")));
    return absl::StrJoin(texts, "; ");
  };
  EXPECT_EQ(give(), "1: 0 2 4 6 8 10 12 14; 4: 1 3 5 7 9 11 13 15");
  EXPECT_EQ(give(), "") << "both have enough";
  EXPECT_TRUE(scan.Counted(7, WorkerId(4), now));
  EXPECT_EQ(give(), "4: 16");
  MU_ASSERT_OK(scan.Failed(0, WorkerId(1), kBroken, now));
  now += absl::Seconds(1);
  EXPECT_EQ(give(), "1: 17") << "the other one may count 0";
}

TEST_F(FileScanTest, FilesAreShared) {
  EXPECT_EQ(Give({}), "") << "nobody is there yet";
  EXPECT_EQ(scan_.alarm(now_), absl::InfiniteFuture()) << "nor is there anything to wait for";
  EXPECT_EQ(Give({1, 4}), "1: 3 8; 4: 5");
  EXPECT_EQ(Give({1, 4}), "") << "that is under way";
  for (const uint32_t file : {3, 5, 8}) {
    EXPECT_FALSE(scan_.done());
    EXPECT_TRUE(Counted(file, 1));
  }
  EXPECT_TRUE(scan_.done());
  EXPECT_EQ(Give({1, 4}), "");
}

TEST_F(FileScanTest, AnotherWorkerTriesWhatOneCouldNot) {
  EXPECT_EQ(Give({0, 1, 2}), "0: 3; 1: 5; 2: 8");
  MU_EXPECT_OK(Failed(5, 1));
  EXPECT_EQ(Give({0, 1, 2}), "") << "not at once";
  Pause();
  EXPECT_EQ(Give({0, 1, 2}), "0: 5");
  MU_EXPECT_OK(Failed(5, 0));
  Pause();
  EXPECT_EQ(Give({0, 1, 2}), "2: 5");
  MU_EXPECT_OK(Failed(5, 2));
  Pause();
  EXPECT_EQ(Give({1}), "1: 5") << "whoever is left is asked again";
}

TEST_F(FileScanTest, TenAnswersAreEnoughForOneFile) {
  for (int i = 0; i < 9; ++i) {
    MU_EXPECT_OK(Failed(3, 0));
    MU_EXPECT_OK(Failed(5, 0)) << "each by itself";
  }
  EXPECT_THAT(Failed(5, 0), HasCode(absl::StatusCode::kInternal));
}

TEST_F(FileScanTest, WhatAWorkerReturnsIsNoAnswer) {
  Counted(5, 0);
  Counted(8, 0);
  std::vector<uint32_t> workers;
  for (uint32_t worker = 0; worker < 12; ++worker) workers.push_back(worker);
  for (const uint32_t worker : workers) {
    ASSERT_EQ(Give(workers), absl::StrCat(worker, ": 3"));
    scan_.Returned(3, WorkerId(worker), now_);
    ASSERT_EQ(Give(workers), "") << "not at once";
    Pause();
  }
  for (int i = 0; i < 9; ++i) MU_EXPECT_OK(Failed(3, 0));
  EXPECT_THAT(Failed(3, 0), HasCode(absl::StatusCode::kInternal));
  scan_.Returned(5, WorkerId(0), now_);  // which another worker has counted
}

TEST_F(FileScanTest, WorkersThatAreLostAreNobodysFault) {
  Counted(5, 0);
  Counted(8, 0);
  absl::Duration longest = absl::Milliseconds(50);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(Give({0}), "0: 3");
    if (i % 2 == 0) {
      ASSERT_TRUE(Failed(3, 0, kGone).ok());
    } else {
      scan_.WorkerLost(WorkerId(0), now_);
    }
    ASSERT_EQ(Give({0}), "") << "but they are not asked without a pause";
    const absl::Duration pause = Pause();
    longest = std::min(2 * longest, absl::Seconds(5));
    ASSERT_GE(pause, longest / 2);
    ASSERT_LE(pause, longest);
  }
}

TEST_F(FileScanTest, ALostWorkersFilesAreOthers) {
  EXPECT_EQ(Give({1, 4}), "1: 3 8; 4: 5");
  scan_.WorkerLost(WorkerId(1), now_);
  scan_.WorkerLost(WorkerId(7), now_);  // which has nothing
  Pause();
  EXPECT_LT(Pause(), absl::Milliseconds(50)) << "the other file, not at the same moment";
  EXPECT_EQ(Give({4}), "4: 3 8");
  EXPECT_THAT(Silent(), ElementsAre());
  now_ += kPatience;
  EXPECT_THAT(Silent(), ElementsAre(::testing::StartsWith("4 has 3 files from 3 for 30.")))
      << "the lost one is gone";
}

TEST_F(FileScanTest, WhatIsTheUsersFaultIsToldAtOnce) {
  const CallError wrong = CallError::Of(
      WithKind(absl::InvalidArgumentError("no column 'id'"), pb::ERROR_USER, pb::ROLE_WORKER));
  EXPECT_THAT(Failed(3, 0, wrong), HasCode(absl::StatusCode::kInvalidArgument));
}

TEST_F(FileScanTest, AWorkerWithoutAnAnswerIsReportedLessAndLess) {
  Give({1, 4});  // 1: 3 and 8, 4: 5
  now_ += absl::Seconds(29);
  EXPECT_THAT(Silent(), ElementsAre());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Silent(),
              ElementsAre("1 has 2 files from 3 for 30s", "4 has 1 files from 5 for 30s"));
  EXPECT_THAT(Silent(), ElementsAre()) << "that was said";
  EXPECT_TRUE(Counted(3, 1));
  now_ += absl::Seconds(29);
  EXPECT_THAT(Silent(), ElementsAre());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Silent(), ElementsAre("1 has 1 files from 8 for 30s", "4 has 1 files from 5 for 1m"));
  now_ += absl::Seconds(59);
  EXPECT_THAT(Silent(), ElementsAre("1 has 1 files from 8 for 1m29s"));
  now_ += absl::Seconds(1);
  EXPECT_THAT(Silent(), ElementsAre("4 has 1 files from 5 for 2m"));
}

TEST_F(FileScanTest, WhoHasNothingToDoHelps) {
  Give({1, 4, 6});  // one each
  EXPECT_TRUE(Counted(5, 4));
  now_ += absl::Seconds(29);
  EXPECT_EQ(Give({1, 4, 6}), "") << "others may just have longer files";
  now_ += absl::Seconds(1);
  EXPECT_EQ(Give({1, 4, 6}), "4 helps: 3");
  EXPECT_EQ(Give({1, 4, 6}), "") << "6 has its own";
  EXPECT_TRUE(Counted(3, 4));
  EXPECT_EQ(Give({1, 4, 6}), "4 helps: 8") << "1, which hangs, does not";
  EXPECT_TRUE(Counted(8, 6));
  EXPECT_TRUE(scan_.done());
  EXPECT_FALSE(Counted(8, 4)) << "the first answer counts";
  MU_EXPECT_OK(Failed(3, 1)) << "nobody needs it";
  EXPECT_TRUE(scan_.done());
}

TEST_F(FileScanTest, OneHelperIsEnough) {
  Give({1, 4, 6});
  now_ += kPatience;
  EXPECT_TRUE(Counted(5, 4));
  EXPECT_TRUE(Counted(8, 6));
  EXPECT_EQ(Give({1, 4, 6}), "4 helps: 3");
  EXPECT_EQ(Give({1, 4, 6}), "") << "6 need not help as well";
  MU_EXPECT_OK(Failed(3, 4));
  EXPECT_EQ(Give({1, 4, 6}), "6 helps: 3") << "4 has failed with it";
  now_ += kPatience;
  EXPECT_EQ(Give({1, 2, 4, 6}), "2 helps: 3") << "6 hangs as well";
  MU_EXPECT_OK(Failed(3, 6));
  MU_EXPECT_OK(Failed(3, 1));
  EXPECT_EQ(scan_.alarm(now_), absl::InfiniteFuture()) << "2 looks through it";
  MU_EXPECT_OK(Failed(3, 2));
  Pause();
  EXPECT_NE(Give({1, 2, 4, 6}), "");
}

}  // namespace
}  // namespace mu
