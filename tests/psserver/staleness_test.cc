// Late gradients between a session and its servers: what it says and pushes, and what they do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/client/too_late.h"
#include "common/env/file.h"
#include "tests/psserver/cluster.h"
#include "tests/psserver/frames.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::PsCluster;

pb::StalenessProto Rule(pb::StalenessDiscount discount,
                        std::optional<uint32_t> max = std::nullopt) {
  pb::StalenessProto rule;
  rule.set_discount(discount);
  if (max.has_value()) rule.set_max(*max);
  return rule;
}

// Variable 1 ("bias", SGD with 0.5) and row 8 of table 101 ("users", the same) go down by half of
// each gradient.
class StalenessTest : public ::testing::Test {
 protected:
  StalenessTest() { EXPECT_THAT(cluster_.Configure(), testing::IsOk()); }

  PsSession Session(uint64_t function, const pb::StalenessProto* rule) {
    return PsSession(
        &cluster_.client(),
        {.context = cluster_.context(), .function = function, .job_step = 1, .staleness = rule});
  }
  static absl::Status Pull(PsSession* session) {
    float bias = 0;
    std::vector<float> row(4);
    const std::vector<int64_t> ids = {8};
    const VariableRead variables[] = {{1, &bias}};
    const RowsRead rows[] = {{101, ids, row.data()}};
    return session->Pull(variables, rows);
  }
  static absl::Status Push(PsSession* session) {
    const float gradient = 1;
    const std::vector<int64_t> ids = {8};
    const std::vector<float> row(4, 1.0f);
    const VariableWrite variables[] = {{1, VariableWrite::kGradient, &gradient}};
    const RowsWrite rows[] = {{101, ids, row.data()}};
    return session->Push(variables, rows);
  }
  // Of function `function`, from its pull to its push.
  std::optional<uint32_t> Step(uint64_t function, const pb::StalenessProto* rule) {
    PsSession session = Session(function, rule);
    EXPECT_THAT(Pull(&session), testing::IsOk());
    EXPECT_THAT(Push(&session), testing::IsOk());
    return session.push_late();
  }
  std::pair<float, float> Values() {
    PsSession session = cluster_.Session(1, /*read_only=*/true);
    float bias = 0;
    std::vector<float> row(4);
    const std::vector<int64_t> ids = {8};
    const VariableRead variables[] = {{1, &bias}};
    const RowsRead rows[] = {{101, ids, row.data()}};
    EXPECT_THAT(session.Pull(variables, rows), testing::IsOk());
    return {bias, row[2]};
  }

  PsCluster cluster_{2};
};

TEST_F(StalenessTest, NobodyCountsUnlessTheFunctionAsks) {
  EXPECT_EQ(Step(1, nullptr), std::nullopt);
  const pb::StalenessProto rule = Rule(pb::STALENESS_DISCOUNT_NONE);
  EXPECT_EQ(Step(2, &rule), 0u) << "the clocks count since somebody asks";
}

TEST_F(StalenessTest, LatenessScalesTheRateOfEachGradient) {
  const pb::StalenessProto rule = Rule(pb::STALENESS_DISCOUNT_INVERSE);
  PsSession late = Session(1, &rule);
  MU_ASSERT_OK(Pull(&late));
  for (uint64_t function = 2; function <= 5; ++function) EXPECT_EQ(Step(function, &rule), 0u);
  EXPECT_EQ(Values(), std::pair(-2.0f, -2.0f));
  MU_ASSERT_OK(Push(&late));
  EXPECT_EQ(late.push_late(), 4u);
  EXPECT_EQ(Values(), std::pair(-2.125f, -2.125f)) << "a quarter of the rate";
}

TEST_F(StalenessTest, WithoutADiscountTheLatenessIsOnlyCounted) {
  const pb::StalenessProto rule = Rule(pb::STALENESS_DISCOUNT_NONE);
  PsSession late = Session(1, &rule);
  MU_ASSERT_OK(Pull(&late));
  for (uint64_t function = 2; function <= 5; ++function) Step(function, &rule);
  MU_ASSERT_OK(Push(&late));
  EXPECT_EQ(late.push_late(), 4u);
  EXPECT_EQ(Values(), std::pair(-2.5f, -2.5f));
}

TEST_F(StalenessTest, ExponentialDiscountReachesTheRows) {
  const pb::StalenessProto rule = Rule(pb::STALENESS_DISCOUNT_EXPONENTIAL);
  PsSession late = Session(1, &rule);
  MU_ASSERT_OK(Pull(&late));
  for (uint64_t function = 2; function <= 4; ++function) Step(function, &rule);
  MU_ASSERT_OK(Push(&late));
  EXPECT_NEAR(Values().first, -1.5 - 0.5 * std::exp(-0.3), 1e-6);
  EXPECT_NEAR(Values().second, -1.5 - 0.5 * std::exp(-0.3), 1e-6);
}

// Each server applies the step once, whichever attempt it takes.
TEST_F(StalenessTest, AStepThatIsTooLateRunsAgainUnderItsIdentity) {
  const pb::StalenessProto rule = Rule(pb::STALENESS_DISCOUNT_NONE, /*max=*/1);
  PsSession late = Session(1, &rule);
  MU_ASSERT_OK(Pull(&late));
  // Only the variable is changed by others: the server that has the row applies the first attempt,
  // unless it has the variable as well.
  for (uint64_t function = 2; function <= 3; ++function) {
    PsSession other = Session(function, &rule);
    MU_ASSERT_OK(Pull(&other));
    const float gradient = 1;
    const VariableWrite variables[] = {{1, VariableWrite::kGradient, &gradient}};
    MU_ASSERT_OK(other.Push(variables, {}));
  }
  const absl::Status refused = Push(&late);
  EXPECT_TRUE(IsTooLate(refused)) << refused;
  late.ForgetClocks();
  MU_ASSERT_OK(Pull(&late));
  MU_ASSERT_OK(Push(&late));
  EXPECT_FALSE(late.push_repeated());
  EXPECT_EQ(Values(), std::pair(-1.5f, -0.5f));
  MU_ASSERT_OK(Push(&late));
  EXPECT_TRUE(late.push_repeated());
  EXPECT_EQ(Values(), std::pair(-1.5f, -0.5f));
}

TEST_F(StalenessTest, AClockOfEarlierValuesIsForgottenWithThem) {
  const pb::StalenessProto rule = Rule(pb::STALENESS_DISCOUNT_NONE);
  PsSession session = Session(1, &rule);
  MU_ASSERT_OK(Pull(&session));
  Step(2, &rule);
  MU_ASSERT_OK(Pull(&session));
  MU_ASSERT_OK(Push(&session));
  EXPECT_EQ(session.push_late(), 1u) << "it may have been computed from either";
  session.BeginFunction({.context = cluster_.context(), .function = 3, .staleness = &rule});
  session.ForgetClocks();
  MU_ASSERT_OK(Pull(&session));
  MU_ASSERT_OK(Push(&session));
  EXPECT_EQ(session.push_late(), 0u);
}

// Also where the partitions come from another number of servers.
TEST_F(StalenessTest, ClocksGoOnFromACheckpoint) {
  const pb::StalenessProto rule = Rule(pb::STALENESS_DISCOUNT_NONE);
  for (uint64_t function = 1; function <= 3; ++function) Step(function, &rule);
  MU_ASSERT_OK_AND_ASSIGN(const auto directory, TempDirectory::Create("staleness_test"));
  MU_ASSERT_OK_AND_ASSIGN(const auto files,
                          cluster_.admin().Save(cluster_.context(), directory.path()));
  PsCluster other{1};
  MU_ASSERT_OK(other.Configure());
  other.context().set_generation(2);
  MU_ASSERT_OK(other.admin().Restore(other.context(), directory.path(), files));
  pb::PullRequest pull;
  *pull.mutable_context() = other.context();
  pull.set_clocks(true);
  for (const uint32_t variable : {1, 0}) pull.add_variables()->set_variable(variable);
  pb::TableKeys* const keys = pull.add_tables();
  keys->set_table(101);
  keys->add_partitions(8);
  keys->add_counts(1);
  MU_ASSERT_OK_AND_ASSIGN(const Buffer reply,
                          other.server(0).Pull(testing::Frame(pull, testing::Bytes<int64_t>({8}))));
  pb::PullReply header;
  MU_ASSERT_OK(ParseFrame(reply, &header).status());
  const pb::ClocksProto& clocks = header.clocks();
  EXPECT_THAT(clocks.variables(), ::testing::ElementsAre(1, 0));
  EXPECT_THAT(clocks.variable_clocks(), ::testing::ElementsAre(3, 0));
  EXPECT_THAT(clocks.tables(), ::testing::ElementsAre(101));
  EXPECT_THAT(clocks.table_clocks(), ::testing::ElementsAre(3));
}

// Additions are no gradients: they are not late, and make none late.
TEST_F(StalenessTest, AdditionsHaveNoClock) {
  const pb::StalenessProto rule = Rule(pb::STALENESS_DISCOUNT_INVERSE, /*max=*/0);
  PsSession session = Session(1, &rule);
  MU_ASSERT_OK(Pull(&session));
  for (uint64_t function = 2; function <= 4; ++function) {
    PsSession other = Session(function, &rule);
    MU_ASSERT_OK(Pull(&other));
    const float delta = 1;
    const VariableWrite variables[] = {{1, VariableWrite::kAssignAdd, &delta}};
    MU_ASSERT_OK(other.Push(variables, {}));
    EXPECT_EQ(other.push_late(), std::nullopt);
  }
  MU_ASSERT_OK(Push(&session));
  EXPECT_EQ(session.push_late(), 0u);
  EXPECT_EQ(Values(), std::pair(2.5f, -0.5f));
}

}  // namespace
}  // namespace mu
