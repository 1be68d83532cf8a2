// Calls to several servers at once: what ends the group, and what it ends.
#include "common/client/ps_calls.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error_kind.h"
#include "tests/testing/held_channel.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::HeldChannel;
using testing::StatusIs;

constexpr size_t kServers = 3;

class PsCallGroupTest : public ::testing::Test {
 protected:
  ~PsCallGroupTest() override {
    if (running_.joinable()) running_.join();
  }
  void Run(RetryPolicy policy = {.first_backoff = absl::Milliseconds(1)}) {
    running_ = std::thread([this, policy] {
      std::vector<PsCall> calls;
      for (uint32_t s = 0; s < kServers; ++s) calls.push_back({s, channels_[s], "/Pull", Buffer()});
      result_ = group_.Run(std::move(calls), policy, [this](size_t call, const Buffer&) {
        replied_.push_back(call);
        return of_reply_;
      });
    });
  }
  void WaitForAll() {
    for (size_t s = 0; s < kServers; ++s) calls_.push_back(channels_[s]->Next());
  }
  absl::Status Result() {
    running_.join();
    return result_;
  }

  const std::vector<std::shared_ptr<HeldChannel>> channels_ = {std::make_shared<HeldChannel>(),
                                                               std::make_shared<HeldChannel>(),
                                                               std::make_shared<HeldChannel>()};
  std::vector<std::shared_ptr<HeldChannel::Call>> calls_;
  PsCallGroup group_;
  absl::Status of_reply_;
  std::vector<size_t> replied_;
  absl::Status result_;
  std::thread running_;
};

TEST_F(PsCallGroupTest, SucceedsWhenEachHasAnsweredAndCancelsNothing) {
  Run();
  WaitForAll();
  for (const size_t s : {2, 0, 1}) calls_[s]->Answer(absl::OkStatus());
  MU_EXPECT_OK(Result());
  EXPECT_EQ(replied_.size(), kServers);
  for (const auto& call : calls_) EXPECT_FALSE(call->cancelled);
}

// A pull that nobody waits for would hold up the server's next one.
TEST_F(PsCallGroupTest, ARefusalEndsTheCallsUnderWay) {
  Run();
  WaitForAll();
  calls_[1]->Answer(
      WithKind(absl::FailedPreconditionError("old"), pb::ERROR_STALE, pb::ROLE_PSSERVER));
  EXPECT_THAT(Result(), StatusIs(absl::StatusCode::kFailedPrecondition, "old"));
  EXPECT_TRUE(calls_[0]->cancelled);
  EXPECT_TRUE(calls_[2]->cancelled);
  // What they still say is nobody's.
  calls_[0]->Answer(absl::OkStatus());
  calls_[2]->Answer(absl::CancelledError("cancelled"));
  EXPECT_TRUE(replied_.empty());
}

TEST_F(PsCallGroupTest, AReplyThatIsWrongEndsTheCallsUnderWay) {
  of_reply_ = absl::InternalError("it does not parse");
  Run();
  WaitForAll();
  calls_[0]->Answer(absl::OkStatus());
  EXPECT_THAT(Result(), StatusIs(absl::StatusCode::kInternal, "it does not parse"));
  EXPECT_TRUE(calls_[1]->cancelled);
  EXPECT_TRUE(calls_[2]->cancelled);
}

TEST_F(PsCallGroupTest, WhatTheMachineLosesIsSentAgainToThatServerAlone) {
  Run();
  WaitForAll();
  calls_[0]->Answer(absl::UnavailableError("refused"));
  const auto again = channels_[0]->Next();
  calls_[1]->Answer(absl::OkStatus());
  calls_[2]->Answer(absl::OkStatus());
  again->Answer(absl::OkStatus());
  MU_EXPECT_OK(Result());
  for (const auto& channel : channels_) EXPECT_EQ(channel->waiting(), 0u);
}

TEST_F(PsCallGroupTest, IsGivenUpInTheNameOfTheServerThatDoesNotAnswer) {
  Run({.total_timeout = absl::ZeroDuration()});
  WaitForAll();
  calls_[2]->Answer(absl::UnavailableError("refused"));
  const absl::Status status = Result();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("refused")));
  EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE);
  EXPECT_EQ(DetailOf(status)->role(), pb::ROLE_PSSERVER);
  EXPECT_EQ(DetailOf(status)->index(), 2u);
  EXPECT_TRUE(calls_[0]->cancelled);
  EXPECT_TRUE(calls_[1]->cancelled);
}

TEST_F(PsCallGroupTest, CancelEndsTheCallsUnderWayAndThoseToCome) {
  Run();
  WaitForAll();
  group_.Cancel();
  EXPECT_THAT(Result(), HasCode(absl::StatusCode::kCancelled));
  for (const auto& call : calls_) EXPECT_TRUE(call->cancelled);
  Run();
  EXPECT_THAT(Result(), HasCode(absl::StatusCode::kCancelled));
  for (const auto& channel : channels_) EXPECT_EQ(channel->waiting(), 0u) << "nothing was sent";
  group_.ResetCancel();
  calls_.clear();
  Run();
  WaitForAll();
  for (const auto& call : calls_) call->Answer(absl::OkStatus());
  MU_EXPECT_OK(Result());
}

}  // namespace
}  // namespace mu
