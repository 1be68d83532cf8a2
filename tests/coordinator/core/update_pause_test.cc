#include "coordinator/core/update_pause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mu {
namespace {

using Change = UpdatePause::Change;
using ::testing::HasSubstr;

constexpr FunctionId kOld(3), kNew(4);

TEST(UpdatePause, NewFunctionsWaitFromNinetyPercentOnUntilBelowThreeQuarters) {
  UpdatePause pause;
  EXPECT_EQ(pause.ServerReports(0, {899, 1000}), Change::kNone);
  EXPECT_FALSE(pause.Holds(kNew, /*begun=*/false));
  EXPECT_EQ(pause.ServerReports(0, {900, 1000}), Change::kPaused);
  EXPECT_TRUE(pause.Holds(kNew, /*begun=*/false));
  EXPECT_FALSE(pause.Holds(kOld, /*begun=*/true)) << "the low-water mark waits for it";
  EXPECT_EQ(pause.ServerReports(0, {950, 1000}), Change::kNone) << "one warning";
  EXPECT_EQ(pause.ServerReports(0, {750, 1000}), Change::kNone);
  EXPECT_TRUE(pause.paused());
  EXPECT_EQ(pause.ServerReports(0, {749, 1000}), Change::kResumed);
  EXPECT_FALSE(pause.Holds(kNew, /*begun=*/false));
}

TEST(UpdatePause, EveryMemoryMustHaveRoom) {
  UpdatePause pause;
  EXPECT_EQ(pause.ServerReports(0, {95, 100}), Change::kPaused);
  EXPECT_EQ(pause.ServerReports(1, {98, 100}), Change::kNone);
  EXPECT_EQ(pause.CoordinatorKeeps({99, 100}), Change::kNone);
  EXPECT_EQ(pause.ServerReports(1, {1, 100}), Change::kNone);
  EXPECT_EQ(pause.ServerReports(0, {1, 100}), Change::kNone);
  EXPECT_EQ(pause.CoordinatorKeeps({80, 100}), Change::kNone);
  EXPECT_EQ(pause.CoordinatorKeeps({74, 100}), Change::kResumed);
}

TEST(UpdatePause, WhoNamesNoBoundPausesNothing) {
  UpdatePause pause;
  EXPECT_EQ(pause.ServerReports(0, {1'000'000, 0}), Change::kNone);
  EXPECT_EQ(pause.CoordinatorKeeps({1'000'000, 0}), Change::kNone);
  EXPECT_FALSE(pause.paused());
}

TEST(UpdatePause, SaysWhetherSoMuchMoreWouldPause) {
  UpdatePause pause;
  EXPECT_FALSE(pause.paused(1'000'000)) << "any amount";
  EXPECT_EQ(pause.CoordinatorKeeps({500, 1000}), Change::kNone);
  EXPECT_FALSE(pause.paused(399));
  EXPECT_TRUE(pause.paused(400));
  EXPECT_FALSE(pause.paused());
  EXPECT_EQ(pause.ServerReports(0, {95, 100}), Change::kPaused);
  EXPECT_TRUE(pause.paused(1));
  EXPECT_EQ(pause.CoordinatorKeeps({800, 1000}), Change::kNone);
  EXPECT_EQ(pause.ServerReports(0, {1, 100}), Change::kNone);
  EXPECT_TRUE(pause.paused(0)) << "until below three quarters";
}

TEST(UpdatePause, ARefusedFunctionWaitsUntilThatServerReportsRoom) {
  UpdatePause pause;
  EXPECT_EQ(pause.ServerReports(0, {10, 100}), Change::kNone) << "quicker than a heartbeat";
  EXPECT_EQ(pause.ServerRefused(0, kOld), Change::kPaused);
  EXPECT_THAT(pause.Describe(), HasSubstr("server 0 has no room"));
  EXPECT_TRUE(pause.Holds(kOld, /*begun=*/true));
  EXPECT_FALSE(pause.Holds(kNew, /*begun=*/true)) << "the server may know it, and need no room";
  EXPECT_TRUE(pause.Holds(kNew, /*begun=*/false));
  EXPECT_EQ(pause.ServerReports(1, {0, 100}), Change::kNone) << "of another server";
  EXPECT_EQ(pause.ServerReports(0, {100, 100}), Change::kNone);
  EXPECT_TRUE(pause.Holds(kOld, /*begun=*/true));
  EXPECT_EQ(pause.ServerReports(0, {99, 100}), Change::kNone);
  EXPECT_THAT(pause.Describe(), HasSubstr("server 0 remembers"));
  EXPECT_FALSE(pause.Holds(kOld, /*begun=*/true));
  EXPECT_TRUE(pause.Holds(kNew, /*begun=*/false));
  EXPECT_EQ(pause.ServerReports(0, {10, 100}), Change::kResumed);
}

TEST(UpdatePause, WhatALostServerSaidIsOver) {
  UpdatePause pause;
  EXPECT_EQ(pause.ServerReports(0, {100, 100}), Change::kPaused);
  EXPECT_EQ(pause.ServerRefused(0, kOld), Change::kNone);
  EXPECT_EQ(pause.ServerGone(1), Change::kNone);
  EXPECT_EQ(pause.ServerGone(0), Change::kResumed);
  EXPECT_FALSE(pause.Holds(kOld, /*begun=*/true));
}

TEST(UpdatePause, NamesTheFullestMemory) {
  UpdatePause pause;
  EXPECT_EQ(pause.ServerReports(0, {1 << 20, 100 << 20}), Change::kNone);
  EXPECT_EQ(pause.ServerReports(1, {95 << 20, 100 << 20}), Change::kPaused);
  EXPECT_THAT(pause.Describe(), HasSubstr("server 1 remembers 95.00 of at most 100.00 MB"));
  EXPECT_EQ(pause.CoordinatorKeeps({3 << 20, 3 << 20}), Change::kNone);
  EXPECT_THAT(pause.Describe(), HasSubstr("the coordinator keeps 3.00 of at most 3.00 MB"));
}

}  // namespace
}  // namespace mu
