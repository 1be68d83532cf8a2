#include "coordinator/core/update_ledger.h"

#include "gtest/gtest.h"

namespace mu {
namespace {

TEST(UpdateLedger, WhatWasAcknowledgedAndIsNotHeldWasRolledBack) {
  UpdateLedger ledger;
  for (int step = 0; step < 5; ++step) ledger.StepDone(0, 2, 0, true);
  for (int step = 0; step < 5; ++step) ledger.StepDone(1, 3, 0, true);
  ledger.Restored(0, 6);
  EXPECT_EQ(ledger.rolled_back(), 4);
  EXPECT_EQ(ledger.acknowledged(0), 6u);
  EXPECT_EQ(ledger.acknowledged(1), 15u);
  EXPECT_EQ(ledger.acknowledged(7), 0u);
  // The repeats are acknowledged again, and lost again.
  for (int step = 0; step < 2; ++step) ledger.StepDone(0, 2, 0, false);
  ledger.Restored(0, 6);
  EXPECT_EQ(ledger.rolled_back(), 8);
}

// A checkpoint contains three steps whose worker was lost before their results had come; two later
// steps are lost.
TEST(UpdateLedger, WhatTheCheckpointHeldWithoutItsResultIsNotCounted) {
  UpdateLedger ledger;
  for (int step = 0; step < 4; ++step) ledger.StepDone(0, 1, 0, true);
  ledger.Restored(0, 2 + 3);
  EXPECT_EQ(ledger.rolled_back(), -1);
  for (int step = 0; step < 3; ++step) ledger.StepDone(0, 0, 1, true);
  EXPECT_EQ(ledger.rolled_back(), 2);
  EXPECT_EQ(ledger.acknowledged(0), 5u);
  ledger.StepDone(0, 0, 1,
                  false);  // had its result before the restore, and the checkpoint holds it
  EXPECT_EQ(ledger.rolled_back(), 2);
}

TEST(UpdateLedger, ANewCoordinatorHasLostNothingThatItsCheckpointHolds) {
  UpdateLedger ledger;
  ledger.Continue(0, 10);
  ledger.Restored(0, 12);  // two steps were under way when the checkpoint was begun
  ledger.StepDone(0, 0, 1, true);
  ledger.StepDone(0, 0, 1, true);
  EXPECT_EQ(ledger.rolled_back(), 0);
}

}  // namespace
}  // namespace mu
