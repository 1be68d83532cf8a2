#include "coordinator/core/resume_search.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::StatusIs;
using Next = ResumeSearch::Next;

const absl::Status kDamaged = absl::DataLossError("a file is damaged");
const absl::Status kGone = absl::NotFoundError("a file is missing");
const absl::Status kOutOfReach = absl::UnavailableError("no answer");

class ResumeSearchTest : public ::testing::Test {
 protected:
  // The manifest of the folder is good, and of this epoch.
  Next Read(uint64_t epoch = 5) { return search_.Read(absl::OkStatus(), CoordinatorEpoch(epoch)); }

  ResumeSearch search_{"/job", CoordinatorEpoch(4)};
};

TEST_F(ResumeSearchTest, TheNewestGoesFirst) {
  EXPECT_EQ(search_.Listed({{"1", "2"}}), Next::kRead);
  EXPECT_EQ(search_.folder(), "2");
  EXPECT_EQ(Read(), Next::kLoad);
  EXPECT_EQ(search_.Loaded(absl::OkStatus()), Next::kResume);
  EXPECT_EQ(search_.folder(), "2");
}

TEST_F(ResumeSearchTest, WithoutCheckpointsItBeginsAnew) {
  EXPECT_EQ(search_.Listed(std::vector<std::string>()), Next::kFresh);
  EXPECT_THAT(search_.error(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("in /job")));
}

TEST_F(ResumeSearchTest, AFolderThatIsNotThereHoldsNone) {
  EXPECT_EQ(search_.Listed(absl::NotFoundError("/job")), Next::kFresh);
}

// Otherwise a job whose disk is away for a moment would begin anew.
TEST_F(ResumeSearchTest, AFolderThatCannotBeReadIsNotAnEmptyOne) {
  EXPECT_EQ(search_.Listed(absl::PermissionDeniedError("/job")), Next::kFail);
  EXPECT_THAT(search_.error(), HasCode(absl::StatusCode::kPermissionDenied));
}

TEST_F(ResumeSearchTest, CheckpointsOfAnotherRunAreNotLookedAt) {
  search_.Listed({{"1", "2"}});
  EXPECT_EQ(Read(3), Next::kFresh) << "older ones are of another run as well";
  EXPECT_THAT(search_.error(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("of this run")));
}

TEST_F(ResumeSearchTest, TheRunsFirstCheckpointIsItsOwn) {
  search_.Listed({{"1"}});
  EXPECT_EQ(Read(4), Next::kLoad);
}

TEST_F(ResumeSearchTest, ADamagedOneIsSkipped) {
  for (const absl::Status& damage : {kDamaged, kGone}) {
    search_ = {"/job", CoordinatorEpoch(4)};
    search_.Listed({{"1", "2", "3"}});
    EXPECT_EQ(search_.Read(damage, CoordinatorEpoch()), Next::kSkip) << damage;
    EXPECT_EQ(search_.folder(), "3");
    EXPECT_EQ(search_.error(), damage);
    EXPECT_EQ(search_.Older(), Next::kRead);
    EXPECT_EQ(search_.folder(), "2");
    Read();
    EXPECT_EQ(search_.Loaded(damage), Next::kSkip) << damage;
    EXPECT_EQ(search_.Older(), Next::kRead);
    EXPECT_EQ(search_.folder(), "1");
    Read();
    EXPECT_EQ(search_.Loaded(absl::OkStatus()), Next::kResume);
  }
}

// It has run, so it must not begin anew by itself.
TEST_F(ResumeSearchTest, WithoutAGoodOneItFails) {
  search_.Listed({{"1", "2"}});
  search_.Read(kDamaged, CoordinatorEpoch());
  search_.Older();
  Read();
  search_.Loaded(absl::DataLossError("the last"));
  EXPECT_EQ(search_.Older(), Next::kFail);
  EXPECT_THAT(search_.error(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the last")));
}

TEST_F(ResumeSearchTest, WithoutAGoodOneOfThisRunItFails) {
  search_.Listed({{"1", "2"}});
  search_.Read(kDamaged, CoordinatorEpoch());
  search_.Older();
  EXPECT_EQ(Read(3), Next::kFail);
  EXPECT_THAT(search_.error(), HasCode(absl::StatusCode::kDataLoss));
}

// An older one would cost steps that a later try may keep.
TEST_F(ResumeSearchTest, WhatMayPassSkipsNothing) {
  search_.Listed({{"1", "2"}});
  EXPECT_EQ(search_.Read(kOutOfReach, CoordinatorEpoch()), Next::kFail);
  search_ = {"/job", CoordinatorEpoch(4)};
  search_.Listed({{"1", "2"}});
  Read();
  EXPECT_EQ(search_.Loaded(kOutOfReach), Next::kFail);
  EXPECT_EQ(search_.error(), kOutOfReach);
}

// Data that is not found, say, which is no fault of the checkpoint's.
TEST_F(ResumeSearchTest, OneThatDoesNotFitEndsTheSearch) {
  search_.Listed({{"1", "2"}});
  Read();
  EXPECT_EQ(search_.Unfit(kGone), Next::kFail);
  EXPECT_EQ(search_.error(), kGone);
}

}  // namespace
}  // namespace mu
