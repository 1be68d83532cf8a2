// Values that no gradient has made: loaded without slots, assigned, added to. With every kind of
// optimizer a small gradient moves them a little, and does not replace them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "psserver/checkpoint/checkpoint.h"
#include "psserver/store/store.h"
#include "psserver/store/store_cut.h"
#include "tests/testing/example_optimizers.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::ExampleOptimizer;
using testing::ExampleOptimizers;

constexpr uint32_t kVariable = 1, kTable = 2;
constexpr size_t kRows = 11, kDim = 3;  // of both; more than eight values at a time, and a rest
// The schedule's factor: what is not wiped moves by much less than 1%.
constexpr float kFactor = 1e-3f;

pb::RoutingProto Model(const muster::OptimizerProto& optimizer) {
  pb::RoutingProto routing;
  routing.set_version(1);
  routing.add_servers();
  pb::VariableProto* v = routing.add_variables();
  v->set_id(kVariable);
  v->set_name("v");
  v->set_dtype(pb::FLOAT32);
  v->mutable_shape()->add_dims(kRows);
  v->mutable_shape()->add_dims(kDim);
  v->set_trainable(true);
  v->add_partition_starts(0);
  v->add_placement(0);
  *v->mutable_optimizer() = optimizer;
  pb::TableProto* t = routing.add_tables();
  t->set_id(kTable);
  t->set_name("t");
  t->set_rows(kRows);
  t->set_dim(kDim);
  t->set_partitions(1);
  t->add_placement(0);
  *t->mutable_optimizer() = optimizer;
  return routing;
}

// Of either sign, 0.5 to 1.5, and 0 somewhere.
std::vector<float> Given() {
  std::vector<float> values;
  for (size_t i = 0; i < kRows * kDim; ++i) {
    const float x = 0.5f + static_cast<float>(i) / static_cast<float>(kRows * kDim);
    values.push_back(i == 7 ? 0 : i % 2 == 0 ? x : -x);
  }
  return values;
}

class GivenValuesTest : public ::testing::TestWithParam<ExampleOptimizer> {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(store_.Configure(Model(GetParam().proto), 0));
    for (size_t i = 0; i < kRows; ++i) {
      rows_.push_back(static_cast<int64_t>(i));
      if (i % 2 == 0) some_.push_back(rows_.back());
    }
  }
  VariablePartition& variable() { return *store_.directory()->variable(kVariable)->partitions[0]; }
  TablePartition& table() { return *store_.directory()->table(kTable)->partitions[0]; }

  // The same gradient for all values.
  void Push(float gradient) {
    const std::vector<float> gradients(kRows * kDim, gradient);
    const RowOptimizer& of_variable =
        store_.directory()->variable(kVariable)->definition->optimizer;
    const RowOptimizer& of_table = store_.directory()->table(kTable)->definition->optimizer;
    const PushStep step = {.rate_scale = kFactor, .job_step = ++steps_};
    variable().ApplyGradient(gradients.data(), of_variable.RatesOf(step));
    table().Push(rows_, gradients.data(), of_table.RatesOf(step));
  }
  // Slots get something, so they give other values than those that follow.
  void Train() {
    for (int i = 0; i < 5; ++i) Push(i % 2 == 0 ? 1.0f : -0.5f);
  }
  std::vector<float> VariableValues() {
    std::vector<float> values(kRows * kDim);
    variable().Read(values.data());
    return values;
  }
  std::vector<float> TableValues() {
    std::vector<float> values(kRows * kDim);
    table().Pull(rows_, /*read_only=*/true, values.data());
    return values;
  }
  static void ExpectStays(const std::vector<float>& values, const std::vector<float>& given,
                          const char* what) {
    ASSERT_EQ(values.size(), given.size());
    for (size_t i = 0; i < given.size(); ++i)
      EXPECT_NEAR(values[i], given[i], 0.01f * std::max(0.5f, std::abs(given[i]))) << what << i;
  }
  void ExpectVariableStays(const std::vector<float>& given, const char* how) {
    ExpectStays(VariableValues(), given, how);
    Push(1e-6f);
    ExpectStays(VariableValues(), given, how);
  }
  Store store_;
  std::vector<int64_t> rows_, some_;
  uint64_t steps_ = 0;
};

TEST_P(GivenValuesTest, LoadedWithoutSlots) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("given_values"));
  Store other;
  MU_ASSERT_OK(other.Configure(Model(GetParam().proto), 0));
  other.directory()->variable(kVariable)->partitions[0]->Assign(Given().data());
  other.directory()->table(kTable)->partitions[0]->AssignRows(rows_, Given().data());
  CutCopies copies;
  MU_ASSERT_OK_AND_ASSIGN(const auto cut, StoreCut::Prepare(other.directory(), &copies));
  cut->Take();
  MU_ASSERT_OK_AND_ASSIGN(const auto saved,
                          SaveCheckpointFile(cut.get(), {}, directory.path(), "ps-0.safetensors",
                                             [](const std::function<void()>& read) {
                                               if (read != nullptr) read();
                                               return absl::OkStatus();
                                             }));
  CheckpointFiles files;
  *files.Add() = saved.file;
  pb::TakenValuesProto take;
  for (const char* const name : {"v", "t"}) {
    pb::TakenValuesProto::Name* const taken = take.add_names();
    taken->set_own(name);
    taken->set_from(name);
  }
  MU_ASSERT_OK(LoadCheckpoint(*store_.directory(), directory.path(), files, 0, &take).status());
  EXPECT_EQ(VariableValues(), Given());
  EXPECT_EQ(TableValues(), Given());
  Push(1e-6f);
  ExpectStays(VariableValues(), Given(), "variable ");
  ExpectStays(TableValues(), Given(), "table ");
}

TEST_P(GivenValuesTest, RowsOfATable) {
  table().AssignRows(rows_, Given().data());  // of which none exists
  Push(1e-6f);
  ExpectStays(TableValues(), Given(), "new ");
  Train();
  table().AssignRows(rows_, Given().data());
  EXPECT_EQ(TableValues(), Given());
  Push(1e-6f);
  ExpectStays(TableValues(), Given(), "known ");
}

TEST_P(GivenValuesTest, AVariable) {
  const std::vector<float> given = Given();
  Train();
  variable().Assign(given.data());
  ExpectVariableStays(given, "assigned ");
  Train();
  variable().Update(std::nullopt, given.data());
  ExpectVariableStays(given, "by a push ");
  Train();
  const std::vector<float> delta = Given(), before = VariableValues();
  variable().AssignAdd(delta.data());
  std::vector<float> sum;
  for (size_t i = 0; i < delta.size(); ++i) sum.push_back(before[i] + delta[i]);
  ExpectVariableStays(sum, "added ");
}

TEST_P(GivenValuesTest, RowsOfAVariable) {
  std::vector<float> given = Given(), some;
  variable().Assign(given.data());
  Train();
  for (const int64_t row : some_) {
    for (size_t i = 0; i < kDim; ++i)
      some.push_back(2 * given[static_cast<size_t>(row) * kDim + i]);
  }
  const auto expect = [&](const std::vector<float>& values, const char* how) {
    for (size_t r = 0; r < some_.size(); ++r) {
      for (size_t i = 0; i < kDim; ++i) {
        const float x = some[r * kDim + i];
        EXPECT_NEAR(values[static_cast<size_t>(some_[r]) * kDim + i], x,
                    0.01f * std::max(0.5f, std::abs(x)))
            << how << some_[r];
      }
    }
  };
  variable().AssignRows(some_, reinterpret_cast<const char*>(some.data()));
  Push(1e-6f);
  expect(VariableValues(), "assigned ");
  Train();
  variable().Update(absl::MakeConstSpan(some_), some.data());
  Push(1e-6f);
  expect(VariableValues(), "by a push ");
  std::vector<float> delta(some.size(), 0.25f);
  variable().AddRows(some_, delta.data());
  for (float& x : some) x += 0.25f;
  Push(1e-6f);
  expect(VariableValues(), "added ");
}

INSTANTIATE_TEST_SUITE_P(All, GivenValuesTest, ::testing::ValuesIn(ExampleOptimizers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mu
