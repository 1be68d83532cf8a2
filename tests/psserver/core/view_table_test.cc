#include "psserver/core/view_table.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

using Ask = ViewTable::Ask;

class ViewTableTest : public ::testing::Test {
 protected:
  ViewTableTest() { table_.TakeEpoch(1); }

  ViewTable::Load Begin(uint64_t view, const std::string& content = "a") {
    ViewTable::Load load;
    EXPECT_EQ(table_.AskLoad(view, content, &load), Ask::kLoad);
    return load;
  }
  Ask AskFor(uint64_t view, const std::string& content = "a") {
    ViewTable::Load load;
    return table_.AskLoad(view, content, &load);
  }
  void LoadWhole(uint64_t view, uint64_t bytes = 10) {
    const ViewTable::Load load = Begin(view);
    EXPECT_TRUE(table_.SetBytes(load, bytes));
    EXPECT_TRUE(table_.EndLoad(load, true));
  }

  ViewTable table_;
};

TEST_F(ViewTableTest, OneCallLoadsAViewAndTheOthersWaitForIt) {
  const ViewTable::Load load = Begin(5);
  EXPECT_EQ(AskFor(5), Ask::kWait);
  EXPECT_FALSE(table_.has(5));
  const ViewTable::Load other = Begin(6);  // meanwhile
  EXPECT_TRUE(table_.SetBytes(load, 70));
  EXPECT_EQ(table_.bytes(), 70u) << "the memory is taken";
  EXPECT_EQ(table_.loaded(), 0u);
  EXPECT_TRUE(table_.EndLoad(load, true));
  EXPECT_EQ(AskFor(5), Ask::kIsHere);
  EXPECT_TRUE(table_.has(5));
  EXPECT_EQ(table_.BytesOf(5), 70u);
  EXPECT_FALSE(table_.has(6));
  EXPECT_TRUE(table_.EndLoad(other, true));
  EXPECT_EQ(table_.loaded(), 2u);
  EXPECT_EQ(table_.bytes(), 70u);
}

TEST_F(ViewTableTest, ANumberIsOfOneCheckpoint) {
  const ViewTable::Load load = Begin(5, "a");
  EXPECT_EQ(AskFor(5, "b"), Ask::kOther) << "while it is loaded";
  EXPECT_TRUE(table_.EndLoad(load, true));
  EXPECT_EQ(AskFor(5, "b"), Ask::kOther);
  EXPECT_EQ(AskFor(5, "a"), Ask::kIsHere);
  EXPECT_EQ(AskFor(6, "b"), Ask::kLoad);
}

TEST_F(ViewTableTest, AfterAFailureTheNextOneLoads) {
  ViewTable::Load load = Begin(5);
  EXPECT_TRUE(table_.SetBytes(load, 70));
  EXPECT_FALSE(table_.EndLoad(load, false));
  EXPECT_EQ(table_.bytes(), 0u);
  EXPECT_FALSE(table_.has(5));
  load = Begin(5, "b");
  EXPECT_TRUE(table_.EndLoad(load, true)) << "nothing was known of it";
}

TEST_F(ViewTableTest, FurtherPartitionsAreLoadedWhileTheOthersAreRead) {
  LoadWhole(5, 10);
  table_.PartitionsChanged();
  EXPECT_TRUE(table_.has(5));
  ViewTable::Load load = Begin(5);
  EXPECT_TRUE(table_.has(5));
  EXPECT_TRUE(table_.SetBytes(load, 12));
  EXPECT_EQ(table_.bytes(), 22u) << "both are in memory";
  EXPECT_EQ(table_.loading_bytes(), 12u);
  EXPECT_FALSE(table_.EndLoad(load, false));
  EXPECT_TRUE(table_.has(5)) << "what was loaded before";
  EXPECT_EQ(table_.bytes(), 10u);
  load = Begin(5);
  table_.PartitionsChanged();  // once more
  EXPECT_TRUE(table_.SetBytes(load, 12));
  EXPECT_TRUE(table_.EndLoad(load, true));
  EXPECT_EQ(table_.BytesOf(5), 12u);
  EXPECT_EQ(AskFor(5), Ask::kLoad) << "it began before those came";
}

TEST_F(ViewTableTest, WhatWasDroppedStaysDropped) {
  LoadWhole(5);
  table_.Drop(5);
  EXPECT_FALSE(table_.has(5));
  EXPECT_EQ(table_.bytes(), 0u);
  EXPECT_EQ(AskFor(5), Ask::kDropped) << "a copy of the request that comes late";
  table_.Drop(5);
  table_.Drop(6);
  EXPECT_EQ(AskFor(6), Ask::kDropped) << "it was quicker than the request to load it";
  EXPECT_EQ(AskFor(7), Ask::kLoad);
}

TEST_F(ViewTableTest, ALoadThatWasDroppedMeanwhileComesToNothing) {
  const ViewTable::Load load = Begin(5);
  table_.Drop(5);
  EXPECT_FALSE(table_.SetBytes(load, 70));
  EXPECT_FALSE(table_.EndLoad(load, true));
  EXPECT_FALSE(table_.has(5));
  EXPECT_EQ(table_.bytes(), 0u);
}

TEST_F(ViewTableTest, WhatWasGivenUpMayBeLoadedAgain) {
  LoadWhole(5, 10);
  const ViewTable::Load load = Begin(6), other = Begin(7);
  EXPECT_TRUE(table_.SetBytes(load, 70));
  EXPECT_EQ(table_.bytes_without(load), 10u);
  EXPECT_EQ(table_.bytes_without(other), 80u);
  table_.GiveUpAll();
  EXPECT_EQ(table_.bytes(), 0u);
  EXPECT_EQ(table_.bytes_without(load), 0u);
  EXPECT_FALSE(table_.has(5));
  EXPECT_FALSE(table_.SetBytes(load, 70));
  EXPECT_FALSE(table_.EndLoad(load, true));
  EXPECT_TRUE(table_.given_up(load));
  const ViewTable::Load again = Begin(6);
  EXPECT_FALSE(table_.given_up(again));
  EXPECT_FALSE(table_.EndLoad(load, true)) << "not of the load that is under way";
  EXPECT_TRUE(table_.SetBytes(again, 60));
  EXPECT_TRUE(table_.EndLoad(again, true));
  EXPECT_EQ(table_.BytesOf(6), 60u);
  table_.Drop(7);
  EXPECT_FALSE(table_.given_up(other)) << "dropped since";
  table_.TakeEpoch(2);
  EXPECT_FALSE(table_.given_up(load)) << "of the former coordinator";
}

TEST_F(ViewTableTest, ANewerCoordinatorBeginsWithoutViews) {
  LoadWhole(5);
  const ViewTable::Load load = Begin(6);
  table_.Drop(7);
  table_.TakeEpoch(1);
  EXPECT_TRUE(table_.has(5)) << "the same one";
  table_.TakeEpoch(3);
  EXPECT_FALSE(table_.has(5));
  const ViewTable::Load anew = Begin(6, "b");
  EXPECT_FALSE(table_.EndLoad(load, true)) << "of the former coordinator";
  EXPECT_FALSE(table_.has(6));
  EXPECT_TRUE(table_.EndLoad(anew, true));
  EXPECT_EQ(AskFor(7), Ask::kLoad) << "its own numbers";
  table_.TakeEpoch(2);
  EXPECT_TRUE(table_.has(6)) << "an older one is not news";
}

TEST_F(ViewTableTest, RemembersTheLatestThatWereDropped) {
  for (uint64_t view = 1; view <= 1025; ++view) table_.Drop(view);
  EXPECT_EQ(AskFor(1), Ask::kLoad);
  EXPECT_EQ(AskFor(2), Ask::kDropped);
  EXPECT_EQ(AskFor(1025), Ask::kDropped);
}

}  // namespace
}  // namespace mu
