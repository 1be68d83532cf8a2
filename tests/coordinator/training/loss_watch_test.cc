#include "coordinator/training/loss_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace mu {
namespace {

// All that is said of losses, one a step.
std::string SaidOf(std::initializer_list<double> losses, bool entropy = false) {
  LossWatch watch(entropy);
  std::string said;
  uint64_t step = 0;
  for (const double loss : losses) said += watch.Observe(++step, loss);
  return said;
}

TEST(LossWatch, SaysOnceThatALossGrowsAThousandfold) {
  EXPECT_EQ(SaidOf({0.7, 0.5, 20, 600, 1e6, 1e9}),
            "the loss has grown from 0.66 to 1e+06 by step 5: the training diverges; a lower "
            "learning rate, or clipped gradients, may help");
}

TEST(LossWatch, SaysNothingOfALossThatVaries) {
  EXPECT_EQ(SaidOf({0.7, 0.5, 3, 0.4, 100, 0.3}), "");
  EXPECT_EQ(SaidOf({1e4, 1e-3, 5, 1e-3, 900}), "") << "less than it began with";
  EXPECT_EQ(SaidOf({-3, -5, 100, 1e9}), "") << "of a loss below 0 a factor says nothing";
  EXPECT_EQ(SaidOf({0, 0, 1e-9, 0}), "");
  EXPECT_EQ(SaidOf({0.7, NAN, INFINITY}), "") << "that is an error of its own";
}

TEST(LossWatch, SaysOnceThatACrossEntropyIsNone) {
  EXPECT_EQ(SaidOf({2.5e37, 2e37, 1e36}, /*entropy=*/true),
            "the loss is 2.5e+37 by step 1, but a cross entropy is a few units: numbers of the "
            "data are probably far from 1; `coordinator stats` shows them, and what to write as "
            "mean and stddev of their columns");
  EXPECT_EQ(SaidOf({2.5e37, 2e37, 1e36}), "") << "other losses have no such measure";
  EXPECT_EQ(SaidOf({900, 14, 0.7}, /*entropy=*/true), "");
}

}  // namespace
}  // namespace mu
