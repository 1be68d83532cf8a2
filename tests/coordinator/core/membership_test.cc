#include "coordinator/core/membership.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;

pb::RegisterRequest Request(pb::Role role, uint64_t incarnation, int index = -1) {
  pb::RegisterRequest request;
  request.set_role(role);
  request.set_incarnation(incarnation);
  request.set_address("127.0.0.1:1");
  request.set_index(index);
  return request;
}

// Of one that had this index, but without a wish.
pb::RegisterRequest Former(pb::Role role, uint64_t incarnation, int index) {
  pb::RegisterRequest request = Request(role, incarnation, index);
  request.set_may_move(true);
  return request;
}

pb::HeartbeatRequest Beat(const Member& member) {
  pb::HeartbeatRequest request;
  request.set_role(member.role);
  request.set_index(member.index);
  request.set_incarnation(member.incarnation.value());
  return request;
}

const absl::Time kStart = absl::UnixEpoch();

// Looks at every heartbeat interval from `from` until `to`, as the coordinator does.
std::vector<Member> ExpireUntil(Membership* members, absl::Time from, absl::Time to) {
  std::vector<Member> lost;
  for (absl::Time now = from; now <= to; now += Membership::Options().heartbeat) {
    for (const Member& member : members->Expire(now)) lost.push_back(member);
  }
  return lost;
}

// The index that a process gets, which has to be nobody's; -1: it is refused.
int IndexOf(Membership* members, const pb::RegisterRequest& request) {
  const auto registered = members->Register(request, kStart);
  EXPECT_THAT(registered, testing::IsOk());
  if (!registered.ok()) return -1;
  EXPECT_FALSE(registered->replaced.has_value());
  return static_cast<int>(registered->member.index);
}

TEST(Membership, NumbersWorkersAndTellsARepeatFromAReplacement) {
  Membership members({.expected_servers = 2});
  MU_ASSERT_OK_AND_ASSIGN(auto a, members.Register(Request(pb::ROLE_WORKER, 11), kStart));
  MU_ASSERT_OK_AND_ASSIGN(auto b, members.Register(Request(pb::ROLE_WORKER, 12), kStart));
  EXPECT_EQ(a.member.index, 0u);
  EXPECT_EQ(b.member.index, 1u);
  MU_ASSERT_OK_AND_ASSIGN(auto again, members.Register(Request(pb::ROLE_WORKER, 11), kStart));
  EXPECT_TRUE(again.known);
  EXPECT_EQ(again.member.index, 0u);
  MU_ASSERT_OK_AND_ASSIGN(auto replacement,
                          members.Register(Request(pb::ROLE_WORKER, 13, 0), kStart));
  ASSERT_TRUE(replacement.replaced.has_value());
  EXPECT_EQ(replacement.replaced->incarnation, Incarnation(11));
  EXPECT_THAT(members.Heartbeat(Beat(a.member), kStart), HasCode(absl::StatusCode::kNotFound));
  EXPECT_FALSE(members.Remove(a.member).has_value());
  EXPECT_EQ(members.Count(pb::ROLE_WORKER), 2u);
}

TEST(Membership, OneThatWakesUpIsWelcomeUnlessItsPlaceIsTaken) {
  Membership members({.expected_servers = 1, .timeout = absl::Seconds(10)});
  MU_ASSERT_OK(members.Register(Request(pb::ROLE_WORKER, 11, 0), kStart));
  ASSERT_EQ(ExpireUntil(&members, kStart, kStart + absl::Seconds(11)).size(), 1u);
  MU_ASSERT_OK_AND_ASSIGN(
      auto back, members.Register(Request(pb::ROLE_WORKER, 11, 0), kStart + absl::Seconds(12)));
  EXPECT_FALSE(back.known) << "its functions were given to others: it begins afresh";
  ASSERT_EQ(ExpireUntil(&members, kStart + absl::Seconds(12), kStart + absl::Seconds(30)).size(),
            1u);
  MU_ASSERT_OK(members.Register(Request(pb::ROLE_WORKER, 12, 0), kStart + absl::Seconds(30)));
  const auto late = members.Register(Request(pb::ROLE_WORKER, 11, 0), kStart + absl::Seconds(31));
  EXPECT_THAT(late, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(KindOf(late.status()), pb::ERROR_STALE);
  EXPECT_EQ(members.Find(pb::ROLE_WORKER, 0)->incarnation, Incarnation(12));
}

// By a coordinator that was started again, and does not know what an older one gave to whom.
TEST(Membership, AFormerIndexIsKeptUnlessALivingProcessHasIt) {
  Membership members({.expected_servers = 1});
  EXPECT_EQ(IndexOf(&members, Request(pb::ROLE_WORKER, 20)), 0) << "it was quicker";
  EXPECT_EQ(IndexOf(&members, Former(pb::ROLE_WORKER, 12, 2)), 2);
  EXPECT_EQ(IndexOf(&members, Former(pb::ROLE_WORKER, 10, 0)), 3);
  EXPECT_EQ(IndexOf(&members, Former(pb::ROLE_WORKER, 10, 0)), 3) << "it has not heard of it";
  EXPECT_EQ(IndexOf(&members, Former(pb::ROLE_WORKER, 11, 1)), 1) << "nobody has it";
  EXPECT_EQ(IndexOf(&members, Request(pb::ROLE_WORKER, 21)), 4);
  EXPECT_EQ(members.Count(pb::ROLE_WORKER), 5u);
}

// The others, who are still to come, would be moved one after the other.
TEST(Membership, ANewWorkerMovesOneFormerWorkerOnly) {
  Membership members({.expected_servers = 1, .expected_workers = 3});
  EXPECT_EQ(IndexOf(&members, Request(pb::ROLE_WORKER, 20)), 0) << "it was quicker";
  EXPECT_EQ(IndexOf(&members, Former(pb::ROLE_WORKER, 10, 0)), 3);
  EXPECT_EQ(IndexOf(&members, Former(pb::ROLE_WORKER, 11, 1)), 1);
  EXPECT_EQ(IndexOf(&members, Former(pb::ROLE_WORKER, 12, 2)), 2);
  EXPECT_EQ(IndexOf(&members, Request(pb::ROLE_WORKER, 21)), 4);
}

TEST(Membership, AWorkerWithoutAWishMakesRoomForOneWithAWish) {
  Membership members({.expected_servers = 1});
  EXPECT_EQ(IndexOf(&members, Request(pb::ROLE_WORKER, 11)), 0);
  MU_ASSERT_OK_AND_ASSIGN(const auto wish,
                          members.Register(Request(pb::ROLE_WORKER, 12, 0), kStart));
  EXPECT_TRUE(wish.replaced.has_value());
  EXPECT_EQ(IndexOf(&members, Former(pb::ROLE_WORKER, 11, 0)), 1);
}

TEST(Membership, AServerThatHoldsNothingTakesAFreePlaceAndNoOther) {
  Membership members({.expected_servers = 2});
  EXPECT_EQ(IndexOf(&members, Request(pb::ROLE_PSSERVER, 1)), 0);
  MU_ASSERT_OK_AND_ASSIGN(const auto former,
                          members.Register(Request(pb::ROLE_PSSERVER, 2, 0), kStart));
  ASSERT_TRUE(former.replaced.has_value());
  MU_ASSERT_OK_AND_ASSIGN(const auto moved,
                          members.Register(Former(pb::ROLE_PSSERVER, 1, 0), kStart));
  EXPECT_EQ(moved.member.index, 1u);
  EXPECT_THAT(members.Register(Former(pb::ROLE_PSSERVER, 3, 1), kStart),
              HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(members.Count(pb::ROLE_PSSERVER), 2u);
  EXPECT_TRUE(members.Remove(moved.member).has_value());
  EXPECT_EQ(IndexOf(&members, Former(pb::ROLE_PSSERVER, 3, 7)), 1)
      << "the cluster of before was larger";
}

TEST(Membership, ServersHaveFixedPlaces) {
  Membership members({.expected_servers = 2});
  EXPECT_EQ(IndexOf(&members, Request(pb::ROLE_PSSERVER, 1)), 0);
  EXPECT_EQ(IndexOf(&members, Request(pb::ROLE_PSSERVER, 2)), 1);
  EXPECT_THAT(members.Register(Request(pb::ROLE_PSSERVER, 3), kStart),
              HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(members.Register(Request(pb::ROLE_PSSERVER, 3, 7), kStart),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(members.Register(Request(pb::ROLE_PSSERVER, 0), kStart),
              HasCode(absl::StatusCode::kInvalidArgument));
}

TEST(Membership, ExpiresThoseThatAreSilent) {
  Membership members({.expected_servers = 1, .timeout = absl::Seconds(10)});
  MU_ASSERT_OK_AND_ASSIGN(auto a, members.Register(Request(pb::ROLE_WORKER, 11), kStart));
  MU_ASSERT_OK(members.Register(Request(pb::ROLE_WORKER, 12), kStart));
  MU_ASSERT_OK(members.Heartbeat(Beat(a.member), kStart + absl::Seconds(8)));
  const auto lost = ExpireUntil(&members, kStart, kStart + absl::Seconds(11));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].incarnation, Incarnation(12));
  EXPECT_TRUE(members.Expire(kStart + absl::Seconds(11)).empty());
}

TEST(Membership, TimeThatTheCoordinatorDidNotRunIsNobodysSilence) {
  Membership members(
      {.expected_servers = 1, .heartbeat = absl::Milliseconds(250), .timeout = absl::Seconds(10)});
  MU_ASSERT_OK(members.Register(Request(pb::ROLE_WORKER, 11), kStart));
  MU_ASSERT_OK(members.Register(Request(pb::ROLE_PSSERVER, 12), kStart));
  EXPECT_TRUE(ExpireUntil(&members, kStart, kStart + absl::Seconds(9)).empty());
  // Stopped for a minute: the look that follows counts two intervals.
  const absl::Time back = kStart + absl::Seconds(69);
  EXPECT_TRUE(members.Expire(back).empty());
  EXPECT_EQ(members.Find(pb::ROLE_WORKER, 0)->silent, absl::Milliseconds(9500));
  // The heartbeats that waited meanwhile arrive from one of them; the other one is lost.
  const Member worker = *members.Find(pb::ROLE_WORKER, 0);
  MU_ASSERT_OK(members.Heartbeat(Beat(worker), back + absl::Milliseconds(10)));
  const auto lost = ExpireUntil(&members, back + absl::Milliseconds(250), back + absl::Seconds(5));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].role, pb::ROLE_PSSERVER);
  EXPECT_EQ(members.Find(pb::ROLE_WORKER, 0)->silent, absl::Milliseconds(4990));
}

// A heartbeat in the middle of an interval is not charged with all of it.
TEST(Membership, SilenceBeginsWithTheLastHeartbeat) {
  Membership members({.heartbeat = absl::Seconds(1), .timeout = absl::Seconds(10)});
  MU_ASSERT_OK_AND_ASSIGN(auto a, members.Register(Request(pb::ROLE_WORKER, 11), kStart));
  EXPECT_TRUE(members.Expire(kStart).empty());
  MU_ASSERT_OK(members.Heartbeat(Beat(a.member), kStart + absl::Milliseconds(900)));
  EXPECT_TRUE(members.Expire(kStart + absl::Seconds(1)).empty());
  EXPECT_EQ(members.Find(pb::ROLE_WORKER, 0)->silent, absl::Milliseconds(100));
}

TEST(Membership, OneThatWasExpelledMayNotComeBackButItsPlaceMayBeTaken) {
  Membership members({.expected_servers = 1});
  MU_ASSERT_OK(members.Register(Request(pb::ROLE_PSSERVER, 21, 0), kStart));
  const absl::Status refusal = absl::FailedPreconditionError("it cannot read");
  EXPECT_FALSE(members.Expel({pb::ROLE_PSSERVER, 0, Incarnation(20)}, refusal).has_value());
  const auto expelled = members.Expel({pb::ROLE_PSSERVER, 0, Incarnation(21)}, refusal);
  ASSERT_TRUE(expelled.has_value());
  EXPECT_THAT(members.Heartbeat(Beat(*expelled), kStart), HasCode(absl::StatusCode::kNotFound));
  for (int again = 0; again < 2; ++again) {
    const auto refused = members.Register(Request(pb::ROLE_PSSERVER, 21, 0), kStart);
    EXPECT_EQ(refused.status(), refusal);
  }
  EXPECT_EQ(members.Count(pb::ROLE_PSSERVER), 0u);
  EXPECT_EQ(IndexOf(&members, Request(pb::ROLE_PSSERVER, 22, 0)), 0);
}

TEST(Membership, TheLatestThatWereExpelledAreRemembered) {
  Membership members({.expected_servers = 1});
  const auto expelled = [&](uint64_t incarnation) {
    return absl::IsAborted(
        members.Register(Request(pb::ROLE_PSSERVER, incarnation, 0), kStart).status());
  };
  for (uint64_t incarnation = 1; incarnation <= 1001; ++incarnation) {
    ASSERT_FALSE(expelled(incarnation));
    members.Expel({pb::ROLE_PSSERVER, 0, Incarnation(incarnation)}, absl::AbortedError("gone"));
  }
  EXPECT_TRUE(expelled(2));
  EXPECT_TRUE(expelled(1001));
  EXPECT_FALSE(expelled(1));
}

}  // namespace
}  // namespace mu
