#include "coordinator/core/file_scan.h"

#include "common/base/error_kind.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::Pair;

const CallError kGone = CallError::Of(absl::UnavailableError("connection refused"));
const CallError kBroken =
    CallError::Of(WithKind(absl::InternalError("i/o error"), pb::ERROR_MACHINE, pb::ROLE_WORKER));

TEST(FileScan, FilesAreShared) {
  FileScan scan({3, 5, 8});
  EXPECT_THAT(
      scan.Begin({WorkerId(1), WorkerId(4)}),
      ElementsAre(Pair(WorkerId(1), ElementsAre(3u, 8u)), Pair(WorkerId(4), ElementsAre(5u))));
  for (const size_t file : {3, 5, 8}) {
    EXPECT_FALSE(scan.done());
    scan.Counted(file);
  }
  EXPECT_TRUE(scan.done());
  EXPECT_EQ(scan.Pause(), absl::ZeroDuration());
}

TEST(FileScan, AnotherWorkerTriesWhatOneCouldNot) {
  FileScan scan({0, 1});
  const std::vector<WorkerId> workers = {WorkerId(0), WorkerId(1), WorkerId(2)};
  std::set<WorkerId> asked;
  for (int round = 0; round < 3; ++round) {
    for (const auto& [worker, files] : scan.Begin(workers)) {
      for (const size_t file : files) {
        if (file == 1) {
          asked.insert(worker);
          MU_EXPECT_OK(scan.Failed(file, worker, kBroken));
        }
      }
    }
    scan.Counted(0);
  }
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_THAT(scan.Begin({WorkerId(1)}), ElementsAre(Pair(WorkerId(1), ElementsAre(1u))))
      << "whoever is left is asked again";
}

TEST(FileScan, TenAnswersAreEnoughForOneFile) {
  FileScan scan({0, 1});
  for (int i = 0; i < 9; ++i) {
    MU_EXPECT_OK(scan.Failed(0, WorkerId(0), kBroken));
    MU_EXPECT_OK(scan.Failed(1, WorkerId(0), kBroken)) << "each by itself";
  }
  EXPECT_THAT(scan.Failed(1, WorkerId(0), kBroken), HasCode(absl::StatusCode::kInternal));
}

TEST(FileScan, WorkersThatAreLostAreNobodysFault) {
  FileScan scan({0});
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(scan.Begin({WorkerId(0)}).size(), 1u);
    ASSERT_TRUE(scan.Failed(0, WorkerId(0), kGone).ok());
    ASSERT_GE(scan.Pause(), absl::Milliseconds(50)) << "but they are not asked without a pause";
    ASSERT_LE(scan.Pause(), absl::Seconds(5));
  }
}

TEST(FileScan, WhatIsTheUsersFaultIsToldAtOnce) {
  FileScan scan({0});
  const CallError wrong = CallError::Of(
      WithKind(absl::InvalidArgumentError("no column 'id'"), pb::ERROR_USER, pb::ROLE_WORKER));
  EXPECT_THAT(scan.Failed(0, WorkerId(0), wrong), HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace mu
