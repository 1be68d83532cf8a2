// A push to several partitions, some of which inherited it from the checkpoint they came from.
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "psserver/compute_threads.h"
#include "psserver/pull.h"
#include "psserver/push.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::Bytes;
using testing::Frame;

constexpr uint32_t kBias = 1, kUsers = 101;  // SGD at 0.5, from zero
constexpr size_t kRows = 3, kDim = 4;

class PushPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(store_.Configure(testing::SmallModel(1), 0));
    // One row in each of the first partitions.
    const auto& users = *store_.directory()->table(kUsers);
    for (int64_t id = 0; ids_.size() < kRows; ++id) {
      if (users.definition->PartitionOf(static_cast<uint64_t>(id)) == ids_.size())
        ids_.push_back(id);
    }
  }

  // Gradients: row r's are r + 1, bias' is 9. What `inherited` names is left alone.
  void Push(const std::set<uint32_t>& partitions, bool bias) {
    const PushId id{7, 0, 0};
    auto inherited = std::make_shared<InheritedMemory>();
    AppliedSteps steps;
    steps.Add(id);
    const size_t memory = inherited->Add(steps);
    for (const uint32_t p : partitions)
      inherited->Inherit({PartitionKey::Kind::kTable, kUsers, p}, memory);
    if (bias) inherited->Inherit({PartitionKey::Kind::kVariable, kBias, 0}, memory);
    AdmittedPush push;
    push.id = id;
    push.inherited = inherited;

    pb::PushRequest request;
    pb::VariableUpdate& update = *request.add_variables();
    update.set_variable(kBias);
    update.set_kind(pb::VariableUpdate::GRADIENT);
    auto& rows = *request.add_tables();
    rows.set_table(kUsers);
    std::vector<float> gradients;
    for (uint32_t r = 0; r < kRows; ++r) {
      rows.add_partitions(r);
      rows.add_counts(1);
      gradients.insert(gradients.end(), kDim, static_cast<float>(r + 1));
    }
    // Everything begins at a multiple of 8.
    const std::string payload = Bytes(ids_) + Bytes<float>({9, 0}) + Bytes(gradients);
    const auto directory = store_.directory();
    MU_ASSERT_OK_AND_ASSIGN(PushPlan plan,
                            PushPlan::Check(*directory, request, payload, &threads_));
    plan.Skip(push);
    plan.Apply();
  }
  // Bias, then the first number of each row.
  std::vector<float> Values() {
    pb::PullRequest request;
    request.add_variables()->set_variable(kBias);
    auto& rows = *request.add_tables();
    rows.set_table(kUsers);
    for (uint32_t r = 0; r < kRows; ++r) {
      rows.add_partitions(r);
      rows.add_counts(1);
    }
    const auto reply =
        ExecutePull(*store_.directory(), request, Bytes(ids_), {}, 1 << 20, &threads_);
    EXPECT_THAT(reply, testing::IsOk());
    pb::PullReply header;
    const auto payload = ParseFrame(*reply, &header);
    std::vector<float> values(payload->size() / sizeof(float));
    std::memcpy(values.data(), payload->data(), payload->size());
    std::vector<float> firsts = {values[0]};
    for (size_t r = 0; r < kRows; ++r) firsts.push_back(values[values.size() - (kRows - r) * kDim]);
    return firsts;
  }

  Store store_;
  ComputeThreads threads_{2};
  std::vector<int64_t> ids_;
};

TEST_F(PushPlanTest, EachPartitionThatIsLeftGetsItsOwnGradients) {
  for (uint32_t mask = 0; mask < 16; ++mask) {
    SCOPED_TRACE(mask);
    const std::vector<float> before = Values();
    std::set<uint32_t> inherited;
    for (uint32_t r = 0; r < kRows; ++r) {
      if ((mask >> r & 1) != 0) inherited.insert(r);
    }
    const bool bias = (mask & 8) != 0;
    Push(inherited, bias);
    std::vector<float> expected = before;
    if (!bias) expected[0] -= 4.5f;
    for (uint32_t r = 0; r < kRows; ++r) {
      if (!inherited.contains(r)) expected[1 + r] -= 0.5f * static_cast<float>(r + 1);
    }
    EXPECT_EQ(Values(), expected);
  }
}

// Adam's bias correction would divide by 0.
TEST_F(PushPlanTest, AnOptimizerThatNeedsTheStepsPlaceIsTold) {
  pb::RoutingProto model = testing::SmallModel(1);
  model.mutable_variables(1)->mutable_optimizer()->mutable_adam()->set_learning_rate(0.5f);
  model.mutable_tables(1)->mutable_optimizer()->mutable_adam()->set_learning_rate(0.5f);
  Store store;
  MU_ASSERT_OK(store.Configure(model, 0));
  const auto directory = store.directory();
  pb::PushRequest variable, table;
  variable.add_variables()->set_variable(kBias);
  const std::string gradient = Bytes<float>({9, 0});
  table.add_tables()->set_table(kUsers);
  table.mutable_tables(0)->add_partitions(static_cast<uint32_t>(ids_[0]) % 64);
  table.mutable_tables(0)->add_counts(1);
  const std::string row = Bytes<int64_t>({ids_[0]}) + Bytes<float>({1, 1, 1, 1});
  const auto refused = testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                         ::testing::HasSubstr("needs the step's place in the job"));
  EXPECT_THAT(PushPlan::Check(*directory, variable, gradient, &threads_).status(), refused);
  EXPECT_THAT(PushPlan::Check(*directory, table, row, &threads_).status(), refused);
  variable.set_job_step(1);
  table.set_job_step(1);
  MU_EXPECT_OK(PushPlan::Check(*directory, variable, gradient, &threads_).status());
  MU_EXPECT_OK(PushPlan::Check(*directory, table, row, &threads_).status());
  // Values added as they are need no step.
  variable.clear_job_step();
  variable.mutable_variables(0)->set_kind(pb::VariableUpdate::ASSIGN_ADD);
  MU_EXPECT_OK(PushPlan::Check(*directory, variable, gradient, &threads_).status());
}

// FTRL needs the learning rate without what scales it: x = -c g / ((1 + |g|) / 0.5) from zeros.
TEST_F(PushPlanTest, WhatScalesTheRateIsKnownApartFromIt) {
  pb::RoutingProto model = testing::SmallModel(1);
  model.mutable_variables(1)->mutable_optimizer()->mutable_ftrl()->set_learning_rate(0.5f);
  model.mutable_tables(1)->mutable_optimizer()->mutable_ftrl()->set_learning_rate(0.5f);
  Store store;
  MU_ASSERT_OK(store.Configure(model, 0));
  const auto directory = store.directory();
  pb::PushRequest request;
  request.set_rate_scale(0.5f);
  request.add_variables()->set_variable(kBias);
  auto& rows = *request.add_tables();
  rows.set_table(kUsers);
  rows.add_partitions(0);
  rows.add_counts(1);
  const std::string payload =
      Bytes<int64_t>({ids_[0]}) + Bytes<float>({7, 0}) + Bytes<float>({1, 1, 1, 1});
  MU_ASSERT_OK_AND_ASSIGN(PushPlan plan, PushPlan::Check(*directory, request, payload, &threads_));
  AdmittedPush push;
  push.staleness.gradients = {
      {.key = {PartitionKey::Kind::kVariable, kBias}, .read = std::nullopt, .late = 4},
      {.key = {PartitionKey::Kind::kTable, kUsers}, .read = std::nullopt, .late = 2}};
  plan.Discount(push, pb::STALENESS_DISCOUNT_INVERSE);
  EXPECT_EQ(plan.variables()[0].rates.factor, 0.125f);
  EXPECT_EQ(plan.variables()[0].rates.rate, 0.0625f);
  EXPECT_EQ(plan.rates()[0].factor, 0.25f);
  plan.Apply();
  float bias = 0, row[kDim] = {};
  directory->variable(kBias)->partitions[0]->Read(&bias);
  directory->table(kUsers)->partitions[0]->Pull({ids_[0]}, /*read_only=*/true, row);
  EXPECT_EQ(bias, -0.125f * 7 / ((1 + 7) / 0.5f));
  for (const float value : row) EXPECT_EQ(value, -0.25f / ((1 + 1) / 0.5f));
}

TEST_F(PushPlanTest, ARateBeyondAFloatIsRefused) {
  pb::RoutingProto model = testing::SmallModel(1);
  model.mutable_variables(1)->mutable_optimizer()->mutable_sgd()->set_learning_rate(1e30f);
  Store store;
  MU_ASSERT_OK(store.Configure(model, 0));
  const auto directory = store.directory();
  pb::PushRequest request;
  request.add_variables()->set_variable(kBias);
  const std::string gradient = Bytes<float>({9, 0});
  MU_EXPECT_OK(PushPlan::Check(*directory, request, gradient, &threads_).status());
  request.set_rate_scale(1e30f);
  EXPECT_THAT(PushPlan::Check(*directory, request, gradient, &threads_).status(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("learning rate of variable 'bias'")));
}

}  // namespace
}  // namespace mu
