#include "common/client/membership_core.h"

#include <gtest/gtest.h>

#include "common/base/error_kind.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using Call = MembershipCore::Call;
using Next = MembershipCore::Next;

constexpr int64_t kSecond = 1'000'000'000;

pb::RegisterReply Reply(uint64_t epoch = 3, uint64_t job = 9, uint32_t index = 2) {
  pb::RegisterReply reply;
  reply.set_job(job);
  reply.set_epoch(epoch);
  reply.set_index(index);
  return reply;
}

absl::Status Unreached() { return absl::UnavailableError("nobody is there"); }
absl::Status Unknown() {
  return WithKind(absl::NotFoundError("who are you?"), pb::ERROR_STALE, pb::ROLE_COORDINATOR);
}

class MembershipCoreTest : public ::testing::Test {
 protected:
  void Join() {
    ASSERT_EQ(core_.Send(0), Call::kRegister);
    ASSERT_EQ(core_.Registered(0, Reply()), Next::kTaken);
  }
  // A heartbeat is sent at this time and answered a second later.
  Next Beat(int64_t sent, const absl::Status& status) {
    EXPECT_EQ(core_.Send(sent * kSecond), Call::kHeartbeat);
    return core_.Beaten((sent + 1) * kSecond, status);
  }
  MembershipCore core_{absl::Seconds(10)};
};

TEST_F(MembershipCoreTest, ALeaseCountsFromTheSendingOfTheRequest) {
  EXPECT_EQ(core_.Send(5), Call::kRegister);
  EXPECT_EQ(core_.Registered(70, Reply()), Next::kTaken);
  EXPECT_EQ(core_.sent_ns(), 5);
  EXPECT_EQ(core_.Send(100), Call::kHeartbeat);
  EXPECT_EQ(core_.Beaten(180, absl::OkStatus()), Next::kTaken);
  EXPECT_EQ(core_.sent_ns(), 100);
}

TEST_F(MembershipCoreTest, TheOrphanTimeoutCountsFromTheLastAnswer) {
  Join();
  for (int64_t at : {2, 8, 16, 24}) EXPECT_EQ(Beat(at, absl::OkStatus()), Next::kTaken);
  // The last answer came at 25.
  for (int64_t at = 25; at < 34; ++at) EXPECT_EQ(Beat(at, Unreached()), Next::kWait) << at;
  EXPECT_EQ(Beat(34, Unreached()), Next::kLost);
  EXPECT_THAT(core_.lost(), HasCode(absl::StatusCode::kUnavailable));
}

TEST_F(MembershipCoreTest, OneAnswerAmongLostHeartbeatsIsEnough) {
  Join();
  for (int64_t at = 0; at < 100; ++at) {
    const bool answered = at % 9 == 8;
    EXPECT_EQ(Beat(at, answered ? absl::OkStatus() : Unreached()),
              answered ? Next::kTaken : Next::kWait);
  }
}

TEST_F(MembershipCoreTest, AFirstRegistrationIsGivenUpAfterTheOrphanTimeout) {
  for (int64_t at : {3, 6, 9, 12}) {
    EXPECT_EQ(core_.Send(at * kSecond), Call::kRegister);
    EXPECT_EQ(core_.Registered(at * kSecond, Unreached()), Next::kWait);
  }
  EXPECT_EQ(core_.Send(13 * kSecond - 1), Call::kRegister);
  EXPECT_EQ(core_.Registered(13 * kSecond, Unreached()), Next::kLost);
}

TEST_F(MembershipCoreTest, WhoIsNotKnownRegistersAtOnce) {
  Join();
  EXPECT_EQ(Beat(1, Unknown()), Next::kAtOnce);
  EXPECT_EQ(core_.Send(2 * kSecond), Call::kRegister);
  EXPECT_EQ(core_.Registered(2 * kSecond, Unreached()), Next::kWait);
  EXPECT_EQ(core_.Send(3 * kSecond), Call::kRegister) << "until somebody has answered";
  EXPECT_EQ(core_.Registered(3 * kSecond, Reply(/*epoch=*/4)), Next::kTaken);
  EXPECT_EQ(core_.registration().epoch(), 4u);
  EXPECT_EQ(Beat(4, absl::OkStatus()), Next::kTaken);
}

TEST_F(MembershipCoreTest, AnOlderCoordinatorIsAsGoodAsNone) {
  Join();
  EXPECT_EQ(Beat(8, Unknown()), Next::kAtOnce);
  core_.Send(9 * kSecond);
  EXPECT_EQ(core_.Registered(9 * kSecond, Reply(/*epoch=*/2)), Next::kWait);
  EXPECT_EQ(core_.registration().epoch(), 3u);
  core_.Send(10 * kSecond);
  EXPECT_EQ(core_.Registered(10 * kSecond, Reply(/*epoch=*/2)), Next::kLost);
}

TEST_F(MembershipCoreTest, ARefusalAnotherJobAndAnotherPlaceEndIt) {
  const absl::Status refusal =
      WithKind(absl::FailedPreconditionError("no"), pb::ERROR_OTHER_JOB, pb::ROLE_COORDINATOR);
  for (const auto& reply : {absl::StatusOr<pb::RegisterReply>(refusal),
                            absl::StatusOr<pb::RegisterReply>(Reply(4, /*job=*/10)),
                            absl::StatusOr<pb::RegisterReply>(Reply(4, 9, /*index=*/1))}) {
    MembershipCore core(absl::Seconds(10));
    core.Send(0);
    EXPECT_EQ(core.Registered(0, Reply()), Next::kTaken);
    core.Send(1);
    EXPECT_EQ(core.Beaten(1, Unknown()), Next::kAtOnce);
    core.Send(2);
    EXPECT_EQ(core.Registered(2, reply), Next::kLost);
    EXPECT_THAT(core.lost(), HasCode(absl::StatusCode::kFailedPrecondition));
  }
  Join();
  EXPECT_EQ(Beat(1, refusal), Next::kLost);
}

TEST_F(MembershipCoreTest, AnotherPlaceIsTakenByWhoMayMove) {
  Join();
  EXPECT_EQ(Beat(1, Unknown()), Next::kAtOnce);
  core_.Send(2 * kSecond);
  core_.MayMove(true);
  EXPECT_EQ(core_.Registered(2 * kSecond, Reply(4, 9, /*index=*/1)), Next::kTaken);
  EXPECT_EQ(core_.registration().index(), 1u);
  EXPECT_EQ(Beat(3, Unknown()), Next::kAtOnce);
  core_.Send(4 * kSecond);
  core_.MayMove(false);
  EXPECT_EQ(core_.Registered(4 * kSecond, Reply(4, 9, /*index=*/2)), Next::kLost);
}

TEST_F(MembershipCoreTest, WhoLeavesDoesNotComeBack) {
  Join();
  core_.Leave();
  for (int64_t at : {1, 50, 100}) EXPECT_EQ(Beat(at, Unknown()), Next::kWait);
  for (int64_t at : {101, 200}) EXPECT_EQ(Beat(at, Unreached()), Next::kWait);
}

}  // namespace
}  // namespace mu
