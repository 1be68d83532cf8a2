#include "coordinator/training/failure_teller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace mu {
namespace {

using ::testing::ElementsAre;

class FailureTellerTest : public ::testing::Test {
 protected:
  void Lose(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      list_.Add({{}, pb::ROLE_WORKER, lost_++, "died", 0, "killed"}, [](size_t) {});
  }
  std::vector<uint32_t> Told() {
    std::vector<uint32_t> told;
    teller_.Tell(list_.Listed(),
                 [&](const MemberFailure& failure) { told.push_back(failure.index); });
    return told;
  }

  // Those of which it was told only now that they are over.
  std::vector<uint32_t> Recovered() {
    std::vector<uint32_t> recovered;
    teller_.Tell(list_.Listed(), nullptr,
                 [&](const MemberFailure& failure) { recovered.push_back(failure.index); });
    return recovered;
  }

  FailureList list_;
  FailureTeller teller_;
  uint32_t lost_ = 0;
};

TEST_F(FailureTellerTest, EachOnceAndInTheirOrder) {
  EXPECT_THAT(Told(), ElementsAre());
  Lose(2);
  EXPECT_THAT(Told(), ElementsAre(0, 1));
  EXPECT_THAT(Told(), ElementsAre());
  Lose(1);
  EXPECT_THAT(Told(), ElementsAre(2));
}

TEST_F(FailureTellerTest, AlsoWhenTheListIsFull) {
  std::vector<uint32_t> told;
  while (told.size() < 3 * (FailureList::kFirst + FailureList::kLast)) {
    Lose(7);
    for (const uint32_t index : Told()) told.push_back(index);
  }
  ASSERT_LT(list_.Listed().size(), told.size());
  std::vector<uint32_t> all(lost_);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(told, all);
}

TEST_F(FailureTellerTest, OfABurstTheNewest) {
  Lose(FailureList::kFirst + 10);
  EXPECT_EQ(Told().size(), FailureList::kFirst + 10);
  Lose(FailureList::kLast + 20);
  const std::vector<uint32_t> told = Told();
  ASSERT_EQ(told.size(), FailureList::kLast);
  EXPECT_EQ(told.front(), lost_ - FailureList::kLast);
  EXPECT_EQ(told.back(), lost_ - 1);
  EXPECT_THAT(Told(), ElementsAre()) << "what was left out does not count";
}

TEST_F(FailureTellerTest, EachThatIsOverOnce) {
  Lose(3);
  EXPECT_THAT(Told(), ElementsAre(0, 1, 2));
  EXPECT_THAT(Recovered(), ElementsAre());
  list_.Recovered(1, /*now=*/5);
  EXPECT_THAT(Recovered(), ElementsAre(1));
  EXPECT_THAT(Recovered(), ElementsAre());
  list_.Recovered(0, /*now=*/6);
  list_.Recovered(2, /*now=*/6);
  EXPECT_THAT(Recovered(), ElementsAre(0, 2));
  Lose(1);
  list_.Recovered(3, /*now=*/7);
  EXPECT_THAT(Recovered(), ElementsAre(3)) << "between two calls";
  EXPECT_THAT(Told(), ElementsAre());
}

}  // namespace
}  // namespace mu
