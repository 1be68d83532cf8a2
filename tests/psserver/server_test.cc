// The server's handlers without a transport: who is admitted, what is refused, and that everything
// may come twice.
#include "psserver/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "common/base/hash.h"
#include "common/client/applied_full.h"
#include "common/env/file.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::Bytes;
using ::mu::testing::CountingPush;
using ::mu::testing::Frame;
using ::mu::testing::HasCode;
using ::mu::testing::PushAndWait;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

class PsServerTest : public ::testing::Test {
 protected:
  PsServerTest() : server_({.clock = &clock_, .telemetry = &telemetry_}) {
    context_.set_job(1);
    context_.set_epoch(1);
    context_.set_generation(1);
  }

  absl::Status Configure() {
    pb::ConfigurePsRequest request;
    *request.mutable_context() = context_;
    *request.mutable_routing() = testing::SmallModel(1);
    return server_.Configure(request).status();
  }
  absl::StatusOr<Buffer> PullSteps() {
    pb::PullRequest request;
    *request.mutable_context() = context_;
    request.add_variables()->set_variable(2);
    return server_.Pull(Frame(request, ""));
  }
  int64_t Steps() {
    const auto reply = PullSteps();
    EXPECT_THAT(reply, testing::IsOk());
    pb::PullReply header;
    const auto payload = ParseFrame(*reply, &header);
    int64_t steps = -1;
    if (payload.ok() && payload->size() == 8) std::memcpy(&steps, payload->data(), 8);
    return steps;
  }
  // A push of one row's gradient to table `table`.
  Buffer RowPush(uint32_t table, uint32_t partition, std::vector<int64_t> ids,
                 std::vector<float> gradients) {
    pb::PushRequest request;
    *request.mutable_context() = context_;
    request.set_function(++next_function_);
    auto* keys = request.add_tables();
    keys->set_table(table);
    keys->add_partitions(partition);
    keys->add_counts(ids.size());
    return Frame(request, Bytes(ids) + Bytes(gradients));
  }

  ManualClock clock_{1000000};
  Telemetry telemetry_;
  PsServer server_;
  pb::RequestContext context_;
  uint64_t next_function_ = 100;
};

TEST_F(PsServerTest, NothingIsServedBeforeConfigure) {
  EXPECT_THAT(PullSteps(), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(PushAndWait(&server_, CountingPush(context_, 1, 0)),
              HasCode(absl::StatusCode::kUnavailable));
  MU_ASSERT_OK(Configure());
  MU_ASSERT_OK(Configure());
  EXPECT_EQ(Steps(), 0);
}

TEST_F(PsServerTest, AnotherJobIsRefused) {
  MU_ASSERT_OK(Configure());
  context_.set_job(2);
  for (const absl::Status& status :
       {Configure(), PullSteps().status(),
        PushAndWait(&server_, CountingPush(context_, 1, 0)).status()}) {
    EXPECT_THAT(status, HasCode(absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ(KindOf(status), pb::ERROR_OTHER_JOB);
  }
  context_.set_job(0);
  EXPECT_THAT(PullSteps(), HasCode(absl::StatusCode::kInvalidArgument));
}

TEST_F(PsServerTest, TheRegisteredJobIsTheOnlyOneThatMayConfigure) {
  MU_ASSERT_OK(server_.SetIdentity(/*job=*/9, /*epoch=*/4, /*index=*/0));
  EXPECT_EQ(KindOf(Configure()), pb::ERROR_OTHER_JOB);
  context_.set_job(9);
  EXPECT_EQ(KindOf(Configure()), pb::ERROR_STALE)
      << "epoch 1 is older than the one registered with";
  context_.set_epoch(4);
  MU_EXPECT_OK(Configure());
}

// Whose partitions it holds from then on.
TEST_F(PsServerTest, ItsIndexMayChangeUntilSomebodyConfiguresIt) {
  MU_ASSERT_OK(server_.SetIdentity(/*job=*/1, /*epoch=*/1, /*index=*/1));
  EXPECT_FALSE(server_.placed());
  EXPECT_EQ(KindOf(Configure()), pb::ERROR_STALE) << "it is meant for server 0";
  EXPECT_FALSE(server_.placed());
  MU_ASSERT_OK(server_.SetIdentity(1, 1, 0));
  MU_ASSERT_OK(Configure());
  EXPECT_TRUE(server_.placed());
  MU_EXPECT_OK(server_.SetIdentity(1, 2, 0));
  EXPECT_EQ(KindOf(server_.SetIdentity(1, 2, 1)), pb::ERROR_OTHER_JOB);
}

TEST_F(PsServerTest, OlderEpochsAndGenerationsAreRefused) {
  context_.set_epoch(5);
  context_.set_generation(3);
  MU_ASSERT_OK(Configure());
  context_.set_epoch(4);
  EXPECT_EQ(KindOf(PullSteps().status()), pb::ERROR_STALE);
  EXPECT_EQ(KindOf(Configure()), pb::ERROR_STALE);
  context_.set_epoch(5);
  context_.set_generation(2);
  EXPECT_EQ(KindOf(PullSteps().status()), pb::ERROR_STALE);
  context_.set_generation(4);
  EXPECT_THAT(PullSteps(), HasCode(absl::StatusCode::kUnavailable))
      << "not restored to that generation yet";
  context_.set_generation(3);
  EXPECT_EQ(Steps(), 0);
}

// It may continue the job on another number of servers while this daemon stays up.
TEST_F(PsServerTest, ANewerCoordinatorMayPlacePartitionsAnew) {
  MU_ASSERT_OK(Configure());
  const auto held = [this] { return server_.GetStats(pb::PsStatsRequest())->held_size(); };
  const int all = held();
  pb::ConfigurePsRequest request;
  *request.mutable_context() = context_;
  *request.mutable_routing() = testing::SmallModel(3);
  EXPECT_THAT(server_.Configure(request).status(), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(held(), all);
  context_.set_epoch(2);
  context_.set_generation(5);
  *request.mutable_context() = context_;
  MU_ASSERT_OK(server_.Configure(request).status());
  EXPECT_LT(held(), all) << "others hold some of it now";
  pb::RestoreRequest restore;
  *restore.mutable_context() = context_;
  restore.set_keep_state(true);
  EXPECT_THAT(server_.Restore(restore).status(), HasCode(absl::StatusCode::kUnavailable))
      << "initial values are not the state that was trained";
  restore.set_keep_state(false);
  MU_ASSERT_OK(server_.Restore(restore).status());
  MU_EXPECT_OK(server_.Configure(request).status());
  context_.set_epoch(1);
  EXPECT_THAT(Configure(), HasCode(absl::StatusCode::kFailedPrecondition))
      << "the older coordinator";
}

TEST_F(PsServerTest, EveryPushIsAppliedOnce) {
  MU_ASSERT_OK(Configure());
  for (uint32_t step : {0u, 2u, 1u}) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      MU_ASSERT_OK_AND_ASSIGN(const auto reply,
                              PushAndWait(&server_, CountingPush(context_, 5, step)));
      EXPECT_EQ(reply.repeated(), repeat == 1);
    }
  }
  EXPECT_EQ(Steps(), 3);
}

TEST_F(PsServerTest, RepeatsThatComeDuringTheFirstWaitForIt) {
  MU_ASSERT_OK(Configure());
  for (uint32_t step = 0; step < 200; ++step) {
    std::vector<std::thread> threads;
    std::atomic<int> first{0}, repeated{0};
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        const auto reply = PushAndWait(&server_, CountingPush(context_, 5, step));
        if (reply.ok()) ++(reply->repeated() ? repeated : first);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(first, 1);
    ASSERT_EQ(repeated, 2);
  }
  EXPECT_EQ(Steps(), 200);
}

TEST_F(PsServerTest, FinishedFunctionsPushNoMore) {
  MU_ASSERT_OK(Configure());
  MU_ASSERT_OK(PushAndWait(&server_, CountingPush(context_, 5, 0)));
  pb::FenceRequest fence;
  *fence.mutable_context() = context_;
  fence.mutable_context()->set_low_water(6);
  MU_ASSERT_OK(server_.Fence(fence));
  MU_ASSERT_OK(server_.Fence(fence));
  const auto late = PushAndWait(&server_, CountingPush(context_, 5, 1));
  EXPECT_THAT(late, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(KindOf(late.status()), pb::ERROR_STALE);
  EXPECT_EQ(Steps(), 1);
  // A copy that comes late, when a restore makes functions below the mark run again.
  pb::RestoreRequest restore;
  *restore.mutable_context() = context_;
  restore.mutable_context()->set_generation(context_.generation() + 1);
  MU_ASSERT_OK(server_.Restore(restore));
  EXPECT_EQ(KindOf(server_.Fence(fence).status()), pb::ERROR_STALE);
  context_.set_generation(context_.generation() + 1);
  MU_ASSERT_OK(PushAndWait(&server_, CountingPush(context_, 5, 0)));
  EXPECT_EQ(Steps(), 1);
  context_.set_low_water(8);
  MU_ASSERT_OK(PushAndWait(&server_, CountingPush(context_, 8, 0)))
      << "the mark travels with requests";
  context_.set_low_water(0);
  EXPECT_EQ(KindOf(PushAndWait(&server_, CountingPush(context_, 7, 0)).status()), pb::ERROR_STALE);
}

TEST_F(PsServerTest, WithoutRoomToRememberAPushIsRefused) {
  PsServer server(
      {.clock = &clock_, .telemetry = &telemetry_, .most_applied = 2 * AppliedSteps::kEntryBytes});
  pb::ConfigurePsRequest configure;
  *configure.mutable_context() = context_;
  *configure.mutable_routing() = testing::SmallModel(1);
  MU_ASSERT_OK(server.Configure(configure).status());
  EXPECT_EQ(server.applied_usage().bytes, 0u);
  EXPECT_EQ(server.applied_usage().most_bytes, 2 * AppliedSteps::kEntryBytes);
  MU_ASSERT_OK(PushAndWait(&server, CountingPush(context_, 5, 0)));
  MU_ASSERT_OK(PushAndWait(&server, CountingPush(context_, 6, 0)));
  EXPECT_EQ(server.applied_usage().bytes, 2 * AppliedSteps::kEntryBytes);
  const absl::Status refused = PushAndWait(&server, CountingPush(context_, 7, 0)).status();
  EXPECT_THAT(refused, HasCode(absl::StatusCode::kResourceExhausted));
  ASSERT_TRUE(DetailOf(refused).has_value());
  EXPECT_TRUE(IsAppliedFull(refused));
  EXPECT_EQ(DetailOf(refused)->role(), pb::ROLE_PSSERVER);
  MU_EXPECT_OK(PushAndWait(&server, CountingPush(context_, 6, 1))) << "the same function goes on";
  server.RaiseLowWater(6);
  MU_EXPECT_OK(PushAndWait(&server, CountingPush(context_, 7, 0)));
}

TEST_F(PsServerTest, AFaultyPushChangesNothingAndNamesWhatIsWrong) {
  MU_ASSERT_OK(Configure());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  pb::PushRequest request;
  *request.mutable_context() = context_;
  request.set_function(1);
  auto* update = request.add_variables();
  update->set_variable(2);
  update->set_kind(pb::VariableUpdate::ASSIGN_ADD);
  update = request.add_variables();
  update->set_variable(1);
  const auto bad =
      PushAndWait(&server_, Frame(request, Bytes<int64_t>({1}) + Bytes<float>({nan, 0})));
  EXPECT_THAT(bad, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("variable 'bias'")));
  EXPECT_EQ(KindOf(bad.status()), pb::ERROR_USER);
  EXPECT_EQ(Steps(), 0) << "the good half was not applied";
  MU_EXPECT_OK(PushAndWait(&server_, Frame(request, Bytes<int64_t>({1}) + Bytes<float>({0.5f, 0}))))
      << "it may come again";
  EXPECT_EQ(Steps(), 1);

  std::vector<float> row(4, 1.0f);
  row[3] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(PushAndWait(&server_, RowPush(101, 5, {5}, row)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("table 'users'")));
  row[3] = 1;
  EXPECT_THAT(PushAndWait(&server_, RowPush(101, 5, {500 + 5 + 7}, row)),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("table 'users'")));
  EXPECT_THAT(PushAndWait(&server_, RowPush(101, 5, {-59}, row)),
              HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(PushAndWait(&server_, RowPush(101, 5, {6}, row)),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PushAndWait(&server_, RowPush(101, 64, {5}, row)),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PushAndWait(&server_, RowPush(7, 5, {5}, row)),
              HasCode(absl::StatusCode::kInvalidArgument));
  row.pop_back();
  EXPECT_THAT(PushAndWait(&server_, RowPush(101, 5, {5}, row)),
              HasCode(absl::StatusCode::kInvalidArgument));
  row.resize(5);
  EXPECT_THAT(PushAndWait(&server_, RowPush(101, 5, {5}, row)),
              HasCode(absl::StatusCode::kInvalidArgument));
  pb::PsStatsRequest stats;
  MU_ASSERT_OK_AND_ASSIGN(const auto reply, server_.GetStats(stats));
  EXPECT_EQ(reply.rows(), 0u);
  EXPECT_EQ(reply.pushes(), 1u);
}

// As in a worker's step: they would take long, and carry nothing.
TEST_F(PsServerTest, DenormalGradientsAreZero) {
  MU_ASSERT_OK(Configure());
  pb::PushRequest push;
  *push.mutable_context() = context_;
  push.set_function(1);
  push.add_variables()->set_variable(1);
  MU_ASSERT_OK(PushAndWait(&server_, Frame(push, Bytes<float>({4e-39f}))));
  pb::PullRequest pull;
  *pull.mutable_context() = context_;
  pull.add_variables()->set_variable(1);
  MU_ASSERT_OK_AND_ASSIGN(const Buffer reply, server_.Pull(Frame(pull, "")));
  pb::PullReply header;
  MU_ASSERT_OK_AND_ASSIGN(const auto payload, ParseFrame(reply, &header));
  ASSERT_GE(payload.size(), sizeof(float));
  float bias;
  std::memcpy(&bias, payload.data(), sizeof(bias));
  EXPECT_EQ(bias, 0.0f);
}

TEST_F(PsServerTest, VariablesTakeOnlyTheirKindOfUpdate) {
  MU_ASSERT_OK(Configure());
  const auto push = [&](uint32_t variable, pb::VariableUpdate::Kind kind, size_t bytes) {
    pb::PushRequest request;
    *request.mutable_context() = context_;
    request.set_function(++next_function_);
    auto* update = request.add_variables();
    update->set_variable(variable);
    update->set_kind(kind);
    return PushAndWait(&server_, Frame(request, std::string(bytes, '\0'))).status();
  };
  EXPECT_THAT(push(2, pb::VariableUpdate::GRADIENT, 8),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("steps")));
  EXPECT_THAT(push(4, pb::VariableUpdate::GRADIENT, 16),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(push(1, static_cast<pb::VariableUpdate::Kind>(9), 8),
              HasCode(absl::StatusCode::kInvalidArgument));
  MU_EXPECT_OK(push(4, pb::VariableUpdate::ASSIGN_ADD, 16));
  MU_EXPECT_OK(push(1, pb::VariableUpdate::ASSIGN_ADD, 8));
  MU_EXPECT_OK(push(3, pb::VariableUpdate::ASSIGN_ADD, 16));
}

TEST_F(PsServerTest, GarbageBytes) {
  MU_ASSERT_OK(Configure());
  // Good requests, damaged: random bytes alone would stop at the first check.
  pb::PullRequest pull;
  *pull.mutable_context() = context_;
  pull.add_variables()->set_variable(5);
  pull.mutable_variables(0)->set_partition(1);
  pull.add_variables()->set_variable(2);
  auto* keys = pull.add_tables();
  keys->set_table(100);
  keys->add_partitions(3);
  keys->add_partitions(4);
  keys->add_counts(2);
  keys->add_counts(1);
  const Buffer good_pull = Frame(pull, Bytes<int64_t>({3, 67, 4}));
  MU_ASSERT_OK(server_.Pull(good_pull));
  const Buffer good_pushes[] = {CountingPush(context_, 7, 0), RowPush(101, 5, {5}, {1, 2, 3, 4})};
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SplitMix random(seed);
    const auto damage = [&](const Buffer& good) {
      std::string bytes(good.data(), good.size());
      if (random.Below(4) == 0) bytes.resize(random.Below(bytes.size() + 1));
      if (random.Below(8) == 0) bytes.append(random.Below(64), static_cast<char>(random.Next()));
      for (uint64_t n = random.Below(5); n > 0 && !bytes.empty(); --n) {
        bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
      }
      return Buffer(std::move(bytes));
    };
    (void)server_.Pull(damage(good_pull));
    (void)PushAndWait(&server_, damage(good_pushes[seed % 2]));
    std::string noise(random.Below(100), '\0');
    for (char& c : noise) c = static_cast<char>(random.Next());
    (void)server_.Pull(Buffer(noise));
    (void)PushAndWait(&server_, Buffer(noise));
  }
  MU_EXPECT_OK(server_.Pull(good_pull));
}

TEST_F(PsServerTest, IdOutOfRange) {
  MU_ASSERT_OK(Configure());
  pb::PullRequest pull;
  *pull.mutable_context() = context_;
  auto* keys = pull.add_tables();
  keys->set_table(100);
  keys->add_partitions(3);
  keys->add_counts(2);
  for (const int64_t bad : {int64_t{-61}, int64_t{1027}, std::numeric_limits<int64_t>::min()}) {
    const auto refused = server_.Pull(Frame(pull, Bytes<int64_t>({3, bad})));
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("table 'items'")));
    EXPECT_EQ(KindOf(refused.status()), pb::ERROR_USER);
  }
  MU_ASSERT_OK_AND_ASSIGN(const auto stats, server_.GetStats({}));
  EXPECT_EQ(stats.rows(), 0u) << "the good id of a bad request created no row";
  MU_EXPECT_OK(server_.Pull(Frame(pull, Bytes<int64_t>({3, 67}))));
}

TEST_F(PsServerTest, NanGradient) {
  MU_ASSERT_OK(Configure());
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto refused = PushAndWait(&server_, RowPush(101, 5, {5}, {1, 1, bad, 1}));
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("table 'users'")));
    EXPECT_EQ(KindOf(refused.status()), pb::ERROR_USER);
  }
  MU_EXPECT_OK(PushAndWait(&server_, RowPush(101, 5, {5}, {1, 1, 1, 1})));
}

TEST_F(PsServerTest, OversizeMessage) {
  MU_ASSERT_OK(Configure());
  // 3,000 times a partition of 280 KB and more: over 2 GiB of reply to a request of some KB.
  pb::PullRequest pull;
  *pull.mutable_context() = context_;
  for (int i = 0; i < 30000; ++i) pull.add_variables()->set_variable(5);
  const auto refused = server_.Pull(Frame(pull, ""));
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("8400000000 bytes")));
  // A header that speaks of more than the payload has.
  pb::PushRequest push;
  *push.mutable_context() = context_;
  auto* keys = push.add_tables();
  keys->set_table(101);
  keys->add_partitions(5);
  keys->add_counts(std::numeric_limits<uint32_t>::max());
  EXPECT_THAT(PushAndWait(&server_, Frame(push, "short")),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Steps(), 0) << "it serves on";
}

TEST_F(PsServerTest, ANewerEpochFencesTheOlderOne) {
  MU_ASSERT_OK(Configure());
  MU_ASSERT_OK(PushAndWait(&server_, CountingPush(context_, 1, 0)));
  const pb::RequestContext old = context_;
  context_.set_epoch(2);
  pb::FenceRequest fence;
  *fence.mutable_context() = context_;
  MU_ASSERT_OK(server_.Fence(fence)) << "of the coordinator that has taken over";
  EXPECT_EQ(KindOf(PushAndWait(&server_, CountingPush(old, 1, 1)).status()), pb::ERROR_STALE);
  pb::SaveRequest save;
  *save.mutable_context() = old;
  save.set_directory("/nowhere");
  save.set_file("x");
  EXPECT_EQ(KindOf(server_.Save(save).status()), pb::ERROR_STALE);
  pb::RestoreRequest restore;
  *restore.mutable_context() = old;
  restore.mutable_context()->set_generation(9);
  EXPECT_EQ(KindOf(server_.Restore(restore).status()), pb::ERROR_STALE);
  EXPECT_EQ(Steps(), 1);
}

}  // namespace
}  // namespace mu
