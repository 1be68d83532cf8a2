#include "coordinator/core/restore_fault.h"

#include "common/base/cannot_read.h"
#include "coordinator/core/old_leases.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;

RestoreFault FaultOf(const absl::Status& status) { return mu::FaultOf(CallError::Of(status)); }

absl::Status OfServer(absl::Status status, uint32_t server) {
  pb::ErrorDetail detail = DetailOf(status).value_or(pb::ErrorDetail());
  if (detail.kind() == pb::ERROR_UNSPECIFIED) detail.set_kind(KindOf(status));
  detail.set_role(pb::ROLE_PSSERVER);
  detail.set_index(server);
  return WithDetail(std::move(status), detail);
}

// Whatever the system says: no such file, no permission, an error of the disk.
const absl::Status kUnreadable[] = {
    OfServer(CannotRead(absl::NotFoundError("cannot open ps-0")), 1),
    OfServer(CannotRead(absl::PermissionDeniedError("cannot open ps-0")), 1),
    OfServer(CannotRead(absl::DataLossError("cannot read ps-0")), 1),
    OfServer(CannotRead(absl::ResourceExhaustedError("cannot open ps-0")), 1),
};

TEST(RestoreFault, AServerThatCannotReadIsAtFaultAndNoCheckpoint) {
  for (const absl::Status& status : kUnreadable) {
    EXPECT_EQ(FaultOf(status), RestoreFault::kServer) << status;
    EXPECT_FALSE(IsBadCheckpoint(status)) << status;
    EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE);
  }
  EXPECT_EQ(FaultOf(CannotRead(absl::NotFoundError("of no server"))), RestoreFault::kTryAgain);
}

TEST(RestoreFault, SizeSumAndContentAreTheCheckpoints) {
  EXPECT_EQ(FaultOf(OfServer(absl::DataLossError("its CRC32C"), 1)), RestoreFault::kCheckpoint);
  EXPECT_EQ(FaultOf(absl::DataLossError("the manifest does not parse")), RestoreFault::kCheckpoint);
  EXPECT_EQ(FaultOf(absl::NotFoundError("there is no manifest")), RestoreFault::kCheckpoint);
}

TEST(RestoreFault, OtherErrorsGoByTheirKind) {
  EXPECT_EQ(FaultOf(absl::UnavailableError("no answer")), RestoreFault::kTryAgain);
  pb::ErrorDetail stale;
  stale.set_kind(pb::ERROR_STALE);
  EXPECT_EQ(FaultOf(WithDetail(absl::FailedPreconditionError("older"), stale)),
            RestoreFault::kTryAgain);
  EXPECT_EQ(FaultOf(absl::InvalidArgumentError("another type")), RestoreFault::kFatal);
}

TEST(RestoreFault, WhatServersFindInARenamedFolderCountsForNothing) {
  for (const absl::Status& found :
       {absl::OkStatus(), kUnreadable[0], absl::DataLossError("torn")}) {
    const CallError after = AfterRename(CallError::Of(found), "runs/best");
    EXPECT_THAT(after.status, StatusIs(absl::StatusCode::kUnavailable,
                                       HasSubstr("the checkpoint runs/best has been renamed")));
    EXPECT_EQ(mu::FaultOf(after), RestoreFault::kTryAgain);
    EXPECT_EQ(AfterRename(CallError::Of(found), "").status, found) << "it has its name";
  }
}

TEST(RestoreFault, ALookAtTheFilesDecides) {
  for (const absl::Status& status : kUnreadable) {
    const absl::Status there = AfterLook(status, absl::OkStatus());
    EXPECT_EQ(FaultOf(there), RestoreFault::kServer);
    EXPECT_EQ(DetailOf(there)->index(), 1u);
    EXPECT_THAT(there, StatusIs(status.code(),
                                AllOf(HasSubstr("ps-0"), HasSubstr("the server is at fault"))));
    const absl::Status missing = AfterLook(status, absl::NotFoundError("ps-0 is missing"));
    EXPECT_EQ(FaultOf(missing), RestoreFault::kCheckpoint);
    EXPECT_THAT(missing, StatusIs(absl::StatusCode::kNotFound, "ps-0 is missing"));
    EXPECT_EQ(FaultOf(AfterLook(status, absl::DataLossError("ps-0 is too short"))),
              RestoreFault::kCheckpoint);
    // A disk that nobody can read, the coordinator included: no server and no checkpoint is at
    // fault.
    const absl::Status nobody =
        AfterLook(status, CannotRead(absl::DataLossError("cannot look at ps-0")));
    EXPECT_EQ(FaultOf(nobody), RestoreFault::kTryAgain);
    EXPECT_EQ(KindOf(nobody), pb::ERROR_MACHINE);
  }
}

TEST(OldLeases, LastUntilTheyEndOrTheProcessIsDead) {
  const absl::Time start = absl::UnixEpoch();
  OldLeases leases;
  EXPECT_EQ(leases.last(), absl::InfinitePast());
  leases.Add(1, start + absl::Seconds(5));
  leases.Add(2, start + absl::Seconds(9));
  leases.Add(2, start + absl::Seconds(7));
  EXPECT_EQ(leases.last(), start + absl::Seconds(9));
  leases.Ended(3);
  leases.Ended(2);
  EXPECT_EQ(leases.last(), start + absl::Seconds(5));
  leases.Forget(start + absl::Seconds(4));
  EXPECT_EQ(leases.last(), start + absl::Seconds(5));
  leases.Forget(start + absl::Seconds(5));
  EXPECT_EQ(leases.last(), absl::InfinitePast());
}

}  // namespace
}  // namespace mu
