#include "common/optimizer/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "common/optimizer/exact_math.h"

namespace mu {
namespace {

using muster::ScheduleProto;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Keys(const ScheduleProto& schedule, bool rest_of_job = false) {
  std::vector<std::string> keys;
  for (const ScheduleProblem& problem : ProblemsOf(schedule, rest_of_job))
    keys.push_back(problem.key);
  return keys;
}

TEST(RateScaleTest, WarmUpGrowsLinearlyToOneAndStays) {
  EXPECT_EQ(RateScale({}, 4, 0), 0.25f);
  EXPECT_EQ(RateScale({}, 4, 1), 0.5f);
  EXPECT_EQ(RateScale({}, 4, 3), 1.0f);
  EXPECT_EQ(RateScale({}, 4, 1'000'000'000'000), 1.0f);
  EXPECT_EQ(RateScale({}, 0, 0), 1.0f);
  EXPECT_EQ(RateScale({}, 1, 0), 1.0f);
}

TEST(RateScaleTest, ConstantIsOne) {
  ScheduleProto schedule;
  schedule.mutable_constant();
  EXPECT_THAT(Keys(schedule), IsEmpty());
  EXPECT_EQ(RateScale(schedule, 0, 7), 1.0f);
}

TEST(RateScaleTest, StepsFallEverySoManyStepsAfterTheWarmUp) {
  ScheduleProto schedule;
  schedule.mutable_step()->set_every(10);
  schedule.mutable_step()->set_factor(0.5f);
  EXPECT_THAT(Keys(schedule), IsEmpty());
  EXPECT_EQ(RateScale(schedule, 0, 0), 1.0f);
  EXPECT_EQ(RateScale(schedule, 0, 9), 1.0f);
  EXPECT_EQ(RateScale(schedule, 0, 10), 0.5f);
  EXPECT_EQ(RateScale(schedule, 0, 29), 0.25f);
  EXPECT_EQ(RateScale(schedule, 5, 2), 0.6f) << "3 of 5";
  EXPECT_EQ(RateScale(schedule, 5, 14), 1.0f);
  EXPECT_EQ(RateScale(schedule, 5, 15), 0.5f);
  EXPECT_EQ(RateScale(schedule, 0, UINT64_MAX), 0.0f);
}

TEST(RateScaleTest, StepsFallAtGivenSteps) {
  ScheduleProto schedule;
  schedule.mutable_step()->add_at(3);
  schedule.mutable_step()->add_at(5);
  schedule.mutable_step()->set_factor(0.5f);
  EXPECT_THAT(Keys(schedule), IsEmpty());
  EXPECT_EQ(RateScale(schedule, 0, 2), 1.0f);
  EXPECT_EQ(RateScale(schedule, 0, 3), 0.5f);
  EXPECT_EQ(RateScale(schedule, 0, 5), 0.25f);
}

TEST(RateScaleTest, ExponentialFallsByTheFactorInSoManySteps) {
  ScheduleProto schedule;
  schedule.mutable_exponential()->set_steps(100);
  schedule.mutable_exponential()->set_factor(0.1f);
  EXPECT_THAT(Keys(schedule), IsEmpty());
  for (const uint64_t step : {0, 1, 50, 100, 250, 1000})
    EXPECT_FLOAT_EQ(RateScale(schedule, 0, step), std::pow(0.1, step / 100.0)) << step;
  EXPECT_EQ(RateScale(schedule, 0, 1'000'000), 0.0f);
}

TEST(RateScaleTest, PolynomialEndsAtItsEnd) {
  ScheduleProto schedule;
  schedule.mutable_polynomial()->set_steps(10);
  EXPECT_FLOAT_EQ(RateScale(schedule, 0, 3), 0.7f);
  EXPECT_EQ(RateScale(schedule, 0, 10), 0.0f);
  EXPECT_EQ(RateScale(schedule, 0, 99), 0.0f);
  schedule.mutable_polynomial()->set_power(2);
  schedule.mutable_polynomial()->set_end_factor(0.2f);
  EXPECT_THAT(Keys(schedule), IsEmpty());
  EXPECT_EQ(RateScale(schedule, 0, 0), 1.0f);
  EXPECT_FLOAT_EQ(RateScale(schedule, 0, 5), 0.2f + 0.8f * 0.25f);
  EXPECT_EQ(RateScale(schedule, 0, 11), 0.2f);
}

TEST(RateScaleTest, CosineEndsAtItsEnd) {
  ScheduleProto schedule;
  schedule.mutable_cosine()->set_steps(1000);
  schedule.mutable_cosine()->set_end_factor(0.1f);
  EXPECT_THAT(Keys(schedule), IsEmpty());
  EXPECT_EQ(RateScale(schedule, 0, 0), 1.0f);
  for (const uint64_t step : {1, 250, 500, 501, 999})
    EXPECT_FLOAT_EQ(RateScale(schedule, 0, step),
                    0.1 + 0.9 * (1 + std::cos(M_PI * step / 1000)) / 2)
        << step;
  EXPECT_EQ(RateScale(schedule, 0, 1000), 0.1f);
  EXPECT_EQ(RateScale(schedule, 0, 5000), 0.1f);
}

// Another machine's, written down: a step that runs again elsewhere has the same rate.
TEST(RateScaleTest, HasTheSameBitsEverywhere) {
  ScheduleProto cosine, power, exponential;
  cosine.mutable_cosine()->set_steps(12345);
  power.mutable_polynomial()->set_steps(12345);
  power.mutable_polynomial()->set_power(1.7f);
  exponential.mutable_exponential()->set_steps(777);
  exponential.mutable_exponential()->set_factor(0.93f);
  uint64_t hash = 0;
  for (uint64_t step = 0; step < 13000; step += 7) {
    for (const ScheduleProto* schedule : {&cosine, &power, &exponential}) {
      const float scale = RateScale(*schedule, 20, step);
      uint32_t bits;
      static_assert(sizeof(bits) == sizeof(scale));
      std::memcpy(&bits, &scale, sizeof(bits));
      hash = hash * 1099511628211u + bits;
    }
  }
  EXPECT_EQ(hash, 9290397590893472561u);
}

TEST(RateScaleTest, WithoutStepsItEndsWithTheJob) {
  ScheduleProto schedule;
  schedule.mutable_cosine();
  EXPECT_THAT(Keys(schedule), ElementsAre("cosine.steps"));
  EXPECT_THAT(Keys(schedule, /*rest_of_job=*/true), IsEmpty());
  EXPECT_EQ(CloseSchedule(schedule, 100, 1100).cosine().steps(), 1000u);
  EXPECT_EQ(CloseSchedule(schedule, 100, 50).cosine().steps(), 1u);
  schedule.mutable_cosine()->set_steps(7);
  EXPECT_EQ(CloseSchedule(schedule, 100, 1100).cosine().steps(), 7u);
  schedule.mutable_polynomial();
  EXPECT_EQ(CloseSchedule(schedule, 100, 1100).polynomial().steps(), 1000u);
}

TEST(RateScaleTest, NonsenseIsNamed) {
  ScheduleProto schedule;
  schedule.mutable_step();
  EXPECT_THAT(Keys(schedule), ElementsAre("step", "step.factor"));
  schedule.mutable_step()->set_factor(1.5f);
  schedule.mutable_step()->set_every(0);
  EXPECT_THAT(Keys(schedule), ElementsAre("step.every", "step.factor"));
  schedule.mutable_step()->add_at(3);
  schedule.mutable_step()->add_at(3);
  EXPECT_THAT(Keys(schedule), ElementsAre("step", "step.at[1]", "step.factor"));
  schedule.mutable_exponential()->set_factor(NAN);
  EXPECT_THAT(Keys(schedule), ElementsAre("exponential.steps", "exponential.factor"));
  schedule.mutable_polynomial()->set_power(-1);
  schedule.mutable_polynomial()->set_end_factor(2);
  EXPECT_THAT(Keys(schedule, true), ElementsAre("polynomial.end_factor", "polynomial.power"));
  schedule.mutable_cosine()->set_steps(0);
  schedule.mutable_cosine()->set_end_factor(-0.5f);
  EXPECT_THAT(Keys(schedule, true), ElementsAre("cosine.steps", "cosine.end_factor"));
}

TEST(ExactMathTest, IsAsAccurateAsItSays) {
  for (double x = 0; x <= 1; x += 1.0 / 512)
    EXPECT_NEAR(CosineOfPi(x), std::cos(M_PI * x), 2e-15) << x;
  for (double base = 0.001; base <= 1; base *= 1.37) {
    for (double exponent = 0; exponent < 30; exponent += 0.37) {
      const double power = std::pow(base, exponent);
      EXPECT_NEAR(RealPower(base, exponent), power, power * 5e-14) << base << " " << exponent;
    }
  }
  EXPECT_EQ(RealPower(0.5, 1e6), 0.0);
  EXPECT_EQ(RealPower(1, 1e6), 1.0);
  EXPECT_EQ(IntegerPower(0.5, 10), std::ldexp(1.0, -10));
  EXPECT_EQ(IntegerPower(0.9, 0), 1.0);
  EXPECT_NEAR(IntegerPower(0.999, 12345), std::pow(0.999, 12345), 1e-17);
  EXPECT_EQ(IntegerPower(0.999, UINT64_MAX), 0.0);
}

}  // namespace
}  // namespace mu
