#include "coordinator/core/input_complaints.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Verdict = InputComplaints::Verdict;

constexpr uint64_t kTrain = 1, kEval = 2;

class InputComplaintsTest : public ::testing::Test {
 protected:
  void Join(uint32_t workers) {
    for (uint32_t w = 0; w < workers; ++w) inputs_.WorkerJoined(WorkerId(w));
  }
  Verdict Missing(uint32_t worker, uint32_t file = 0, uint64_t dataset = kTrain) {
    return inputs_.Missing(WorkerId(worker), dataset, file);
  }
  Verdict Broken(uint32_t worker) { return inputs_.Broken(WorkerId(worker)); }
  bool Aside(uint32_t worker) { return inputs_.IsAside(WorkerId(worker)); }

  InputComplaints inputs_;
};

TEST_F(InputComplaintsTest, AWorkerThatAloneOfSeveralSeesNothingIsSetAsideOnce) {
  Join(2);
  EXPECT_EQ(Missing(0), Verdict::kSetAside);
  EXPECT_TRUE(Aside(0));
  EXPECT_FALSE(Aside(1));
  EXPECT_EQ(Missing(0), Verdict::kTryElsewhere) << "what it was doing as well";
  EXPECT_EQ(Missing(0, 1), Verdict::kTryElsewhere);
  EXPECT_EQ(Missing(0, 0, kEval), Verdict::kTryElsewhere);
  EXPECT_EQ(Broken(0), Verdict::kTryElsewhere);
  EXPECT_THAT(inputs_.Pardoned(), IsEmpty());
}

TEST_F(InputComplaintsTest, AllOfTwoOrThreeOfManyMakeTheInputWrong) {
  for (const uint32_t workers : {2u, 3u, 4u, 100u}) {
    SCOPED_TRACE(workers);
    inputs_ = {};
    Join(workers);
    const uint32_t needed = std::min(workers, 3u);
    for (uint32_t w = 0; w + 1 < needed; ++w) EXPECT_EQ(Missing(w), Verdict::kSetAside);
    EXPECT_EQ(Missing(needed - 1), Verdict::kInputWrong);
    std::vector<WorkerId> pardoned;
    for (uint32_t w = 0; w + 1 < needed; ++w) pardoned.push_back(WorkerId(w));
    EXPECT_EQ(inputs_.Pardoned(), pardoned) << "they are well";
    EXPECT_THAT(inputs_.Pardoned(), IsEmpty());
    for (uint32_t w = 0; w < workers; ++w) EXPECT_FALSE(Aside(w));
    EXPECT_EQ(Missing(0), Verdict::kSetAside) << "what was said has been said";
  }
}

TEST_F(InputComplaintsTest, TheSameWorkerSaysSoOnce) {
  Join(3);
  EXPECT_EQ(Missing(0), Verdict::kSetAside);
  EXPECT_EQ(Missing(0), Verdict::kTryElsewhere);
  EXPECT_EQ(Missing(0), Verdict::kTryElsewhere);
  EXPECT_EQ(Missing(1), Verdict::kSetAside);
  EXPECT_FALSE(Aside(2));
}

TEST_F(InputComplaintsTest, WhatSomebodyHasReadIsNotWrong) {
  Join(4);
  inputs_.Read(kTrain, 0);
  for (uint32_t w = 0; w < 3; ++w) EXPECT_EQ(Missing(w), Verdict::kSetAside);
  EXPECT_EQ(Missing(3), Verdict::kNoneLeft);
  EXPECT_TRUE(Aside(3));
  EXPECT_THAT(inputs_.Pardoned(), IsEmpty());
}

TEST_F(InputComplaintsTest, AnotherFileOrDatasetThatWasReadSaysNothing) {
  Join(2);
  inputs_.Read(kTrain, 1);
  inputs_.Read(kEval, 0);
  EXPECT_EQ(Missing(0), Verdict::kSetAside);
  EXPECT_EQ(Missing(1), Verdict::kInputWrong);
}

TEST_F(InputComplaintsTest, AWorkerThatIsAloneTriesThreeTimes) {
  Join(1);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Missing(0), Verdict::kTryAgain);
    EXPECT_EQ(Missing(0), Verdict::kTryAgain);
    EXPECT_FALSE(Aside(0));
    EXPECT_EQ(Missing(0), Verdict::kInputWrong);
    EXPECT_FALSE(Aside(0));
  }
  inputs_.Read(kTrain, 0);
  EXPECT_EQ(Missing(0), Verdict::kTryAgain);
  EXPECT_EQ(Missing(0), Verdict::kTryAgain);
  EXPECT_EQ(Missing(0), Verdict::kNoneLeft) << "it was there once";
}

TEST_F(InputComplaintsTest, TriesAreCountedByFile) {
  Join(1);
  for (uint32_t file = 0; file < 10; ++file) EXPECT_EQ(Missing(0, file), Verdict::kTryAgain);
}

// Two files, each looked at by one worker: both have spoken, of different files.
TEST_F(InputComplaintsTest, AllWorkersMayLackDifferentFilesOfADataset) {
  Join(3);
  EXPECT_EQ(Missing(0, 0), Verdict::kSetAside);
  EXPECT_EQ(Missing(1, 1), Verdict::kSetAside);
  EXPECT_EQ(Missing(2, 2), Verdict::kInputWrong);
  EXPECT_THAT(inputs_.Pardoned(), ElementsAre(WorkerId(0), WorkerId(1), WorkerId(2)));

  inputs_.Read(kTrain, 1);
  EXPECT_EQ(Missing(0, 0), Verdict::kSetAside);
  EXPECT_EQ(Missing(1, 1), Verdict::kSetAside);
  EXPECT_EQ(Missing(2, 2), Verdict::kNoneLeft) << "one of them was there";
}

TEST_F(InputComplaintsTest, FilesOfDifferentDatasetsAreNoAgreement) {
  Join(2);
  EXPECT_EQ(Missing(0, 0, kTrain), Verdict::kSetAside);
  EXPECT_EQ(Missing(1, 0, kEval), Verdict::kNoneLeft);
}

TEST_F(InputComplaintsTest, BrokenMachinesNeverMakeTheInputWrong) {
  Join(3);
  EXPECT_EQ(Broken(0), Verdict::kSetAside);
  EXPECT_EQ(Broken(1), Verdict::kSetAside);
  EXPECT_EQ(Broken(2), Verdict::kNoneLeft);
  inputs_ = {};
  Join(1);
  EXPECT_EQ(Broken(0), Verdict::kNoneLeft) << "also if it is alone";
  inputs_ = {};
  Join(2);
  EXPECT_EQ(Missing(0), Verdict::kSetAside);
  EXPECT_EQ(Broken(1), Verdict::kNoneLeft);
}

TEST_F(InputComplaintsTest, WhatIsBrokenIsNotPardoned) {
  Join(4);
  EXPECT_EQ(Broken(0), Verdict::kSetAside);
  EXPECT_EQ(Missing(1), Verdict::kSetAside);
  EXPECT_EQ(Missing(2, 0, kEval), Verdict::kSetAside);
  EXPECT_EQ(Missing(2), Verdict::kTryElsewhere);
  EXPECT_EQ(Missing(3), Verdict::kInputWrong);
  EXPECT_THAT(inputs_.Pardoned(), ElementsAre(WorkerId(1)));
  EXPECT_TRUE(Aside(0));
  EXPECT_TRUE(Aside(2));
}

TEST_F(InputComplaintsTest, ANewIncarnationIsGivenAnotherChance) {
  Join(3);
  EXPECT_EQ(Missing(0), Verdict::kSetAside);
  inputs_.WorkerLost(WorkerId(0));
  EXPECT_FALSE(Aside(0));
  inputs_.WorkerJoined(WorkerId(0));
  EXPECT_FALSE(Aside(0));
  EXPECT_EQ(Missing(1), Verdict::kSetAside) << "what was lost says nothing any more";
  EXPECT_EQ(Missing(2), Verdict::kSetAside);
  inputs_.WorkerJoined(WorkerId(1));  // in the place of the other
  EXPECT_FALSE(Aside(1));
  EXPECT_EQ(Missing(0), Verdict::kSetAside);
}

TEST_F(InputComplaintsTest, ALossEndsNothing) {
  Join(2);
  EXPECT_EQ(Missing(0), Verdict::kSetAside);
  inputs_.WorkerLost(WorkerId(1));
  EXPECT_EQ(Missing(0), Verdict::kTryElsewhere) << "of what it had begun before";
  EXPECT_EQ(Missing(0), Verdict::kTryElsewhere);
  EXPECT_EQ(Missing(0), Verdict::kTryElsewhere);
  inputs_.WorkerJoined(WorkerId(1));
  EXPECT_FALSE(Aside(1));
  EXPECT_TRUE(Aside(0));
}

TEST_F(InputComplaintsTest, WhatComesLateIsNotHeard) {
  Join(1);
  EXPECT_EQ(Missing(7), Verdict::kTryAgain);
  EXPECT_EQ(Broken(7), Verdict::kTryAgain);
  EXPECT_FALSE(Aside(7));
}

}  // namespace
}  // namespace mu
