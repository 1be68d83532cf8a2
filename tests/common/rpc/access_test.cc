#include "common/rpc/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(Access, WorkersReadAndWriteParametersAndNothingElseOfAServer) {
  EXPECT_THAT(CallersOf("/muster.PsServer/Pull"),
              UnorderedElementsAre(pb::ROLE_COORDINATOR, pb::ROLE_WORKER));
  EXPECT_THAT(CallersOf("/muster.PsServer/Push"),
              UnorderedElementsAre(pb::ROLE_COORDINATOR, pb::ROLE_WORKER));
  for (const char* method : {"Configure", "Scan", "Assign", "Fence", "Save", "Restore", "LoadView",
                             "DropView", "GetStats"})
    EXPECT_THAT(CallersOf(std::string("/muster.PsServer/") + method),
                ElementsAre(pb::ROLE_COORDINATOR))
        << method;
}

TEST(Access, OnlyTheCoordinatorGivesWorkersWork) {
  for (const char* method : {"Configure", "Run", "CancelRuns", "InstallFunction"})
    EXPECT_THAT(CallersOf(std::string("/muster.Worker/") + method),
                ElementsAre(pb::ROLE_COORDINATOR))
        << method;
}

TEST(Access, DaemonsRegisterAndEverybodyMayLook) {
  for (const char* method : {"Register", "Heartbeat", "Leave"})
    EXPECT_THAT(CallersOf(std::string("/muster.Coordinator/") + method),
                UnorderedElementsAre(pb::ROLE_WORKER, pb::ROLE_PSSERVER))
        << method;
  EXPECT_EQ(CallersOf("/muster.Coordinator/GetStatus").size(), 3u);
}

TEST(Access, WhatNobodyKnowsIsForNobody) {
  EXPECT_THAT(CallersOf("/muster.New/Call"), IsEmpty());
  EXPECT_THAT(CheckAccess("/muster.New/Call", {"coordinator.muster"}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("nobody")));
}

TEST(Access, NamesBothSides) {
  MU_EXPECT_OK(CheckAccess("/muster.PsServer/Pull", {"host.example", "worker.muster"}));
  const absl::Status refused = CheckAccess("/muster.PsServer/Save", {"worker.muster"});
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kPermissionDenied,
                                AllOf(HasSubstr("coordinator.muster"), HasSubstr("worker.muster"),
                                      HasSubstr("/muster.PsServer/Save"))));
  EXPECT_EQ(KindOf(refused), pb::ERROR_USER) << "no use in trying again";
  EXPECT_THAT(CheckAccess("/muster.PsServer/Save", {}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("nobody")));
  EXPECT_THAT(CheckAccess("/muster.PsServer/Save", {"coordinator.muster.example"}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("coordinator.muster")));
}

}  // namespace
}  // namespace mu
