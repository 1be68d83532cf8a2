// Averages that servers move (moving_part): by updates of many workers, repeats, several updates in
// one push, and synchronous rounds.
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/sharding/definitions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "psserver/store/variable_partition.h"
#include "tests/psserver/cluster.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::PsCluster;
using testing::StatusIs;

constexpr uint32_t kSteps = 2, kAverage = 4;  // of SmallModel: int64 [], float32 [3]
constexpr float kPart = 0.25f;

// The average begins with ones.
pb::RoutingProto Model() {
  pb::RoutingProto model = testing::SmallModel(1);
  pb::VariableProto* const average = model.mutable_variables(kAverage);
  average->mutable_initializer()->mutable_constant()->set_value(1);
  average->set_moving_part(kPart);
  return model;
}

class MovingAverageTest : public ::testing::Test {
 protected:
  MovingAverageTest() { EXPECT_THAT(cluster_.Configure(), testing::IsOk()); }

  std::vector<float> Read() {
    std::vector<float> average(3);
    PsSession session = cluster_.Session(1, /*read_only=*/true);
    const VariableRead reads[] = {{kAverage, average.data()}};
    EXPECT_THAT(session.Pull(reads, {}), testing::IsOk());
    return average;
  }
  // Returns whether the server had applied it before.
  bool Push(uint64_t function, uint32_t step, const std::vector<std::vector<float>>& moments) {
    PsSession session = cluster_.Session(function);
    session.BeginStep(step);
    std::vector<VariableWrite> writes;
    for (const std::vector<float>& moment : moments)
      writes.push_back({kAverage, VariableWrite::kAssignAdd, moment.data()});
    EXPECT_THAT(session.Push(writes, {}), testing::IsOk());
    return session.push_repeated();
  }
  // `average`: empty if it brings none.
  void Contribute(uint64_t function, uint64_t round, const std::vector<float>& average) {
    PsSession session(&cluster_.client(), {.context = cluster_.context(),
                                           .function = function,
                                           .job_step = 1,
                                           .round = round,
                                           .most_contributions = 3});
    const int64_t one = 1;
    std::vector<VariableWrite> writes = {{kSteps, VariableWrite::kAssignAdd, &one}};
    if (!average.empty()) writes.push_back({kAverage, VariableWrite::kAssignAdd, average.data()});
    MU_ASSERT_OK(session.Push(writes, {}));
  }
  void Commit(uint64_t round, const std::vector<std::pair<uint64_t, uint32_t>>& weights) {
    pb::CommitRoundRequest request;
    *request.mutable_context() = cluster_.context();
    request.set_round(round);
    for (const auto& [function, weight] : weights) {
      auto& contribution = *request.add_contributions();
      contribution.set_function(function);
      contribution.set_weight(weight);
    }
    MU_ASSERT_OK(cluster_.server(0).CommitRound(request).status());
  }

  PsCluster cluster_{1, Model()};
};

// What a worker pushes does not depend on what it read, so it does not matter how many others have
// moved the average meanwhile.
TEST_F(MovingAverageTest, ComesToWhatManyWorkersSee) {
  constexpr uint64_t kWorkers = 32;
  constexpr uint32_t kStepsOfEach = 4;
  const std::vector<float> moment = {4, 0, 1000};
  double left = 1;
  for (uint32_t step = 0; step < kStepsOfEach; ++step) {
    for (uint64_t worker = 1; worker <= kWorkers; ++worker) {
      EXPECT_FALSE(Push(worker, step, {moment}));
      left *= 1 - kPart;
      const std::vector<float> average = Read();
      for (size_t i = 0; i < moment.size(); ++i) {
        EXPECT_GE(average[i], 0);
        EXPECT_NEAR(average[i], moment[i] + (1 - moment[i]) * left, 1e-3);
      }
    }
  }
}

TEST_F(MovingAverageTest, ARepeatDoesNotMoveIt) {
  EXPECT_FALSE(Push(1, 0, {{5, 9, 1}}));
  EXPECT_EQ(Read(), (std::vector<float>{2, 3, 1}));
  EXPECT_TRUE(Push(1, 0, {{5, 9, 1}}));
  EXPECT_EQ(Read(), (std::vector<float>{2, 3, 1}));
}

TEST_F(MovingAverageTest, SeveralUpdatesOfAPushMoveItOneAfterTheOther) {
  Push(1, 0, {{5, 9, 1}, {6, 3, 5}});
  EXPECT_EQ(Read(), (std::vector<float>{3, 3, 2}));
}

TEST_F(MovingAverageTest, TakesNoAdditionsToItsRows) {
  const std::vector<int64_t> rows = {0};
  const float one = 1;
  const VariableWrite writes[] = {
      {.variable = kAverage, .kind = VariableWrite::kScatterAdd, .value = &one, .rows = rows}};
  PsSession session = cluster_.Session();
  EXPECT_THAT(session.Push(writes, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 HasSubstr("'average' has a moving_part")));
  EXPECT_EQ(Read(), (std::vector<float>{1, 1, 1}));
}

TEST_F(MovingAverageTest, MovesOnceARoundToTheMeanByRecords) {
  Contribute(1, 1, {4, 1, 0});
  Contribute(2, 1, {8, 1, 0});
  Commit(1, {{1, 1}, {2, 3}});
  EXPECT_EQ(Read(), (std::vector<float>{2.5, 1, 0.75})) << "a quarter of the way from 1 to 7, 1, 0";
}

// As a gradient, it counts by the records of the whole round.
TEST_F(MovingAverageTest, MovesLessIfSomeContributionsBringNothing) {
  Contribute(1, 1, {4, 1, 0});
  Contribute(2, 1, {8, 1, 0});
  Contribute(3, 1, {});
  Commit(1, {{1, 1}, {2, 3}, {3, 4}});
  EXPECT_EQ(Read(), (std::vector<float>{1.75, 1, 0.875})) << "half as far";
}

// Such as a variance below 0.
TEST(MoveTowards, NeverLeavesTheRange) {
  MU_ASSERT_OK_AND_ASSIGN(
      const auto partition,
      VariablePartition::Create(
          std::make_shared<const VariableDefinition>(Model().variables(kAverage)), 0));
  SplitMix random(3);
  std::vector<float> before(3), moments(3), after(3);
  for (int i = 0; i < 20'000; ++i) {
    for (float& moment : moments) {
      moment = random.Below(4) == 0
                   ? 0.0f
                   : std::exp2(static_cast<float>(random.Unit()) * 200.0f - 100.0f);
    }
    const float part = i % 3 == 0 ? 1.0f : static_cast<float>(random.Unit());
    partition->Read(before.data());
    partition->MoveTowards(moments.data(), part);
    partition->Read(after.data());
    for (size_t k = 0; k < after.size(); ++k) {
      ASSERT_GE(after[k], 0) << "update " << i << ": " << before[k] << " to " << moments[k];
      ASSERT_TRUE(std::isfinite(after[k]));
    }
  }
  EXPECT_EQ(partition->updates(), 20'000u);
}

TEST(MovingPart, IsOfFloatsWithoutAnOptimizer) {
  const pb::VariableProto good = Model().variables(kAverage);
  MU_EXPECT_OK(CheckVariableParts(good));
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("moving_part"));
  for (const float part : {-0.25f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    pb::VariableProto bad = good;
    bad.set_moving_part(part);
    EXPECT_THAT(CheckVariableParts(bad), refused) << part;
  }
  pb::VariableProto whole = good;
  whole.set_dtype(pb::INT64);
  EXPECT_THAT(CheckVariableParts(whole), refused);
  pb::VariableProto trained = good;
  trained.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  EXPECT_THAT(CheckVariableParts(trained), refused);
}

}  // namespace
}  // namespace mu
