// Errors that users have not seen: the first counts, each is told once, groups are apart.
#include "coordinator/core/unseen_errors.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::StatusIs;
using Code = absl::StatusCode;

struct Error {
  explicit Error(absl::Status error) : status(std::move(error)) {}
  absl::Status Report() {
    reported = true;
    return status;
  }
  const absl::Status status;
  bool reported = false;
};

constexpr GroupId kTraining, kEval{1}, kOther{2};

class UnseenErrorsTest : public ::testing::Test {
 protected:
  UnseenErrorsTest() {
    errors_.GroupMade(kEval);
    errors_.GroupMade(kOther);
  }
  // What a Join is told while nothing has ended.
  absl::Status Join(GroupId group) {
    return errors_.Tell(group, /*closed=*/false, absl::OkStatus());
  }
  static absl::Status Fault(const std::string& text) { return absl::InvalidArgumentError(text); }

  UnseenErrors<Error> errors_;
};

TEST_F(UnseenErrorsTest, TheFirstIsToldOnce) {
  MU_EXPECT_OK(Join(kTraining));
  errors_.Failed(kTraining, Fault("first"));
  errors_.Failed(kTraining, Fault("second"));
  EXPECT_THAT(Join(kTraining), StatusIs(Code::kInvalidArgument, "first"));
  MU_EXPECT_OK(Join(kTraining));
  EXPECT_EQ(errors_.Unseen(kTraining), nullptr);
  errors_.Failed(kTraining, Fault("third"));
  EXPECT_THAT(Join(kTraining), StatusIs(Code::kInvalidArgument, "third"));
}

TEST_F(UnseenErrorsTest, ARefusedCallShowsTheErrorBeforeIt) {
  const auto first = errors_.Failed(kTraining, Fault("first"));
  const auto refused = errors_.Failed(kTraining, Fault("of the call"));
  EXPECT_EQ(refused, first);
  EXPECT_EQ(errors_.Unseen(kTraining), first);
  EXPECT_THAT(refused->Report(), StatusIs(Code::kInvalidArgument, "first"));
  MU_EXPECT_OK(Join(kTraining)) << "the call's value has shown it";
  EXPECT_THAT(errors_.Failed(kTraining, Fault("of the call"))->status,
              StatusIs(Code::kInvalidArgument, "of the call"));
  EXPECT_THAT(Join(kTraining), StatusIs(Code::kInvalidArgument, "of the call"))
      << "nobody has looked at the call's value";
}

TEST_F(UnseenErrorsTest, GroupsAreToldTheirOwn) {
  errors_.Failed(kEval, Fault("an evaluation's"));
  MU_EXPECT_OK(Join(kTraining));
  MU_EXPECT_OK(Join(kOther));
  errors_.Failed(kTraining, Fault("training's"));
  EXPECT_THAT(Join(kEval), StatusIs(Code::kInvalidArgument, "an evaluation's"));
  EXPECT_THAT(Join(kTraining), StatusIs(Code::kInvalidArgument, "training's"));
}

TEST_F(UnseenErrorsTest, AGroupThatIsOverKeepsNone) {
  errors_.Failed(kEval, Fault("first"));
  errors_.GroupDropped(kEval);
  EXPECT_EQ(errors_.Unseen(kEval), nullptr);
  EXPECT_THAT(errors_.Failed(kEval, Fault("second"))->status,
              StatusIs(Code::kInvalidArgument, "second"));
  MU_EXPECT_OK(Join(kEval));
}

TEST_F(UnseenErrorsTest, AnEndIsToldAfterTheError) {
  const absl::Status ended = absl::UnavailableError("a server is lost");
  errors_.Failed(kTraining, Fault("first"));
  EXPECT_THAT(errors_.Tell(kTraining, false, ended), StatusIs(Code::kInvalidArgument, "first"));
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(errors_.Tell(kTraining, false, ended),
                StatusIs(Code::kUnavailable, "a server is lost"));
}

TEST_F(UnseenErrorsTest, WhoeverClosesAsksForNoError) {
  errors_.Failed(kTraining, Fault("first"));
  EXPECT_THAT(errors_.Tell(kTraining, /*closed=*/true, absl::CancelledError("closed")),
              StatusIs(Code::kCancelled, "closed"));
}

}  // namespace
}  // namespace mu
