#include "psserver/apply_behind_gate.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

TEST(ApplyBehindGate, ACutDoesNotWaitForAnUpdateThatIsBeingChecked) {
  CutGate gate;
  Notification checking, cut_taken;
  std::string order;
  std::thread update([&] {
    MU_EXPECT_OK(ApplyBehindGate(
        &gate,
        [&] {
          checking.Notify();
          cut_taken.Wait();
          order += "check ";
          return absl::OkStatus();
        },
        [&] {
          order += "apply ";
          return absl::OkStatus();
        },
        [&](const absl::Status& status) { order += status.ok() ? "remember" : "forget"; }));
  });
  checking.Wait();
  { CutGate::Cut cut(&gate); }
  cut_taken.Notify();
  update.join();
  EXPECT_EQ(order, "check apply remember");
}

TEST(ApplyBehindGate, AnUpdateIsAppliedAndRememberedWhileThereIsNoCut) {
  CutGate gate;
  Notification checked;
  std::optional<CutGate::Cut> cut;
  cut.emplace(&gate);
  std::atomic<bool> closed{true};
  std::thread update([&] {
    MU_EXPECT_OK(ApplyBehindGate(
        &gate,
        [&] {
          checked.Notify();
          return absl::OkStatus();
        },
        [&] {
          EXPECT_FALSE(closed);
          return absl::OkStatus();
        },
        [&](const absl::Status&) { EXPECT_FALSE(closed); }));
  });
  checked.Wait();
  closed = false;
  cut.reset();
  update.join();
}

TEST(ApplyBehindGate, WhatIsRefusedIsNotApplied) {
  CutGate gate;
  CutGate::Cut cut(&gate);  // nothing waits for it
  std::optional<absl::Status> finished;
  EXPECT_THAT(ApplyBehindGate(
                  &gate, [] { return absl::InvalidArgumentError("bad"); },
                  []() -> absl::Status {
                    ADD_FAILURE();
                    return absl::OkStatus();
                  },
                  [&](const absl::Status& status) { finished = status; }),
              testing::HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(*finished, testing::HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace mu
