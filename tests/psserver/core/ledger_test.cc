#include "psserver/core/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "common/base/hash.h"

namespace mu {
namespace {

using Answer = Ledger::Answer;

TEST(LedgerTest, FirstThenRepeat) {
  Ledger ledger;
  const PushId push{5, 2, 0};
  EXPECT_EQ(ledger.Begin(push), Answer::kFirst);
  EXPECT_EQ(ledger.Begin(push), Answer::kInProgress);
  ledger.Finish(push, true);
  EXPECT_EQ(ledger.Begin(push), Answer::kRepeat);
  EXPECT_EQ(ledger.Begin({5, 2, 1}), Answer::kFirst) << "parts are apart";
  EXPECT_EQ(ledger.Begin({5, 1, 0}), Answer::kFirst) << "an earlier step that was not applied";
  EXPECT_EQ(ledger.remembered_steps(), 1u);
}

TEST(LedgerTest, ARefusedPushMayComeAgain) {
  Ledger ledger;
  EXPECT_EQ(ledger.Begin({1, 0, 0}), Answer::kFirst);
  ledger.Finish({1, 0, 0}, false);
  EXPECT_EQ(ledger.Begin({1, 0, 0}), Answer::kFirst);
  EXPECT_EQ(ledger.remembered_steps(), 0u);
}

TEST(LedgerTest, EveryOrderOfSixStepsRemembersAll) {
  std::vector<uint32_t> order = {0, 1, 2, 3, 4, 5};
  do {
    Ledger ledger;
    for (size_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(ledger.Begin({9, order[i], 0}), Answer::kFirst);
      ledger.Finish({9, order[i], 0}, true);
      for (uint32_t step = 0; step < 6; ++step) {
        const bool applied =
            std::find(order.begin(), order.begin() + i + 1, step) != order.begin() + i + 1;
        ASSERT_EQ(ledger.Begin({9, step, 0}), applied ? Answer::kRepeat : Answer::kFirst);
        if (!applied) ledger.Finish({9, step, 0}, false);
      }
    }
    EXPECT_EQ(ledger.entries(), 1u) << "steps in a row cost one entry";
    EXPECT_EQ(ledger.remembered_steps(), 6u);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(LedgerTest, LowWaterForgetsAndRefuses) {
  Ledger ledger;
  for (uint64_t function = 0; function < 10; ++function) {
    ASSERT_EQ(ledger.Begin({function, 0, 0}), Answer::kFirst);
    ledger.Finish({function, 0, 0}, true);
  }
  ledger.RaiseLowWater(7);
  EXPECT_EQ(ledger.remembered_steps(), 3u);
  EXPECT_EQ(ledger.Begin({6, 0, 0}), Answer::kStale);
  EXPECT_EQ(ledger.Begin({6, 1, 0}), Answer::kStale);
  EXPECT_EQ(ledger.Begin({7, 0, 0}), Answer::kRepeat);
  ledger.RaiseLowWater(3);
  EXPECT_EQ(ledger.low_water(), 7u) << "marks never go back";
}

TEST(LedgerTest, APushInProgressBelowTheMarkEndsAndIsNotRemembered) {
  Ledger ledger;
  EXPECT_EQ(ledger.Begin({3, 0, 0}), Answer::kFirst);
  ledger.RaiseLowWater(4);
  EXPECT_TRUE(ledger.InProgressBelow(4));
  EXPECT_FALSE(ledger.InProgressBelow(3));
  EXPECT_EQ(ledger.Begin({3, 0, 0}), Answer::kStale);
  ledger.Finish({3, 0, 0}, true);
  EXPECT_FALSE(ledger.InProgressBelow(4));
  EXPECT_EQ(ledger.remembered_steps(), 0u);
  EXPECT_EQ(ledger.entries(), 0u);
}

TEST(LedgerTest, BoundedMemory) {
  Ledger ledger(/*most=*/4);
  for (uint64_t function = 0; function < 4; ++function) {
    ASSERT_EQ(ledger.Begin({function, 0, 0}), Answer::kFirst);
    ledger.Finish({function, 0, 0}, true);
  }
  EXPECT_EQ(ledger.Begin({4, 0, 0}), Answer::kFull);
  EXPECT_EQ(ledger.Begin({2, 0, 0}), Answer::kRepeat) << "repeats are still known";
  ledger.RaiseLowWater(2);
  EXPECT_EQ(ledger.Begin({4, 0, 0}), Answer::kFirst);
}

TEST(LedgerTest, FullMemoryTakesWhatLetsTheLowWaterMarkRise) {
  Ledger ledger(/*most=*/2);
  for (const uint64_t function : {5, 7}) {
    ASSERT_EQ(ledger.Begin({function, 0, 0}), Answer::kFirst);
    ledger.Finish({function, 0, 0}, true);
  }
  EXPECT_EQ(ledger.Begin({6, 0, 0}), Answer::kFull);
  EXPECT_EQ(ledger.Begin({7, 2, 0}), Answer::kFull) << "an entry of its own";
  EXPECT_EQ(ledger.Begin({5, 2, 0}), Answer::kFirst) << "one of its own, of the oldest function";
  ledger.Finish({5, 2, 0}, false);
  EXPECT_EQ(ledger.Begin({7, 1, 0}), Answer::kFirst) << "the next step extends what is there";
  ledger.Finish({7, 1, 0}, true);
  EXPECT_EQ(ledger.entries(), 2u);
  EXPECT_EQ(ledger.Begin({4, 3, 1}), Answer::kFirst) << "everybody waits for the oldest function";
  ledger.Finish({4, 3, 1}, true);
  EXPECT_EQ(ledger.entries(), 3u);
  EXPECT_EQ(ledger.Begin({5, 0, 1}), Answer::kFull) << "there is an older one now";
}

// Against the obvious implementation, over random histories.
TEST(LedgerTest, RandomHistoriesAgreeWithASetOfAll) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SplitMix random(seed);
    Ledger ledger;
    std::set<PushId> applied, running;
    uint64_t mark = 0;
    for (int i = 0; i < 500; ++i) {
      const PushId push{mark + random.Below(6), static_cast<uint32_t>(random.Below(8)),
                        static_cast<uint32_t>(random.Below(2))};
      switch (random.Below(8)) {
        case 0:
          mark += random.Below(2);
          ledger.RaiseLowWater(mark);
          break;
        case 1:
        case 2:
        case 3:
          if (!running.empty()) {
            const auto it = std::next(running.begin(), random.Below(running.size()));
            const bool ok = random.Below(4) != 0;
            ledger.Finish(*it, ok);
            if (ok) applied.insert(*it);
            running.erase(it);
          }
          break;
        default: {
          Answer expected = Answer::kFirst;
          if (push.function < mark) {
            expected = Answer::kStale;
          } else if (running.count(push) > 0) {
            expected = Answer::kInProgress;
          } else if (applied.count(push) > 0) {
            expected = Answer::kRepeat;
          }
          ASSERT_EQ(ledger.Begin(push), expected) << "operation " << i;
          if (expected == Answer::kFirst) running.insert(push);
        }
      }
      uint64_t remembered = 0;
      for (const PushId& p : applied) remembered += p.function >= mark;
      ASSERT_EQ(ledger.remembered_steps(), remembered) << "operation " << i;
      ASSERT_EQ(ledger.InProgressBelow(mark), !running.empty() && running.begin()->function < mark);
    }
    for (const PushId& push : running) ledger.Finish(push, true);
    ledger.RaiseLowWater(mark + 100);
    EXPECT_EQ(ledger.entries(), 0u);
    EXPECT_EQ(ledger.remembered_steps(), 0u);
  }
}

}  // namespace
}  // namespace mu
