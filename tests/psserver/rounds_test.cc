// Synchronous rounds between sessions and a server: what the mean of a round is.
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/psserver/cluster.h"
#include "tests/psserver/stop.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::PsCluster;

constexpr uint32_t kWeights = 0, kBias = 1, kSteps = 2, kAverage = 4,
                   kUsers = 101;  // of SmallModel
constexpr uint64_t kRound = 1;

pb::RoutingProto Model() {
  pb::RoutingProto model = testing::SmallModel(1);
  model.mutable_variables(kAverage)->set_moving_average(true);
  return model;
}

// Two contributions of one and three records. Both touch row 8 of "users"; only the second touches
// row 72, which is in the same partition. "bias" and "users" go down by half of their gradients.
// Each contribution adds 1 to "weights".
class RoundsTest : public ::testing::Test {
 protected:
  RoundsTest() {
    EXPECT_THAT(cluster_.Configure(), testing::IsOk());
    Contribute(1, /*gradient=*/3, /*steps=*/0xffffffff, /*average=*/4, {8}, {1});
    Contribute(2, /*gradient=*/7, /*steps=*/5, /*average=*/8, {8, 72}, {5, 2});
  }

  void Contribute(uint64_t function, float gradient, int64_t steps, float average,
                  const std::vector<int64_t>& ids, const std::vector<float>& of_rows) {
    PsSession session(&cluster_.client(), {.context = cluster_.context(),
                                           .function = function,
                                           .job_step = 1,
                                           .round = kRound,
                                           .most_contributions = 2});
    const std::vector<float> averages(3, average), ones(30, 1.0f);
    std::vector<float> rows;
    for (const float value : of_rows) rows.insert(rows.end(), 4, value);
    const VariableWrite variables[] = {{kBias, VariableWrite::kGradient, &gradient},
                                       {kSteps, VariableWrite::kAssignAdd, &steps},
                                       {kAverage, VariableWrite::kAssignAdd, averages.data()},
                                       {kWeights, VariableWrite::kAssignAdd, ones.data()}};
    const RowsWrite tables[] = {{kUsers, ids, rows.data()}};
    MU_ASSERT_OK(session.Push(variables, tables));
  }
  pb::CommitRoundRequest Request(bool sum_rows) {
    pb::CommitRoundRequest request;
    *request.mutable_context() = cluster_.context();
    request.set_round(kRound);
    request.set_sum_rows(sum_rows);
    for (const auto& [function, weight] : {std::pair{1, 1}, std::pair{2, 3}}) {
      auto& contribution = *request.add_contributions();
      contribution.set_function(function);
      contribution.set_weight(weight);
    }
    return request;
  }
  struct Values {
    float bias = 0;
    int64_t steps = 0;
    std::vector<float> weights = std::vector<float>(30);
    std::vector<float> average = std::vector<float>(3);
    std::vector<float> rows = std::vector<float>(8);
  };
  Values Read() {
    Values values;
    PsSession session = cluster_.Session(1, /*read_only=*/true);
    const std::vector<int64_t> ids = {8, 72};
    const VariableRead variables[] = {{kBias, &values.bias},
                                      {kSteps, &values.steps},
                                      {kAverage, values.average.data()},
                                      {kWeights, values.weights.data()}};
    const RowsRead rows[] = {{kUsers, ids, values.rows.data()}};
    EXPECT_THAT(session.Pull(variables, rows), testing::IsOk());
    return values;
  }
  static std::vector<float> Plus(std::vector<float> values, float more) {
    for (float& value : values) value += more;
    return values;
  }
  void ExpectBeginning() {
    const Values values = Read();
    EXPECT_EQ(values.bias, 0);
    EXPECT_EQ(values.steps, 0);
    EXPECT_EQ(values.average, std::vector<float>(3));
    EXPECT_EQ(values.rows, std::vector<float>(8));
  }

  PsCluster cluster_{1, Model()};
};

TEST_F(RoundsTest, GradientsAreAveragedByRecordsOverTheWholeRound) {
  ExpectBeginning();
  const std::vector<float> weights = Read().weights;
  MU_ASSERT_OK_AND_ASSIGN(const auto reply,
                          cluster_.server(0).CommitRound(Request(/*sum_rows=*/false)));
  EXPECT_EQ(reply.updates(), 5u) << "four variables, and a partition of rows";
  const Values values = Read();
  EXPECT_EQ(values.bias, -3.0f) << "half of (3 + 3 * 7) / 4";
  EXPECT_EQ(values.steps, 0x100000004) << "additions are added up";
  EXPECT_THAT(values.weights, ::testing::Pointwise(::testing::FloatNear(1e-6f), Plus(weights, 2)));
  EXPECT_EQ(values.average, std::vector<float>(3, 7)) << "those of moving averages are averaged";
  EXPECT_EQ(values.rows, (std::vector<float>{-2, -2, -2, -2, -0.75, -0.75, -0.75, -0.75}))
      << "half of (1 + 3 * 5) / 4, and of 3 * 2 / 4, though one contribution does not touch it";
}

TEST_F(RoundsTest, RowsGetTheSumIfItIsWanted) {
  MU_ASSERT_OK(cluster_.server(0).CommitRound(Request(/*sum_rows=*/true)).status());
  const Values values = Read();
  EXPECT_EQ(values.bias, -3.0f) << "variables get the mean";
  EXPECT_EQ(values.rows, (std::vector<float>{-3, -3, -3, -3, -1, -1, -1, -1}));
}

TEST_F(RoundsTest, ARoundIsAppliedOnceAndWithoutWhatIsNotInItsSet) {
  pb::CommitRoundRequest request = Request(/*sum_rows=*/false);
  request.mutable_contributions()->DeleteSubrange(0, 1);
  for (int i = 0; i < 2; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const auto reply, cluster_.server(0).CommitRound(request));
    EXPECT_EQ(reply.updates(), 5u) << "a repeat has the first one's answer";
  }
  const Values values = Read();
  EXPECT_EQ(values.bias, -3.5f);
  EXPECT_EQ(values.steps, 5);
  EXPECT_EQ(values.rows, (std::vector<float>{-2.5, -2.5, -2.5, -2.5, -1, -1, -1, -1}));
}

// The round goes on with the partitions that it has, which nobody reads any more.
TEST(RoundsOfTwoCoordinators, TheNewerOneMayReplaceTheStateWhileARoundIsApplied) {
  testing::Stop stop;
  PsCluster cluster(1, Model(), {}, {.at = [&stop](absl::string_view moment) { stop.At(moment); }});
  MU_ASSERT_OK(cluster.Configure());
  const auto contribute = [&] {
    PsSession session(&cluster.client(), {.context = cluster.context(),
                                          .function = 1,
                                          .job_step = 1,
                                          .round = kRound,
                                          .most_contributions = 1});
    const float gradient = 1;
    const std::vector<int64_t> ids = {8};
    const std::vector<float> row(4, 1.0f);
    const VariableWrite variables[] = {{kBias, VariableWrite::kGradient, &gradient}};
    const RowsWrite tables[] = {{kUsers, ids, row.data()}};
    MU_EXPECT_OK(session.Push(variables, tables));
  };
  const auto commit = [&] {
    pb::CommitRoundRequest request;
    *request.mutable_context() = cluster.context();
    request.set_round(kRound);
    request.add_contributions()->set_function(1);
    request.mutable_contributions(0)->set_weight(1);
    return cluster.server(0).CommitRound(request);
  };
  contribute();
  stop.Hold("round");
  absl::StatusOr<pb::CommitRoundReply> applied = absl::InternalError("no answer");
  std::thread committing([&] { applied = commit(); });
  stop.AwaitCalls("round", 1);
  pb::ConfigurePsRequest configure;
  *configure.mutable_context() = cluster.context();
  configure.mutable_context()->set_epoch(2);
  *configure.mutable_routing() = Model();
  for (auto* optimizer :
       {configure.mutable_routing()->mutable_variables(kBias)->mutable_optimizer(),
        configure.mutable_routing()->mutable_tables(1)->mutable_optimizer()})
    optimizer->mutable_sgd()->set_learning_rate(1);
  MU_EXPECT_OK(cluster.server(0).Configure(configure));
  stop.Release();
  committing.join();
  EXPECT_THAT(applied, testing::HasCode(absl::StatusCode::kUnavailable));

  cluster.context().set_epoch(2);
  cluster.context().set_generation(2);
  pb::RestoreRequest restore;
  *restore.mutable_context() = cluster.context();
  MU_ASSERT_OK(cluster.server(0).Restore(restore));
  contribute();
  MU_ASSERT_OK_AND_ASSIGN(const auto reply, commit());
  EXPECT_EQ(reply.updates(), 2u) << "this state's first round";
  PsSession session = cluster.Session(1, /*read_only=*/true);
  float bias = 0;
  std::vector<float> row(4);
  const std::vector<int64_t> ids = {8};
  const VariableRead variables[] = {{kBias, &bias}};
  const RowsRead rows[] = {{kUsers, ids, row.data()}};
  MU_ASSERT_OK(session.Pull(variables, rows));
  EXPECT_EQ(bias, -1);
  EXPECT_EQ(row, std::vector<float>(4, -1));
}

// Floats are averaged over those that bring some; of whole numbers and of rows the last counts.
TEST(RoundsOfNewValues, AreAveragedOrTheLastOfTheData) {
  PsCluster cluster(1, Model());
  MU_ASSERT_OK(cluster.Configure());
  const auto push = [&](uint64_t function, int64_t steps, const std::vector<float>& average,
                        const std::vector<int64_t>& rows) {
    PsSession session(&cluster.client(), {.context = cluster.context(),
                                          .function = function,
                                          .job_step = 1,
                                          .round = kRound,
                                          .most_contributions = 3});
    const std::vector<float> of_rows(rows.size() * 5, static_cast<float>(function));
    std::vector<VariableWrite> writes = {{kSteps, VariableWrite::kAssign, &steps}};
    writes.push_back({.variable = kWeights,
                      .kind = VariableWrite::kScatterUpdate,
                      .value = of_rows.data(),
                      .rows = rows});
    if (!average.empty()) writes.push_back({kAverage, VariableWrite::kAssign, average.data()});
    MU_ASSERT_OK(session.Push(writes, {}));
  };
  push(7, 70, {2, 4, 6}, {0, 5});
  push(3, 30, {6, 4, 2}, {5, 1});
  push(5, 50, {}, {0});
  pb::CommitRoundRequest request;
  *request.mutable_context() = cluster.context();
  request.set_round(kRound);
  for (const auto& [function, weight] : {std::pair{7, 3}, std::pair{3, 1}, std::pair{5, 4}}) {
    auto& contribution = *request.add_contributions();
    contribution.set_function(function);
    contribution.set_weight(weight);
  }
  std::vector<float> weights(30), before(30), average(3);
  int64_t steps = 0;
  const auto read = [&](std::vector<float>* to) {
    PsSession session = cluster.Session(1, /*read_only=*/true);
    const VariableRead reads[] = {
        {kSteps, &steps}, {kAverage, average.data()}, {kWeights, to->data()}};
    MU_ASSERT_OK(session.Pull(reads, {}));
  };
  read(&before);
  MU_ASSERT_OK(cluster.server(0).CommitRound(request).status());
  read(&weights);
  EXPECT_EQ(steps, 50) << "of the last contribution";
  EXPECT_EQ(average, (std::vector<float>{3, 4, 5})) << "(3 * 7's + 3's) / 4";
  std::vector<float> expected = before;
  std::fill_n(expected.begin(), 5, 5.0f);
  std::fill_n(expected.begin() + 5, 5, 3.0f);
  std::fill_n(expected.begin() + 25, 5, 3.0f);
  EXPECT_EQ(weights, expected);
}

}  // namespace
}  // namespace mu
