#include "psserver/core/assigned_places.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(AssignedPlaces, AreForgottenBelowTheMark) {
  constexpr uint64_t kA = 1, kB = 2, kC = 3;  // values
  AssignedPlaces places;
  EXPECT_TRUE(places.Claim(5, 1, 0, kA));
  EXPECT_TRUE(places.Claim(5, 1, 1, kB)) << "another partition of the same variable";
  EXPECT_TRUE(places.Claim(5, 1, 0, kA));
  EXPECT_FALSE(places.Claim(5, 1, 0, kC));
  EXPECT_FALSE(places.Claim(5, 2, 2, kA));
  EXPECT_TRUE(places.Claim(6, 2, 0, kA));
  places.RaiseLowWater(6);
  EXPECT_EQ(places.size(), 1u);
  EXPECT_TRUE(places.Claim(5, 2, 0, kC)) << "the ledger refuses it";
  EXPECT_EQ(places.size(), 1u);
  places.Clear();
  EXPECT_TRUE(places.Claim(6, 3, 0, kC));
  EXPECT_TRUE(places.Claim(5, 1, 0, kA));
  EXPECT_FALSE(places.Claim(5, 1, 0, kB)) << "the state that follows has a mark of its own";
}

TEST(AssignedPlaces, AVariableAndATableOfOneIdAreTwo) {
  AssignedPlaces places;
  EXPECT_TRUE(places.Claim(5, 1, 0, 7, /*table=*/true));
  EXPECT_FALSE(places.Claim(5, 1, 1, 7));
  EXPECT_TRUE(places.Claim(5, 1, 1, 7, /*table=*/true));
}

}  // namespace
}  // namespace mu
