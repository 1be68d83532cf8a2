// A server whose heartbeats arrive while its work moves no byte is replaced.
#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using testing::CoreDriver;

constexpr int kSilences = 30;  // heartbeats in three timeouts

class CoreStall : public ::testing::Test {
 protected:
  // A heartbeat interval in which both servers say what they have moved, if they are busy.
  std::string Pass(std::optional<uint64_t> moved0, std::optional<uint64_t> moved1) {
    d_.now += CoreDriver::kHeartbeat;
    d_.Beat(pb::ROLE_PSSERVER, incarnation0_, 0, moved0);
    d_.Beat(pb::ROLE_PSSERVER, 101, 1, moved1);
    return d_.Step(event::Tick{});
  }
  // Server 1 has said `moved` once, and says so until it is lost. What the core wants then.
  std::string Stall(uint64_t moved, std::optional<uint64_t> moved0 = std::nullopt) {
    for (int i = 0; i < kSilences; ++i) EXPECT_EQ(Pass(moved0, moved), "") << i;
    return Pass(moved0, moved);
  }

  CoreDriver d_{2};
  uint64_t incarnation0_ = 100;
};

TEST_F(CoreStall, DuringASaveTheCheckpointIsGivenUp) {
  d_.Serve(0);
  EXPECT_EQ(d_.Want(2, {.kind = ServerTask::Kind::kSave}), "save 1");
  EXPECT_EQ(Pass(std::nullopt, 5), "");
  EXPECT_EQ(Stall(5), "server 1 hangs; aborted 1; done 2 UNAVAILABLE; interrupt; pause");
  EXPECT_GT(d_.core.failures().failures().back().detection_latency_seconds, 29);
  EXPECT_EQ(d_.Join(pb::ROLE_PSSERVER, 101, 1), "refuse FAILED_PRECONDITION");
}

TEST_F(CoreStall, DuringTheLoadOfARecovery) {
  d_.Serve(0);
  d_.Step(event::DaemonDied{100});
  incarnation0_ = 200;
  EXPECT_EQ(d_.Join(pb::ROLE_PSSERVER, 200, 0),
            "server 0 joins; 0 steps of 0 functions since the beginning will run again; round 2 "
            "from 0: restore 0, restore 1");
  EXPECT_EQ(Pass(7, 5), "");
  EXPECT_EQ(Stall(5), "server 1 hangs; interrupt");
  EXPECT_EQ(d_.Join(pb::ROLE_PSSERVER, 101, 1), "refuse FAILED_PRECONDITION");
  EXPECT_THAT(d_.Join(pb::ROLE_PSSERVER, 201, 1),
              ::testing::HasSubstr("round 3 from 0: restore 0, restore 1"));
}

TEST_F(CoreStall, DuringTheFirstConfigure) {
  for (uint32_t s = 0; s < 2; ++s) d_.Join(pb::ROLE_PSSERVER, 100 + s, static_cast<int>(s));
  d_.Step(event::EnableRecovery{});
  d_.Step(event::CatalogChanged{.parameters = 1});
  EXPECT_EQ(d_.Want(1, {}), "configure in 1");
  EXPECT_EQ(Pass(std::nullopt, 5), "");
  EXPECT_EQ(Stall(5), "server 1 hangs; interrupt");
  EXPECT_EQ(d_.Join(pb::ROLE_PSSERVER, 201, 1), "server 1 joins; configure in 1");
}

TEST_F(CoreStall, WithoutRecoveryTheJobEnds) {
  d_.Serve(0, /*recovery=*/false);
  EXPECT_EQ(Pass(std::nullopt, 5), "");
  EXPECT_EQ(Stall(5), "server 1 hangs; interrupt; end UNAVAILABLE");
}

TEST_F(CoreStall, WorkThatMovesNowAndThenGoesOn) {
  d_.Serve(0);
  for (uint64_t moved = 1; moved <= 5; ++moved) {
    for (int i = 0; i < kSilences; ++i) EXPECT_EQ(Pass(std::nullopt, moved), "") << moved << i;
  }
}

TEST_F(CoreStall, OneThatIsNotBusyNeedNotMove) {
  d_.Serve(0);
  for (int i = 0; i < 10 * kSilences; ++i) EXPECT_EQ(Pass(std::nullopt, std::nullopt), "");
}

TEST_F(CoreStall, EachCallHasItsOwnTime) {
  d_.Serve(0);
  for (int call = 0; call < 5; ++call) {
    for (int i = 0; i < kSilences; ++i) EXPECT_EQ(Pass(std::nullopt, 5), "") << i;
    EXPECT_EQ(Pass(std::nullopt, std::nullopt), "");
  }
}

TEST_F(CoreStall, BothMayStallAtOnce) {
  d_.Serve(0);
  EXPECT_EQ(Pass(5, 5), "");
  EXPECT_EQ(Stall(5, 5), "server 0 hangs; interrupt; pause; server 1 hangs; interrupt");
}

TEST_F(CoreStall, TimeInWhichTheCoordinatorWasStoppedCountsForNobody) {
  d_.Serve(0);
  EXPECT_EQ(Pass(std::nullopt, 5), "");
  for (int i = 0; i < 10; ++i) {
    d_.now += absl::Hours(1);
    EXPECT_EQ(Pass(std::nullopt, 5), "") << "two intervals at most";
  }
  for (int i = 20; i < kSilences; ++i) EXPECT_EQ(Pass(std::nullopt, 5), "");
  EXPECT_EQ(Pass(std::nullopt, 5), "server 1 hangs; interrupt; pause");
}

TEST_F(CoreStall, WhatHappensAfterItsLastHeartbeatIsNotKnown) {
  d_.Serve(0);
  EXPECT_EQ(Pass(std::nullopt, 5), "");
  for (int i = 0; i < kSilences - 5; ++i) EXPECT_EQ(Pass(std::nullopt, 5), "");
  for (int i = 0; i < 8; ++i) {
    d_.Beat(pb::ROLE_PSSERVER, 100, 0);
    EXPECT_EQ(d_.TickAfter(CoreDriver::kHeartbeat), "") << "it may have moved";
  }
  EXPECT_EQ(Pass(std::nullopt, 6), "");
}

}  // namespace
}  // namespace mu
