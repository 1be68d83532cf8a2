// Who may load, read and drop views, and when.
#include <gmock/gmock.h>

#include "tests/psserver/core/core_fixture.h"

namespace mu {
namespace {

using ::testing::AllOf;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::StatusIs;
using Step = ViewTurn::Step;

class ServerCoreViewsTest : public testing::ServerCoreTest {
 protected:
  ViewTurn BeginLoad(uint64_t view, const pb::RequestContext& context = Context()) {
    return core_.BeginLoadView(context, view, "files");
  }
  void LoadWhole(uint64_t view) {
    const ViewTurn turn = BeginLoad(view);
    ASSERT_EQ(turn.step, Step::kLoad) << turn.status;
    MU_ASSERT_OK(core_.ReserveView(turn.load, 100, 0, 0));
    MU_ASSERT_OK(core_.EndLoadView(turn.load, absl::OkStatus()));
  }
  absl::Status Pull(uint64_t view, const pb::RequestContext& context = Context()) {
    return core_.AdmitViewPull(context, view);
  }
};

TEST_F(ServerCoreViewsTest, LoadedReadAndDropped) {
  const absl::Status unknown = Pull(4);
  EXPECT_THAT(unknown, StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("view 4"), HasSubstr("LoadView"))));
  EXPECT_EQ(KindOf(unknown), pb::ERROR_NOT_INSTALLED);
  EXPECT_EQ(DetailOf(unknown)->role(), pb::ROLE_PSSERVER);
  LoadWhole(4);
  MU_EXPECT_OK(Pull(4));
  const ViewTurn again = BeginLoad(4);
  EXPECT_EQ(again.step, Step::kAnswer);
  EXPECT_EQ(again.bytes, 100u);
  const ViewTurn other = core_.BeginLoadView(Context(), 4, "other files");
  EXPECT_EQ(other.step, Step::kRefuse);
  EXPECT_THAT(other.status, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(KindOf(other.status), pb::ERROR_USER);
  MU_EXPECT_OK(core_.DropView(Context(), 4));
  MU_EXPECT_OK(core_.DropView(Context(), 4)) << "a repeat";
  EXPECT_EQ(KindOf(Pull(4)), pb::ERROR_NOT_INSTALLED);
  const ViewTurn dropped = BeginLoad(4);
  EXPECT_EQ(dropped.step, Step::kRefuse);
  EXPECT_EQ(KindOf(dropped.status), pb::ERROR_STALE);
  EXPECT_THAT(BeginLoad(0).status, HasCode(absl::StatusCode::kInvalidArgument));
}

// Its values are what they are whatever becomes of the state.
TEST_F(ServerCoreViewsTest, TheStateOfTheServerDoesNotMatter) {
  LoadWhole(4);
  MU_EXPECT_OK(Pull(4, Context(kGeneration - 1))) << "of any generation";
  MU_EXPECT_OK(Pull(4, Context(kGeneration + 1)));
  ASSERT_EQ(BeginRestore(kGeneration + 1, Files()), RestoreTurn::Step::kBegun);
  EXPECT_TRUE(core_.RestoreMayStart()) << "nobody who reads or loads a view holds it up";
  MU_EXPECT_OK(Pull(4));
  LoadWhole(5);
  core_.StartRestore();
  EXPECT_THAT(core_.EndRestore(absl::DataLossError("damaged"), {}),
              HasCode(absl::StatusCode::kDataLoss));
  MU_EXPECT_OK(Pull(4));
  now_ = 5000;
  EXPECT_THAT(core_.Admit(now_, Context(kGeneration + 1)), HasCode(absl::StatusCode::kUnavailable));
  MU_EXPECT_OK(Pull(4)) << "without a lease";
  EXPECT_TRUE(core_.KeepsView(4));
}

TEST_F(ServerCoreViewsTest, WaitsForItsCoordinator) {
  ServerCore fresh({.leased = true, .registers = true});
  MU_ASSERT_OK(fresh.SetIdentity(1, 1, 0));
  const ViewTurn early = fresh.BeginLoadView(Context(), 4, "files");
  EXPECT_THAT(early.status, HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(KindOf(early.status), pb::ERROR_MACHINE) << "it is asked again";
  const absl::Status newer = BeginLoad(4, Context(kGeneration, 0, /*epoch=*/2)).status;
  EXPECT_THAT(newer, HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(KindOf(newer), pb::ERROR_MACHINE);
  LoadWhole(4);  // the epoch has not risen
  EXPECT_THAT(Pull(4, Context(kGeneration, 0, 2)), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(core_.DropView(Context(kGeneration, 0, 2), 4),
              HasCode(absl::StatusCode::kUnavailable));
  MU_EXPECT_OK(Pull(4));
  pb::RequestContext other = Context();
  other.set_job(9);
  EXPECT_EQ(KindOf(Pull(4, other)), pb::ERROR_OTHER_JOB);
  EXPECT_EQ(KindOf(core_.DropView(other, 4)), pb::ERROR_OTHER_JOB);
}

TEST_F(ServerCoreViewsTest, ANewerCoordinatorDropsTheViewsOfTheOneBefore) {
  LoadWhole(4);
  const ViewTurn under_way = BeginLoad(5);
  const pb::RequestContext newer = Context(kGeneration, 0, /*epoch=*/2);
  MU_ASSERT_OK(core_.BeginConfigure(newer).status());
  EXPECT_FALSE(core_.KeepsView(4)) << "whatever makes its epoch known";
  core_.EndConfigure(newer, DefinitionsChange::kNone);
  EXPECT_EQ(KindOf(Pull(4)), pb::ERROR_STALE);
  EXPECT_EQ(KindOf(Pull(4, newer)), pb::ERROR_NOT_INSTALLED) << "its own numbers";
  const absl::Status ended = core_.EndLoadView(under_way.load, absl::OkStatus());
  EXPECT_EQ(KindOf(ended), pb::ERROR_STALE);
  EXPECT_EQ(core_.views().bytes(), 0u);
  EXPECT_EQ(BeginLoad(5).step, Step::kRefuse);
  EXPECT_EQ(BeginLoad(5, newer).step, Step::kLoad);
}

TEST_F(ServerCoreViewsTest, FurtherPartitionsMakeItLoadAgain) {
  LoadWhole(4);
  core_.EndConfigure(Context(), DefinitionsChange::kNone);
  EXPECT_EQ(BeginLoad(4).step, Step::kAnswer);
  core_.EndConfigure(Context(), DefinitionsChange::kAdded);
  MU_EXPECT_OK(Pull(4));
  EXPECT_EQ(BeginLoad(4).step, Step::kLoad);
  EXPECT_EQ(BeginLoad(4).step, Step::kWait);
}

TEST_F(ServerCoreViewsTest, HasTheRoomThatTheStateAndOtherViewsLeave) {
  const ViewTurn first = BeginLoad(1), second = BeginLoad(2);
  const uint64_t used = 1000, most = 1100;
  MU_EXPECT_OK(core_.ReserveView(first.load, 60, used, most));
  const absl::Status full = core_.ReserveView(second.load, 41, used, most);
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted,
                             AllOf(HasSubstr("view 2"), HasSubstr("--memory_limit"))));
  EXPECT_EQ(KindOf(full), pb::ERROR_USER);
  EXPECT_EQ(core_.views().bytes(), 60u);
  EXPECT_EQ(core_.EndLoadView(second.load, full), full);
  const ViewTurn third = BeginLoad(3);
  MU_EXPECT_OK(core_.ReserveView(third.load, 40, used, most));
  EXPECT_THAT(core_.ReserveView(BeginLoad(6).load, 0, 2000, most),
              HasCode(absl::StatusCode::kResourceExhausted))
      << "the state alone is too large";
  MU_EXPECT_OK(core_.ReserveView(third.load, 40, used, most)) << "in place of what it had";
  const uint64_t mb = 1 << 20;
  EXPECT_THAT(core_.ReserveView(third.load, 3 * mb - mb / 10, 6 * mb - mb / 10, 8 * mb),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("which has 2.9 MB: the server holds 5.9 MB of values and slots, "
                                 "and may hold 8.0 MB")))
      << "with the 60 bytes of the first";
  EXPECT_THAT(core_.ReserveView(third.load, 41, used, most),
              HasCode(absl::StatusCode::kResourceExhausted));
}

TEST_F(ServerCoreViewsTest, GivesItsRoomToRows) {
  LoadWhole(4);  // 100 bytes
  const ViewTurn other = BeginLoad(5);
  MU_ASSERT_OK(core_.ReserveView(other.load, 50, 0, 0));
  MU_EXPECT_OK(core_.MayLoadView(other.load));
  bool gave_up = false;
  MU_EXPECT_OK(core_.CheckRoom(850, 1000, &gave_up));
  EXPECT_FALSE(gave_up);
  const absl::Status full = core_.CheckRoom(1000, 1000, &gave_up);
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("--memory_limit")));
  EXPECT_EQ(KindOf(full), pb::ERROR_USER);
  EXPECT_FALSE(gave_up) << "it would not help";
  MU_EXPECT_OK(core_.CheckRoom(851, 1000, &gave_up));
  EXPECT_TRUE(gave_up);
  EXPECT_EQ(core_.views().bytes(), 0u);
  EXPECT_FALSE(core_.KeepsView(4));
  EXPECT_EQ(KindOf(Pull(4)), pb::ERROR_NOT_INSTALLED);
  EXPECT_THAT(core_.MayLoadView(other.load), HasCode(absl::StatusCode::kResourceExhausted));
  const absl::Status ended = core_.EndLoadView(other.load, absl::OkStatus());
  EXPECT_THAT(ended, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("--memory_limit")));
  EXPECT_EQ(KindOf(ended), pb::ERROR_USER);
  EXPECT_EQ(BeginLoad(4).step, Step::kLoad) << "where there is room again";
}

TEST_F(ServerCoreViewsTest, GivesItsRoomToVariables) {
  LoadWhole(4);  // 100 bytes
  bool gave_up = false;
  const absl::Status full = core_.CheckRoomForVariables(1001, 1000, &gave_up);
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("--memory_limit")));
  EXPECT_EQ(KindOf(full), pb::ERROR_USER);
  MU_EXPECT_OK(core_.CheckRoomForVariables(900, 1000, &gave_up));
  EXPECT_FALSE(gave_up);
  EXPECT_TRUE(core_.KeepsView(4));
  MU_EXPECT_OK(core_.CheckRoomForVariables(1000, 1000, &gave_up)) << "exactly full";
  EXPECT_TRUE(gave_up);
  EXPECT_FALSE(core_.KeepsView(4));
}

}  // namespace
}  // namespace mu
