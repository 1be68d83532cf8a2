// Assignments: once each, however often and however late their requests come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "common/env/file.h"
#include "psserver/server.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::AssignAndWait;
using testing::Bytes;
using testing::CountingPush;
using testing::Frame;
using testing::HasCode;
using testing::PushAndWait;

constexpr uint32_t kSteps = 2;    // a variable of SmallModel: int64 []
constexpr uint32_t kAverage = 4;  // float32 [3]
constexpr size_t kAverageElements = 3;

class AssignTest : public ::testing::Test {
 protected:
  AssignTest() {
    context_.set_job(1);
    context_.set_epoch(1);
    context_.set_generation(1);
    Configure(&server_);
  }

  void Configure(PsServer* server) {
    pb::ConfigurePsRequest request;
    *request.mutable_context() = context_;
    *request.mutable_routing() = testing::SmallModel(1);
    MU_ASSERT_OK(server->Configure(request));
  }
  pb::AssignRequest Assignment(uint64_t place, int64_t value) const {
    pb::AssignRequest request;
    *request.mutable_context() = context_;
    request.set_function(place);
    request.set_variable(kSteps);
    request.set_value(Bytes<int64_t>({value}));
    return request;
  }
  int64_t Steps(PsServer* server) {
    pb::PullRequest request;
    *request.mutable_context() = context_;
    request.add_variables()->set_variable(kSteps);
    const auto reply = server->Pull(Frame(request, ""));
    EXPECT_THAT(reply, testing::IsOk());
    pb::PullReply header;
    const auto payload = ParseFrame(*reply, &header);
    int64_t steps = -1;
    if (payload.ok() && payload->size() == 8) std::memcpy(&steps, payload->data(), 8);
    return steps;
  }

  Telemetry telemetry_;
  PsServer server_{{.telemetry = &telemetry_}};
  pb::RequestContext context_;
};

TEST_F(AssignTest, ChecksWhatItIsGiven) {
  pb::AssignRequest request = Assignment(1, 41);
  MU_ASSERT_OK(AssignAndWait(&server_, request));
  EXPECT_EQ(Steps(&server_), 41);
  request.set_function(2);
  request.set_value("short");
  EXPECT_THAT(AssignAndWait(&server_, request), HasCode(absl::StatusCode::kInvalidArgument));
  request.set_partition(1);
  EXPECT_THAT(AssignAndWait(&server_, request), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(AssignAndWait(&server_, Assignment(0, 5)),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Steps(&server_), 41);
  MU_EXPECT_OK(AssignAndWait(&server_, Assignment(2, 5))) << "what was refused may come again";
  EXPECT_EQ(Steps(&server_), 5);
}

// Whatever the mistake that leads to it: the second one would be lost without a word.
TEST_F(AssignTest, ASecondAssignmentUnderOnePlaceIsNoRepeat) {
  MU_ASSERT_OK(AssignAndWait(&server_, Assignment(1, 100)));
  const auto expect_refused = [&](const pb::AssignRequest& request) {
    EXPECT_THAT(AssignAndWait(&server_, request),
                testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                  ::testing::HasSubstr("place 1 among the functions")));
  };
  expect_refused(Assignment(1, 101));
  pb::AssignRequest other = Assignment(1, 0);
  other.set_variable(kAverage);
  other.set_value(Bytes<float>(std::vector<float>(kAverageElements, 1)));
  expect_refused(other);
  EXPECT_EQ(Steps(&server_), 100);
  MU_ASSERT_OK_AND_ASSIGN(const pb::AssignReply reply, AssignAndWait(&server_, Assignment(1, 100)));
  EXPECT_TRUE(reply.repeated());
  other.set_function(2);
  MU_EXPECT_OK(AssignAndWait(&server_, other));
}

TEST_F(AssignTest, ValuesMustBeFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    pb::AssignRequest request = Assignment(1, 0);
    request.set_variable(kAverage);
    std::vector<float> values(kAverageElements, 1);
    values.back() = bad;
    request.set_value(Bytes<float>(values));
    EXPECT_THAT(AssignAndWait(&server_, request),
                testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                  ::testing::HasSubstr("'average' holds NaN or infinity")));
  }
  MU_EXPECT_OK(AssignAndWait(&server_, Assignment(1, 5))) << "the place is still free";
}

TEST_F(AssignTest, ALateCopyOverwritesNothing) {
  const pb::AssignRequest first = Assignment(1, 100);
  MU_ASSERT_OK_AND_ASSIGN(pb::AssignReply reply, AssignAndWait(&server_, first));
  EXPECT_FALSE(reply.repeated());
  MU_ASSERT_OK(PushAndWait(&server_, CountingPush(context_, 2, 0)));
  MU_ASSERT_OK_AND_ASSIGN(reply, AssignAndWait(&server_, first));
  EXPECT_TRUE(reply.repeated());
  EXPECT_EQ(Steps(&server_), 101);

  // Every function of before is finished: what was remembered of them is forgotten, and their
  // requests are refused.
  context_.set_low_water(3);
  MU_ASSERT_OK(PushAndWait(&server_, CountingPush(context_, 3, 0)));
  const absl::Status late = AssignAndWait(&server_, first).status();
  EXPECT_THAT(late, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(KindOf(late), pb::ERROR_STALE);
  EXPECT_EQ(Steps(&server_), 102);
  MU_ASSERT_OK_AND_ASSIGN(const pb::PsStatsReply stats, server_.GetStats(pb::PsStatsRequest()));
  EXPECT_EQ(stats.remembered_steps(), 1u);
}

TEST_F(AssignTest, CopiesAtTheSameTimeAreOne) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t place = 1; place <= 50; ++place) {
        MU_EXPECT_OK(AssignAndWait(&server_, Assignment(2 * place, 1000)));
        // It comes after an assignment that is over, so no copy of that may undo it.
        MU_EXPECT_OK(
            PushAndWait(&server_, CountingPush(context_, 2 * place + 1, static_cast<uint32_t>(t))));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(Steps(&server_), 1004) << "every thread has pushed after the last assignment";
  MU_ASSERT_OK_AND_ASSIGN(const pb::PsStatsReply stats, server_.GetStats(pb::PsStatsRequest()));
  EXPECT_EQ(stats.repeated_pushes(), 150u) << "three of four copies";
}

// A checkpoint remembers what was assigned, partition by partition, as it remembers pushes.
TEST_F(AssignTest, ARestoredStateKnowsItsAssignments) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-assign"));
  MU_ASSERT_OK(AssignAndWait(&server_, Assignment(1, 100)));
  MU_ASSERT_OK(PushAndWait(&server_, CountingPush(context_, 2, 0)));
  pb::SaveRequest save;
  *save.mutable_context() = context_;
  save.set_directory(directory.path());
  save.set_file("file");
  MU_ASSERT_OK_AND_ASSIGN(const pb::SaveReply saved, server_.Save(save));
  MU_ASSERT_OK(AssignAndWait(&server_, Assignment(3, 500)));

  PsServer restored({.telemetry = &telemetry_});
  Configure(&restored);
  pb::RestoreRequest restore;
  *restore.mutable_context() = context_;
  restore.set_directory(directory.path());
  *restore.add_files() = saved.file();
  MU_ASSERT_OK(restored.Restore(restore));
  MU_ASSERT_OK_AND_ASSIGN(pb::AssignReply reply, AssignAndWait(&restored, Assignment(1, 100)));
  EXPECT_TRUE(reply.repeated());
  EXPECT_EQ(Steps(&restored), 101) << "the file holds it and the push after it";
  MU_ASSERT_OK_AND_ASSIGN(reply, AssignAndWait(&restored, Assignment(3, 500)));
  EXPECT_FALSE(reply.repeated());
  EXPECT_EQ(Steps(&restored), 500);
}

}  // namespace
}  // namespace mu
