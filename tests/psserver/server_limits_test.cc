// What a server does not take: optimizers that it does not know, epochs of those who only read,
// pulls whose replies would be too large, and variables and rows beyond its memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "psserver/server.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::CountingPush;
using ::mu::testing::Frame;
using ::mu::testing::PushAndWait;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PsServerLimits : public ::testing::Test {
 protected:
  PsServerLimits() : server_({.clock = &clock_, .telemetry = &telemetry_}) {
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
  int64_t Steps() {
    pb::PullRequest request;
    *request.mutable_context() = context_;
    request.add_variables()->set_variable(2);
    const auto reply = server_.Pull(Frame(request, ""));
    EXPECT_THAT(reply, testing::IsOk());
    if (!reply.ok()) return -1;
    pb::PullReply header;
    const auto payload = ParseFrame(*reply, &header);
    int64_t steps = -1;
    if (payload.ok() && payload->size() == 8) std::memcpy(&steps, payload->data(), 8);
    return steps;
  }

  ManualClock clock_{1000000};
  Telemetry telemetry_;
  PsServer server_;
  pb::RequestContext context_;
};

// A newer client may ask for one: without this it would be taken for none at all.
TEST_F(PsServerLimits, OptimizersThatItDoesNotKnowAreRefused) {
  pb::OptimizerProto unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddLengthDelimited(100, "");
  pb::OptimizerProto unknown_setting;
  unknown_setting.mutable_sgd()->set_learning_rate(0.1f);
  unknown_setting.GetReflection()
      ->MutableUnknownFields(unknown_setting.mutable_sgd())
      ->AddFixed32(100, 0x3f000000);
  for (const pb::OptimizerProto& optimizer : {unknown, unknown_setting}) {
    for (const bool table : {false, true}) {
      pb::ConfigurePsRequest request;
      *request.mutable_context() = context_;
      *request.mutable_routing() = testing::SmallModel(1);
      pb::RoutingProto& routing = *request.mutable_routing();
      *(table ? routing.mutable_tables(0)->mutable_optimizer()
              : routing.mutable_variables(0)->mutable_optimizer()) = optimizer;
      const std::string name = table ? routing.tables(0).name() : routing.variables(0).name();
      // As it comes over the network.
      pb::ConfigurePsRequest received;
      ASSERT_TRUE(received.ParseFromString(request.SerializeAsString()));
      EXPECT_THAT(server_.Configure(received),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr(name), HasSubstr("optimizer is of a kind"))));
    }
  }
  MU_EXPECT_OK(Configure());
}

TEST_F(PsServerLimits, WhoOnlyReadsRaisesNoEpoch) {
  MU_ASSERT_OK(Configure());
  pb::PsStatsRequest stats;
  *stats.mutable_context() = context_;
  stats.mutable_context()->set_epoch(5);
  MU_EXPECT_OK(server_.GetStats(stats));
  context_.set_epoch(5);
  EXPECT_EQ(Steps(), 0);
  context_.set_epoch(1);
  EXPECT_EQ(Steps(), 0) << "its own coordinator is still served";
  MU_EXPECT_OK(PushAndWait(&server_, CountingPush(context_, 1, 0)));
  stats.mutable_context()->set_epoch(0);
  EXPECT_EQ(KindOf(server_.GetStats(stats).status()), pb::ERROR_STALE);
}

TEST_F(PsServerLimits, RepliesThatAreTooLargeAreRefusedBeforeTheyAreBuilt) {
  PsServer server({.clock = &clock_, .telemetry = &telemetry_, .most_reply_bytes = 1000});
  pb::ConfigurePsRequest configure;
  *configure.mutable_context() = context_;
  *configure.mutable_routing() = testing::SmallModel(1);
  MU_ASSERT_OK(server.Configure(configure));
  pb::PullRequest request;
  *request.mutable_context() = context_;
  for (int i = 0; i < 117; ++i) request.add_variables()->set_variable(2);  // 8 bytes each
  MU_ASSERT_OK_AND_ASSIGN(const Buffer reply, server.Pull(Frame(request, "")));
  EXPECT_LE(reply.size(), 1000u);
  request.add_variables()->set_variable(2);
  const absl::Status refused = server.Pull(Frame(request, "")).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("944 bytes"), HasSubstr("1000 at most"),
                                      HasSubstr("smaller batches"))));
  EXPECT_EQ(KindOf(refused), pb::ERROR_USER);
}

TEST_F(PsServerLimits, VariablesBeyondItsMemoryAreRefusedBeforeAnyIsMade) {
  pb::ConfigurePsRequest all;
  *all.mutable_context() = context_;
  *all.mutable_routing() = testing::SmallModel(1);
  MU_ASSERT_OK(server_.Configure(all)) << "no limit";
  MU_ASSERT_OK_AND_ASSIGN(const pb::PsStatsReply whole, server_.GetStats({}));
  ASSERT_EQ(whole.rows(), 0u);

  const auto with = [&](uint64_t most) {
    return PsServerOptions{.clock = &clock_, .telemetry = &telemetry_, .most_values = most};
  };
  PsServer small(with(1 << 20));
  const absl::Status refused = small.Configure(all).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                AllOf(HasSubstr("would hold 1.6 MB"), HasSubstr("1.0 MB"),
                                      HasSubstr("--memory_limit"), HasSubstr("more servers"))));
  EXPECT_EQ(KindOf(refused), pb::ERROR_USER) << "no other server in its place has more room";
  EXPECT_EQ(small.GetStats({})->value_bytes(), 0u);

  // Those that are here count, and repeats need nothing more.
  pb::ConfigurePsRequest first = all;
  first.mutable_routing()->mutable_variables()->RemoveLast();
  PsServer exact(with(whole.value_bytes()));
  MU_EXPECT_OK(exact.Configure(first));
  MU_EXPECT_OK(exact.Configure(all));
  MU_EXPECT_OK(exact.Configure(all));
  PsServer less(with(whole.value_bytes() - 1));
  MU_EXPECT_OK(less.Configure(first));
  MU_EXPECT_OK(less.Configure(first));
  const uint64_t before = less.GetStats({})->value_bytes();
  EXPECT_GT(before, 0u);
  EXPECT_THAT(less.Configure(all), testing::HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(less.GetStats({})->value_bytes(), before) << "all or nothing";
}

// A row without neighbours takes a page.
TEST_F(PsServerLimits, SparseRowsCountWithTheirPages) {
  pb::ConfigurePsRequest configure;
  *configure.mutable_context() = context_;
  *configure.mutable_routing() = testing::SmallModel(1);
  configure.mutable_routing()->mutable_tables(0)->set_rows(64 * 100'000);
  MU_ASSERT_OK(server_.Configure(configure));
  const uint64_t empty = server_.GetStats({})->value_bytes();
  PsServer server({.clock = &clock_, .telemetry = &telemetry_, .most_values = empty + (1 << 20)});
  MU_ASSERT_OK(server.Configure(configure));
  // 1,000 rows of 128 bytes, the first of each 32 that share a page: 4 MB.
  std::vector<int64_t> ids;
  for (int64_t k = 0; k < 1000; ++k) ids.push_back(k * 32 * 64 + 3);
  pb::PullRequest request;
  *request.mutable_context() = context_;
  auto* keys = request.add_tables();
  keys->set_table(100);
  keys->add_partitions(3);
  keys->add_counts(1000);
  MU_ASSERT_OK(server.Pull(Frame(request, testing::Bytes<int64_t>(ids))));
  absl::Status refused;
  for (int i = 0; i < 20 && refused.ok(); ++i)
    refused = server.Pull(Frame(request, testing::Bytes<int64_t>(ids))).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("--memory_limit")));
}

TEST_F(PsServerLimits, BeyondItsMemoryNoRowsAreCreatedAndTheOthersGoOn) {
  PsServer server({.clock = &clock_, .telemetry = &telemetry_});
  pb::ConfigurePsRequest configure;
  *configure.mutable_context() = context_;
  *configure.mutable_routing() = testing::SmallModel(1);
  MU_ASSERT_OK(server.Configure(configure));
  MU_ASSERT_OK_AND_ASSIGN(const pb::PsStatsReply empty, server.GetStats({}));

  PsServer full(
      {.clock = &clock_, .telemetry = &telemetry_, .most_values = empty.value_bytes() + 1});
  MU_ASSERT_OK(full.Configure(configure));
  const auto pull = [&](int64_t id, bool read_only) {
    pb::PullRequest request;
    *request.mutable_context() = context_;
    request.set_read_only(read_only);
    auto* keys = request.add_tables();
    keys->set_table(100);
    keys->add_partitions(static_cast<uint32_t>(id % 64));
    keys->add_counts(1);
    return full.Pull(Frame(request, testing::Bytes<int64_t>({id}))).status();
  };
  MU_EXPECT_OK(pull(3, false));  // up to the limit, and a few calls beyond it
  absl::Status refused;
  for (int i = 0; i < 20 && refused.ok(); ++i) refused = pull(3, false);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                AllOf(HasSubstr("--memory_limit"), HasSubstr("more servers"))));
  EXPECT_EQ(KindOf(refused), pb::ERROR_USER);
  pb::AssignRequest assign;
  *assign.mutable_context() = context_;
  assign.set_function(1);
  assign.set_variable(100);
  assign.set_table(true);
  assign.set_partition(3);
  assign.add_rows(67);
  assign.set_value(std::string(16 * sizeof(float), '\0'));
  EXPECT_THAT(testing::AssignAndWait(&full, assign),
              testing::HasCode(absl::StatusCode::kResourceExhausted));
  assign.set_function(2);
  assign.set_rows(0, 3);
  MU_EXPECT_OK(testing::AssignAndWait(&full, assign)) << "the row exists";
  MU_EXPECT_OK(pull(67, true));  // evaluation creates none
  pb::PullRequest product;
  *product.mutable_context() = context_;
  auto* factor = product.add_products();
  factor->set_variable(5);
  factor->set_rows(1);
  for (int i = 0; i < 20; ++i)
    MU_EXPECT_OK(full.Pull(Frame(product, std::string(700 * sizeof(float), '\0'))));
  pb::PullRequest variables;
  *variables.mutable_context() = context_;
  variables.add_variables()->set_variable(2);
  MU_EXPECT_OK(full.Pull(Frame(variables, "")));
  MU_EXPECT_OK(PushAndWait(&full, CountingPush(context_, 1, 0)));
  MU_ASSERT_OK_AND_ASSIGN(const pb::PsStatsReply stats, full.GetStats({}));
  EXPECT_EQ(stats.rows(), 1u);
  const Counter* rows = telemetry_.counter("ps.pulled_rows", "");
  EXPECT_LT(rows->value(), 50) << "factors of products are no rows";

  // What it held before says nothing of what it holds after it went back to initial values.
  pb::RestoreRequest restore;
  *restore.mutable_context() = context_;
  restore.mutable_context()->set_generation(context_.generation() + 1);
  MU_ASSERT_OK(full.Restore(restore));
  context_ = restore.context();
  MU_EXPECT_OK(pull(3, false));
}

}  // namespace
}  // namespace mu
