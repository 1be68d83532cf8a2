#include "coordinator/training/parameter_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "tests/testing/fake_factory.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

pb::JobProto Job(const std::string& text) {
  pb::JobProto job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job));
  return job;
}

class ParameterRulesTest : public ::testing::Test {
 protected:
  pb::VariableProto CreateVariable(RuledFactory& factory, const VariableSpec& spec) {
    const auto variable = factory.CreateVariable(spec);
    EXPECT_THAT(variable, testing::IsOk());
    return variable.ok() ? variable->proto() : pb::VariableProto();
  }
  testing::FakeFactory fake_;
};

TEST_F(ParameterRulesTest, TheLastThatMatchesDecides) {
  const pb::JobProto job = Job(R"(
      parameters { match: "*" optimizer { adam { learning_rate: 0.5 } } learning_rate_factor: 0.5 }
      parameters { match: "wide/*" optimizer { ftrl { learning_rate: 0.5 } } }
      parameters { match: "*/bias" learning_rate_factor: 2 }
      parameters { match: "wide/b?as" trainable: false })");
  RuledFactory factory(job, &fake_);
  const auto deep = CreateVariable(factory, {.name = "deep/kernel", .optimizer = Sgd{1}});
  EXPECT_EQ(deep.optimizer().adam().learning_rate(), 0.25f);
  const auto wide = CreateVariable(factory, {.name = "wide/deep/kernel"});
  EXPECT_EQ(wide.optimizer().ftrl().learning_rate(), 0.25f) << "* is any text, / too";
  const auto bias = CreateVariable(factory, {.name = "deep/bias", .learning_rate_factor = 4});
  EXPECT_EQ(bias.optimizer().adam().learning_rate(), 4.0f) << "0.5, 2 by the job, 4 by the model";
  const auto frozen = CreateVariable(factory, {.name = "wide/bias"});
  EXPECT_FALSE(frozen.trainable());
  EXPECT_FALSE(frozen.has_optimizer());
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                          factory.CreateEmbeddingTable({.name = "table", .rows = 2, .dim = 2}));
  EXPECT_EQ(table.proto().optimizer().adam().learning_rate(), 0.25f);
  EXPECT_THAT(factory.Problems(), IsEmpty());
  MU_EXPECT_OK(factory.Check());
}

// Moving averages and counts are the model's own.
TEST_F(ParameterRulesTest, WhatTheModelDoesNotTrainStaysSo) {
  const pb::JobProto job = Job(R"(
      parameters { match: "*" optimizer { adam { learning_rate: 0.5 } } trainable: true })");
  RuledFactory factory(job, &fake_);
  EXPECT_FALSE(CreateVariable(factory, {.name = "mean", .trainable = false}).trainable());
  EXPECT_FALSE(CreateVariable(factory, {.name = "count", .dtype = kInt64}).has_optimizer());
}

TEST_F(ParameterRulesTest, NothingIsLeftToTrain) {
  const pb::JobProto job = Job(R"(
      parameters { match: "a*" trainable: false }
      parameters { match: "*" trainable: false }
      parameters { match: "*" learning_rate_factor: 2 })");
  const auto created = [&](const pb::JobProto& of, bool model_trains) {
    RuledFactory factory(of, &fake_);
    static int made = 0;
    CreateVariable(factory, {.name = absl::StrCat("a", ++made), .trainable = model_trains});
    CreateVariable(factory, {.name = absl::StrCat("mean", made), .trainable = false});
    MU_EXPECT_OK(factory.Check());
    return factory.NothingToTrain();
  };
  EXPECT_THAT(created(job, true), HasSubstr("parameters[1].trainable: is false, and no variable"));
  EXPECT_EQ(created(job, false), "") << "that is the model's own doing";
  pb::JobProto again = job;
  *again.add_parameters() = Job(R"(parameters { match: "a*" trainable: true })").parameters(0);
  EXPECT_EQ(created(again, true), "");
}

TEST_F(ParameterRulesTest, WhatMatchesNothingIsAProblem) {
  const pb::JobProto job = Job(R"(
      parameters { match: "w*" trainable: false }
      parameters { match: "x" trainable: false })");
  RuledFactory factory(job, &fake_);
  CreateVariable(factory, {.name = "w"});
  CreateVariable(factory, {.name = "v"});
  EXPECT_THAT(factory.Problems(),
              ElementsAre("parameters[1].match: `x` is the name of no variable or table of the "
                          "model, which has v, w"));
  EXPECT_THAT(factory.Check(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("`x`")));
}

TEST_F(ParameterRulesTest, VariablesAreCutAsTheJobSays) {
  const pb::JobProto job = Job(R"(
      parameters { match: "*" partitioner { fixed_shards: 4 } }
      parameters { match: "*/bias" partitioner { max_size: 64 } }
      parameters { match: "wide/*" partitioner { min_size: 32 } }
      parameters { match: "wide/*" learning_rate_factor: 2 })");
  RuledFactory factory(job, &fake_);
  const auto partitioner = [&](const VariableSpec& spec) {
    return CreateVariable(factory, spec).partitioner();
  };
  EXPECT_EQ(partitioner({.name = "kernel"}).fixed_shards(), 4u);
  EXPECT_EQ(partitioner({.name = "own", .partitioner = MinSize{5}}).fixed_shards(), 4u)
      << "the job decides over the model";
  EXPECT_EQ(partitioner({.name = "count", .dtype = kInt64}).fixed_shards(), 4u);
  EXPECT_EQ(partitioner({.name = "deep/bias"}).max_size(), 64u);
  EXPECT_EQ(partitioner({.name = "wide/bias"}).min_size(), 32u);
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                          factory.CreateEmbeddingTable({.name = "table", .rows = 2, .dim = 2}));
  EXPECT_EQ(table.proto().partitions(), 0u) << "the coordinator's choice";
  EXPECT_THAT(factory.Problems(), IsEmpty());
}

TEST_F(ParameterRulesTest, APartitionerOfTablesIsAProblem) {
  const pb::JobProto job = Job(R"(
      parameters { match: "t*" partitioner { fixed_shards: 4 } }
      parameters { match: "*" partitioner { fixed_shards: 4 } }
      parameters { match: "x" partitioner { fixed_shards: 4 } })");
  RuledFactory factory(job, &fake_);
  CreateVariable(factory, {.name = "v", .partitioner = FixedShards{2}});
  MU_ASSERT_OK(factory.CreateEmbeddingTable({.name = "table", .rows = 2, .dim = 2}));
  EXPECT_THAT(factory.Problems(),
              ElementsAre("parameters[0].partitioner: is for variables, and `t*` is the name of "
                          "tables only, which are cut by their ids; remove it",
                          HasSubstr("parameters[2].match: `x`")));
}

}  // namespace
}  // namespace mu
