#include "coordinator/launch/chaos_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;

TEST(ChaosPlanTest, EventsComeInOrderOfTimeAtTheAskedRate) {
  MU_ASSERT_OK_AND_ASSIGN(ChaosPlan plan,
                          ChaosPlan::Parse("worker:kill:every=3s,ps:hang:every=20s:for=2s,seed=7"));
  absl::Duration last;
  int kills = 0, hangs = 0;
  while (true) {
    const auto event = plan.Next();
    ASSERT_TRUE(event.has_value());
    EXPECT_GE(event->at, last);
    last = event->at;
    if (last > absl::Seconds(3000)) break;
    if (event->worker) {
      ++kills;
      EXPECT_EQ(event->action, ChaosEvent::kKill);
    } else {
      ++hangs;
      EXPECT_EQ(event->action, ChaosEvent::kHang);
      EXPECT_EQ(event->duration, absl::Seconds(2));
    }
  }
  EXPECT_NEAR(kills, 1000, 50);
  EXPECT_NEAR(hangs, 150, 20);
}

TEST(ChaosPlanTest, TheSameTextGivesTheSameEventsAnotherSeedOthers) {
  const auto times = [](const std::string& text) {
    std::vector<std::pair<absl::Duration, uint64_t>> events;
    auto plan = ChaosPlan::Parse(text);
    EXPECT_THAT(plan, testing::IsOk());
    for (int i = 0; plan.ok() && i < 20; ++i) {
      const auto event = plan->Next();
      events.emplace_back(event->at, event->choice);
    }
    return events;
  };
  EXPECT_EQ(times("worker:kill:every=1s,seed=3"), times("seed=3, worker:kill:every=1s"));
  EXPECT_NE(times("worker:kill:every=1s,seed=3"), times("worker:kill:every=1s,seed=4"));
}

// As runs do that share a plan, of which each is shorter than the time between two events.
TEST(ChaosPlanTest, PartsOfAPlanMakeTheWhole) {
  const std::string text = "worker:kill:every=20s,ps:kill:every=3m,seed=5";
  const absl::Duration part = absl::Seconds(50), end = 100 * part;
  std::vector<std::pair<absl::Duration, uint64_t>> whole, parts;
  MU_ASSERT_OK_AND_ASSIGN(ChaosPlan plan, ChaosPlan::Parse(text));
  for (auto event = plan.Next(); event->at < end; event = plan.Next())
    whole.emplace_back(event->at, event->choice);
  for (absl::Duration begin; begin < end; begin += part) {
    MU_ASSERT_OK_AND_ASSIGN(ChaosPlan later, ChaosPlan::Parse(absl::StrCat(
                                                 text, ",after=", absl::FormatDuration(begin))));
    for (auto event = later.Next(); event->at < part; event = later.Next())
      parts.emplace_back(begin + event->at, event->choice);
  }
  EXPECT_NEAR(whole.size(), 250 + 27, 2);
  EXPECT_EQ(parts, whole);
}

TEST(ChaosPlanTest, BeginsAfterYearsAtOnce) {
  MU_ASSERT_OK_AND_ASSIGN(ChaosPlan plan,
                          ChaosPlan::Parse("worker:kill:every=1ms:count=2,after=500000h"));
  EXPECT_LE(plan.Next()->at, absl::Milliseconds(2));
  EXPECT_TRUE(plan.Next().has_value());
  EXPECT_FALSE(plan.Next().has_value()) << "count is of what comes afterwards";
}

TEST(ChaosPlanTest, CountEndsARule) {
  MU_ASSERT_OK_AND_ASSIGN(ChaosPlan plan, ChaosPlan::Parse("ps:drain:every=1s:count=2"));
  EXPECT_TRUE(plan.Next().has_value());
  EXPECT_TRUE(plan.Next().has_value());
  EXPECT_FALSE(plan.Next().has_value());
}

TEST(ChaosPlanTest, MistakesAreNamed) {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "there is none"},
           {"seed=1", "there is none"},
           {"coordinator:kill:every=1s", "no role `coordinator`"},
           {"worker:maim:every=1s", "no action `maim`"},
           {"worker:kill", "too few parts"},
           {"worker:kill:every=often", "every must be a time"},
           {"worker:kill:every=0s", "every must be a time"},
           {"worker:kill:for=1s", "no key `for`"},
           {"worker:kill:count=3", "`every` is missing"},
           {"worker:kill:every=1s:count=none", "count must be"},
           {"worker:kill:every=1s,seed=x", "seed must be"},
           {"worker:kill:every=1s,after=-1s", "after must be"},
           {"worker:kill:every=1s,after=inf", "after must be"}}) {
    const auto plan = ChaosPlan::Parse(text);
    EXPECT_THAT(plan.status(), HasCode(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(said));
  }
}

}  // namespace
}  // namespace mu
