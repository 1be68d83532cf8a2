#include "worker/core/request_gate.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Verdict = RequestGate::Verdict;

pb::RequestContext Context(uint64_t job, uint64_t epoch, uint64_t low_water = 0) {
  pb::RequestContext context;
  context.set_job(job);
  context.set_epoch(epoch);
  context.set_low_water(low_water);
  return context;
}

pb::ErrorKind Kind(const absl::Status& status) {
  return DetailOf(status).value_or(pb::ErrorDetail()).kind();
}

TEST(RequestGateTest, AnotherJobIsRefused) {
  RequestGate gate;
  MU_ASSERT_OK(gate.Admit(Context(7, 1)));
  const auto verdict = gate.Admit(Context(8, 9));
  EXPECT_THAT(verdict, testing::HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Kind(verdict.status()), pb::ERROR_OTHER_JOB);
  EXPECT_EQ(gate.epoch(), 1u);
}

TEST(RequestGateTest, OlderEpochIsRefusedNewerTakesOver) {
  RequestGate gate;
  MU_ASSERT_OK(gate.Admit(Context(7, 2, 30)));
  const auto old = gate.Admit(Context(7, 1, 99));
  EXPECT_THAT(old, testing::HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Kind(old.status()), pb::ERROR_STALE);
  EXPECT_EQ(gate.low_water(), 30u);
  MU_ASSERT_OK_AND_ASSIGN(const Verdict same, gate.Admit(Context(7, 2)));
  EXPECT_EQ(same, Verdict::kSameEpoch);
  MU_ASSERT_OK_AND_ASSIGN(const Verdict newer, gate.Admit(Context(7, 3, 2)));
  EXPECT_EQ(newer, Verdict::kNewEpoch);
  EXPECT_EQ(gate.low_water(), 2u) << "a new epoch counts its functions afresh";
  EXPECT_THAT(gate.Admit(Context(7, 2)), testing::HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST(RequestGateTest, WhoOnlyReadsRaisesNothing) {
  RequestGate gate;
  EXPECT_EQ(Kind(gate.AdmitLook(Context(7, 2))), pb::ERROR_NOT_INSTALLED);
  MU_ASSERT_OK(gate.Admit(Context(7, 2, 30)));
  MU_EXPECT_OK(gate.AdmitLook(Context(7, 2, 40)));
  EXPECT_EQ(gate.low_water(), 30u);
  EXPECT_EQ(Kind(gate.AdmitLook(Context(7, 3))), pb::ERROR_NOT_INSTALLED);
  EXPECT_EQ(Kind(gate.AdmitLook(Context(7, 1))), pb::ERROR_STALE);
  EXPECT_EQ(Kind(gate.AdmitLook(Context(8, 2))), pb::ERROR_OTHER_JOB);
  EXPECT_EQ(gate.epoch(), 2u);
  MU_EXPECT_OK(gate.Admit(Context(7, 2)));
}

TEST(RequestGateTest, LowWaterOnlyRises) {
  RequestGate gate;
  MU_ASSERT_OK(gate.Admit(Context(7, 1, 5)));
  MU_ASSERT_OK(gate.Admit(Context(7, 1, 3)));
  EXPECT_EQ(gate.low_water(), 5u);
  MU_ASSERT_OK(gate.Admit(Context(7, 1, 8)));
  EXPECT_EQ(gate.low_water(), 8u);
}

TEST(RequestGateTest, TheRegistrationFixesTheJob) {
  RequestGate gate(/*registers=*/true);
  const auto early = gate.Admit(Context(8, 1));
  EXPECT_THAT(early, testing::HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Kind(early.status()), pb::ERROR_MACHINE);
  EXPECT_TRUE(gate.undecided());
  MU_ASSERT_OK(gate.Register(Context(7, 2)));
  EXPECT_FALSE(gate.undecided());
  EXPECT_EQ(Kind(gate.Admit(Context(8, 1)).status()), pb::ERROR_OTHER_JOB);
  EXPECT_EQ(Kind(gate.Admit(Context(7, 1)).status()), pb::ERROR_STALE);
  MU_EXPECT_OK(gate.Admit(Context(7, 2)));
  EXPECT_EQ(Kind(gate.Register(Context(8, 3)).status()), pb::ERROR_OTHER_JOB);
}

TEST(RequestGateTest, NothingWaitsForOneThatIsClosed) {
  RequestGate gate(/*registers=*/true);
  gate.Close();
  EXPECT_FALSE(gate.undecided());
  EXPECT_THAT(gate.Admit(Context(7, 1)), testing::HasCode(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace mu
