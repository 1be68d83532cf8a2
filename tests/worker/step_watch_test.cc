#include "worker/step_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(StepWatchTest, AStepIsStuckWhenItIsAtTheSamePlaceInManyLooks) {
  StepWatch watch;
  StuckDetector detector(3);
  watch.Enter("reading data", "train", 7);
  for (int look = 0; look < 3; ++look) EXPECT_FALSE(detector.Look(watch.place())) << look;
  EXPECT_TRUE(detector.Look(watch.place()));
  EXPECT_EQ(watch.place().doing, "step 7 of function 'train' is reading data");
}

TEST(StepWatchTest, WhatMovesIsNotStuck) {
  StepWatch watch;
  StuckDetector detector(2);
  for (int look = 0; look < 20; ++look) {
    watch.Enter("computing", "train", 7);
    EXPECT_FALSE(detector.Look(watch.place()));
    EXPECT_FALSE(detector.Look(watch.place()));
  }
}

TEST(StepWatchTest, WaitingForWorkOrServersDoesNotCount) {
  StepWatch watch;
  StuckDetector detector(2);
  for (int look = 0; look < 10; ++look) EXPECT_FALSE(detector.Look(watch.place())) << "no work yet";
  watch.Enter("computing", "train", 7);
  {
    const StepWatch::Away away(&watch);
    for (int look = 0; look < 10; ++look) EXPECT_FALSE(detector.Look(watch.place()));
  }
  EXPECT_EQ(watch.place().doing, "step 7 of function 'train' is computing") << "it is back";
  watch.Leave();
  for (int look = 0; look < 10; ++look) EXPECT_FALSE(detector.Look(watch.place())) << "it is done";
}

}  // namespace
}  // namespace mu
