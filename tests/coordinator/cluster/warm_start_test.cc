// Which values a warm start takes, and what is wrong with a map of names.
#include "coordinator/cluster/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename Message>
void AddVariable(Message* message, const std::string& name, std::vector<int64_t> shape,
                 bool adagrad = false) {
  pb::VariableProto* variable = message->add_variables();
  variable->set_name(name);
  variable->set_dtype(pb::FLOAT32);
  for (const int64_t dim : shape) variable->mutable_shape()->add_dims(dim);
  if (adagrad) variable->mutable_optimizer()->mutable_adagrad()->set_learning_rate(1);
  if (!adagrad) variable->mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
}
template <typename Message>
void AddTable(Message* message, const std::string& name, uint64_t rows, uint32_t partitions) {
  pb::TableProto* table = message->add_tables();
  table->set_name(name);
  table->set_rows(rows);
  table->set_dim(4);
  table->set_partitions(partitions);
}

class WarmStartTest : public ::testing::Test {
 protected:
  WarmStartTest() {
    AddVariable(&saved_, "bias", {});
    AddVariable(&saved_, "deep/w0", {3, 2});
    AddVariable(&saved_, "deep/w1", {2, 1});
    AddTable(&saved_, "user", 100, 64);
    AddVariable(&model_, "bias", {});
    AddVariable(&model_, "tower/w0", {3, 2});
    AddVariable(&model_, "tower/w1", {2, 1});
    AddTable(&model_, "member", 100, 64);
    AddTable(&model_, "item", 50, 64);
  }

  // "own=from", or the problems.
  std::vector<std::string> Plan(const WarmStartSpec& spec) {
    problems_.clear();
    std::vector<std::string> taken;
    const auto plan = PlanWarmStart(spec, saved_, model_, &problems_);
    for (const auto& name : plan.names())
      taken.push_back(absl::StrCat(name.own(), "=", name.from()));
    return taken;
  }
  std::string Only() {
    EXPECT_EQ(problems_.size(), 1u);
    if (problems_.size() != 1) return "";
    return absl::StrCat(problems_[0].entry, problems_[0].in_to ? " to " : " from ",
                        problems_[0].message, "; ", problems_[0].remedy);
  }

  pb::CheckpointProto saved_;
  pb::RoutingProto model_;
  std::vector<WarmStartProblem> problems_;
};

TEST_F(WarmStartTest, ByAMapOfNames) {
  EXPECT_THAT(Plan({.map = {{"user", "member"}, {"deep/*", "tower/*"}}}),
              ElementsAre("member=user", "tower/w0=deep/w0", "tower/w1=deep/w1"));
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_THAT(Plan({.map = {{"bias", ""}}}), ElementsAre("bias=bias"));
  EXPECT_THAT(NamesInModel({.map = {{"user", "member"}}}, "user"), ElementsAre("member"));
  EXPECT_THAT(NamesInModel({.map = {{"user", "member"}}}, "item"), IsEmpty());
  EXPECT_THAT(NamesInModel({}, "item"), ElementsAre("item"));
}

TEST_F(WarmStartTest, OneSourceMayBeginSeveral) {
  AddTable(&model_, "guest", 100, 64);
  const WarmStartSpec spec{.map = {{"user", "member"}, {"user", "guest"}}};
  EXPECT_THAT(Plan(spec), ElementsAre("member=user", "guest=user"));
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_THAT(NamesInModel(spec, "user"), ElementsAre("member", "guest"));
}

TEST_F(WarmStartTest, WithoutAMapWhatBothHave) {
  EXPECT_THAT(Plan({}), ElementsAre("bias=bias"));
  EXPECT_THAT(problems_, IsEmpty());
  saved_.mutable_variables(0)->set_name("other");
  EXPECT_THAT(Plan({}), IsEmpty());
  EXPECT_THAT(Only(), HasSubstr("no name in common"));
}

TEST_F(WarmStartTest, NamesThatAreNotThere) {
  EXPECT_THAT(Plan({.map = {{"users", "member"}}}), IsEmpty());
  EXPECT_EQ(Only(),
            "0 from is `users`, which no variable or table of the checkpoint is called; did you "
            "mean `user`?");
  Plan({.map = {{"bias", ""}, {"user", "members"}}});
  EXPECT_EQ(Only(), "1 to is `members`, which the model does not have; did you mean `member`?");
  Plan({.map = {{"deep/*", "towel/*"}}});
  EXPECT_EQ(problems_.size(), 2u) << "one for each that matches";
  Plan({.map = {{"wide/*", "tower/*"}}});
  EXPECT_THAT(Only(), HasSubstr("it has bias, deep/w0, deep/w1, user"));
}

TEST_F(WarmStartTest, WrongPatterns) {
  Plan({.map = {{"", "bias"}}});
  EXPECT_THAT(Only(), HasSubstr("names nothing"));
  Plan({.map = {{"*/*", "tower/w0"}}});
  EXPECT_THAT(Only(), HasSubstr("0 from has more than one `*`"));
  Plan({.map = {{"bias", "*"}}});
  EXPECT_THAT(Only(), HasSubstr("0 to has a `*`, which `from` has not"));
  Plan({.map = {{"bias", ""}, {"bias", "bias"}}});
  EXPECT_THAT(Only(), HasSubstr("1 to gives `bias` the values of bias, but it has those of bias"));
}

TEST_F(WarmStartTest, WhatDoesNotFit) {
  Plan({.map = {{"deep/w0", "tower/w1"}}});
  EXPECT_THAT(Only(), HasSubstr("`deep/w0`, a variable float32[3, 2] in the checkpoint, but "
                                "`tower/w1` of the model is a variable float32[2, 1]"));
  Plan({.map = {{"user", "item"}}});
  EXPECT_THAT(Only(), HasSubstr("a table of 100 rows of 4 in the checkpoint, but `item` of the "
                                "model is a table of 50 rows of 4"));
  model_.mutable_tables(0)->set_partitions(128);
  Plan({.map = {{"user", "member"}}});
  EXPECT_THAT(Only(), HasSubstr("cut into other partitions"));
  model_.mutable_tables(0)->set_partitions(0);  // not known yet
  EXPECT_THAT(Plan({.map = {{"user", "member"}}}), ElementsAre("member=user"));
}

TEST_F(WarmStartTest, AVariableOfOtherPartitions) {
  const WarmStartSpec spec{.map = {{"deep/w0", "tower/w0"}}};
  for (const int64_t start : {0, 2}) saved_.mutable_variables(1)->add_partition_starts(start);
  EXPECT_THAT(Plan(spec), IsEmpty());
  EXPECT_THAT(Only(), HasSubstr("cut into other partitions"));
  model_.mutable_variables(1)->mutable_partitioner()->set_fixed_shards(2);
  EXPECT_THAT(Plan(spec), ElementsAre("tower/w0=deep/w0"));
}

TEST_F(WarmStartTest, SlotsOfAnotherOptimizer) {
  saved_.clear_variables();
  AddVariable(&saved_, "bias", {}, /*adagrad=*/true);
  EXPECT_THAT(Plan({.map = {{"bias", ""}}, .slots = false}), ElementsAre("bias=bias"));
  EXPECT_THAT(Plan({.map = {{"bias", ""}}, .slots = true}), IsEmpty());
  EXPECT_THAT(Only(), HasSubstr("is `bias`, which adagrad"));
  // What is frozen has none.
  model_.mutable_variables(0)->clear_optimizer();
  EXPECT_THAT(Plan({.map = {{"bias", ""}}, .slots = true}), ElementsAre("bias=bias"));
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(WarmStartTest, NewMomentsThatAreNotCorrected) {
  saved_.clear_variables();
  model_.clear_variables();
  model_.clear_tables();
  for (const char* name : {"taken", "new", "by_row", "decayed", "other", "frozen"})
    AddVariable(&model_, name, {});
  const auto optimizer = [&](int i) { return model_.mutable_variables(i)->mutable_optimizer(); };
  optimizer(0)->mutable_adam()->set_learning_rate(1);
  optimizer(1)->mutable_adam()->set_learning_rate(1);
  optimizer(2)->mutable_adam()->set_bias_correction("row");
  optimizer(3)->mutable_adamw()->set_bias_correction("job");
  model_.mutable_variables(5)->clear_optimizer();
  AddTable(&model_, "rows", 10, 64);
  model_.mutable_tables(0)->mutable_optimizer()->mutable_adam()->set_learning_rate(1);
  pb::TakenValuesProto taken;
  taken.add_names()->set_own("taken");
  EXPECT_THAT(UncorrectedBiases(taken, model_), IsEmpty()) << "its steps are its own";
  taken.set_slots(true);
  EXPECT_THAT(UncorrectedBiases(taken, model_), ElementsAre("new", "decayed", "rows"));
}

TEST_F(WarmStartTest, TheFirstProblemsAsAnError) {
  Plan({.map = {{"users", "member"}, {"bias", "base"}}});
  const absl::Status status = ToStatus(problems_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("2 problems"), HasSubstr("map[0].from is `users`"),
                               HasSubstr("map[1].to is `base`")));
  MU_EXPECT_OK(ToStatus({}));
}

}  // namespace
}  // namespace mu
