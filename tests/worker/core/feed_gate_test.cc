#include "worker/core/feed_gate.h"

#include "common/base/status.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;

TEST(FeedGate, NewerConnectionsGoOnWithAStream) {
  FeedGate gate;
  EXPECT_EQ(gate.Open(1, {1, 1}).value(), true);
  EXPECT_EQ(gate.Open(1, {1, 2}).value(), false);
  EXPECT_EQ(gate.Open(1, {1, 5}).value(), false);
  EXPECT_THAT(gate.Open(1, {1, 5}), HasCode(absl::StatusCode::kAborted)) << "another try is newer";
  EXPECT_THAT(gate.Open(1, {1, 4}), HasCode(absl::StatusCode::kAborted));
}

TEST(FeedGate, AnOlderStreamIsRefused) {
  FeedGate gate;
  EXPECT_EQ(gate.Open(1, {3, 1}).value(), true);
  EXPECT_EQ(gate.Open(1, {4, 1}).value(), true);
  EXPECT_EQ(KindOf(gate.Open(1, {3, 9}).status()), pb::ERROR_STALE);
  EXPECT_EQ(gate.Open(1, {4, 2}).value(), false);
}

TEST(FeedGate, AnEpochCountsFromTheBeginning) {
  FeedGate gate;
  EXPECT_EQ(gate.Open(1, {30, 7}).value(), true);
  EXPECT_EQ(gate.Open(2, {1, 1}).value(), true);
  EXPECT_EQ(gate.Open(2, {1, 2}).value(), false);
}

}  // namespace
}  // namespace mu
