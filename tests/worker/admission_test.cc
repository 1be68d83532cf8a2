#include "worker/admission.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Verdict = Admission::Verdict;

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

TEST(AdmissionTest, NothingBeforeConfigure) {
  Admission admission;
  const auto verdict = admission.Admit(Context(7, 1), /*configures=*/false);
  EXPECT_THAT(verdict, testing::HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Kind(verdict.status()), pb::ERROR_NOT_INSTALLED);
}

TEST(AdmissionTest, AnotherJobIsRefused) {
  Admission admission;
  MU_ASSERT_OK(admission.Admit(Context(7, 1), true));
  for (const bool configures : {false, true}) {
    const auto verdict = admission.Admit(Context(8, 9), configures);
    EXPECT_THAT(verdict, testing::HasCode(absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ(Kind(verdict.status()), pb::ERROR_OTHER_JOB);
  }
  EXPECT_EQ(admission.epoch(), 1u);
}

TEST(AdmissionTest, OlderEpochIsRefusedNewerTakesOver) {
  Admission admission;
  MU_ASSERT_OK(admission.Admit(Context(7, 2, 30), true));
  const auto old = admission.Admit(Context(7, 1, 99), true);
  EXPECT_THAT(old, testing::HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Kind(old.status()), pb::ERROR_STALE);
  EXPECT_EQ(admission.low_water(), 30u);
  MU_ASSERT_OK_AND_ASSIGN(const Verdict same, admission.Admit(Context(7, 2), false));
  EXPECT_EQ(same, Verdict::kSameEpoch);
  MU_ASSERT_OK_AND_ASSIGN(const Verdict newer, admission.Admit(Context(7, 3, 2), false));
  EXPECT_EQ(newer, Verdict::kNewEpoch);
  EXPECT_EQ(admission.low_water(), 2u) << "a new epoch counts its functions afresh";
  EXPECT_THAT(admission.Admit(Context(7, 2), false),
              testing::HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST(AdmissionTest, LowWaterOnlyRises) {
  Admission admission;
  MU_ASSERT_OK(admission.Admit(Context(7, 1, 5), true));
  MU_ASSERT_OK(admission.Admit(Context(7, 1, 3), false));
  EXPECT_EQ(admission.low_water(), 5u);
  MU_ASSERT_OK(admission.Admit(Context(7, 1, 8), false));
  EXPECT_EQ(admission.low_water(), 8u);
}

}  // namespace
}  // namespace mu
