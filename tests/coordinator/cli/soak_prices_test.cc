#include "coordinator/cli/soak_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ProblemsOf(const std::string& text) {
  ProblemList problems;
  ParsePrices(text, "p.yaml", &problems);
  return problems.ToString();
}

TEST(SoakPrices, AreRead) {
  ProblemList problems;
  const SoakPrices prices = ParsePrices(
      "currency: EUR\ncoordinator: {on_demand: 0.1}\nworker: {on_demand: 0.4, preemptible: 0.12}\n"
      "ps: {on_demand: 2, preemptible: 0}\n",
      "p.yaml", &problems);
  EXPECT_EQ(problems.ToString(), "");
  EXPECT_EQ(prices.currency, "EUR");
  EXPECT_EQ(prices.coordinator.on_demand, 0.1);
  EXPECT_EQ(prices.coordinator.preemptible, std::nullopt);
  EXPECT_EQ(prices.worker.preemptible, 0.12);
  EXPECT_EQ(prices.ps.on_demand, 2);
  EXPECT_EQ(prices.ps.preemptible, 0);
}

TEST(SoakPrices, WhatIsWrongIsToldWithItsPlace) {
  EXPECT_THAT(ProblemsOf("worker: {on_demand: -1, preemtible: 1}\nps: 3\ncoordinator: {}\n"),
              AllOf(HasSubstr("p.yaml:1:21: `on_demand` must be"),
                    HasSubstr("p.yaml:1:25: there is no key `preemtible` here; did you mean"),
                    HasSubstr("p.yaml:2:5: `ps` must be a map"),
                    HasSubstr("p.yaml:3:14: `coordinator` lacks `on_demand`")));
  EXPECT_THAT(ProblemsOf(""), HasSubstr("there are no prices"));
  EXPECT_THAT(ProblemsOf("[1]"), HasSubstr("there are no prices"));
  EXPECT_THAT(ProblemsOf("a: b\n"),
              AllOf(HasSubstr("`a`"), HasSubstr("the prices of `ps` are missing")));
}

}  // namespace
}  // namespace mu
