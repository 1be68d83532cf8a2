// Optimizers and schedules as users write them.
#include "coordinator/frontend/optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/optimizer/optimizer_settings.h"
#include "coordinator/frontend/specs.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::StatusIs;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// Of every kind there is a struct, and its defaults are those of the table.
TEST(Optimizers, StructsHaveTheTablesDefaults) {
  const std::vector<Optimizer> structs = {Sgd{},     Adagrad{},        Adam{}, AdamW{},
                                          Rmsprop{}, RowwiseAdagrad{}, Ftrl{}, Lion{}};
  ASSERT_THAT(structs, SizeIs(AllOptimizers().size()));
  for (size_t i = 0; i < structs.size(); ++i) {
    const OptimizerKind& kind = AllOptimizers()[i];
    MU_ASSERT_OK_AND_ASSIGN(const pb::OptimizerProto given, ToProto(structs[i]));
    ASSERT_EQ(given.kind_case(), kind.kind);
    // The learning rate alone, which has no default in the table.
    pb::OptimizerProto bare;
    const auto* field = bare.GetDescriptor()->FindFieldByName(kind.name);
    const auto& message = given.GetReflection()->GetMessage(given, field);
    auto* to = bare.GetReflection()->MutableMessage(&bare, field);
    const auto* rate = message.GetDescriptor()->FindFieldByName("learning_rate");
    to->GetReflection()->SetFloat(to, rate, message.GetReflection()->GetFloat(message, rate));
    EXPECT_EQ(WithDefaults(given).DebugString(), WithDefaults(bare).DebugString()) << kind.name;
  }
}

TEST(Optimizers, SettingsReachTheServers) {
  const pb::OptimizerProto sgd = Optimizer(Sgd{0.5f, 0.9f, true}).proto();
  EXPECT_EQ(sgd.sgd().momentum(), 0.9f);
  EXPECT_TRUE(sgd.sgd().nesterov());
  const pb::OptimizerProto adam = Optimizer(Adam{.beta1 = 0.8f,
                                                 .beta2 = 0.9f,
                                                 .epsilon = 1e-3f,
                                                 .bias_correction = BiasCorrection::kRow})
                                      .proto();
  EXPECT_EQ(adam.adam().beta1(), 0.8f);
  EXPECT_EQ(adam.adam().beta2(), 0.9f);
  EXPECT_EQ(adam.adam().epsilon(), 1e-3f);
  EXPECT_EQ(adam.adam().bias_correction(), "row");
  EXPECT_EQ(Optimizer(AdamW{.weight_decay = 0.3f}).proto().adamw().weight_decay(), 0.3f);
  const pb::OptimizerProto rmsprop =
      Optimizer(Rmsprop{.rho = 0.5f, .momentum = 0.25f, .centered = true}).proto();
  EXPECT_EQ(rmsprop.rmsprop().rho(), 0.5f);
  EXPECT_EQ(rmsprop.rmsprop().momentum(), 0.25f);
  EXPECT_TRUE(rmsprop.rmsprop().centered());
  const pb::OptimizerProto rowwise =
      Optimizer(RowwiseAdagrad{.initial_accumulator = 0.5f, .epsilon = 0.25f}).proto();
  EXPECT_EQ(rowwise.rowwise_adagrad().initial_accumulator(), 0.5f);
  EXPECT_EQ(rowwise.rowwise_adagrad().epsilon(), 0.25f);
  const pb::OptimizerProto ftrl =
      Optimizer(Ftrl{.beta = 2, .l1 = 3, .l2 = 4, .initial_accumulator = 5}).proto();
  EXPECT_EQ(ftrl.ftrl().beta(), 2);
  EXPECT_EQ(ftrl.ftrl().l1(), 3);
  EXPECT_EQ(ftrl.ftrl().l2(), 4);
  EXPECT_EQ(ftrl.ftrl().initial_accumulator(), 5);
  const pb::OptimizerProto lion =
      Optimizer(Lion{.beta1 = 0.8f, .beta2 = 0.7f, .weight_decay = 0.25f}).proto();
  EXPECT_EQ(lion.lion().beta1(), 0.8f);
  EXPECT_EQ(lion.lion().beta2(), 0.7f);
  EXPECT_EQ(lion.lion().weight_decay(), 0.25f);
}

TEST(Optimizers, WhatIsWrongIsNamed) {
  EXPECT_THAT((VariableSpec{.name = "w", .optimizer = Adam{.beta1 = 1}}.ToProto()),
              StatusIs(kInvalid, HasSubstr("\"w\": adam: beta1 must be from 0 to below 1, got 1")));
  EXPECT_THAT(
      (EmbeddingTableSpec{.name = "t", .rows = 1, .dim = 1, .optimizer = Sgd{.nesterov = true}}
           .ToProto()),
      StatusIs(kInvalid, HasSubstr("nesterov needs momentum")));
}

TEST(Optimizers, LearningRatesByLayer) {
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::VariableProto variable,
      (VariableSpec{.name = "w", .optimizer = Adam{0.5f}, .learning_rate_factor = 0.25f}
           .ToProto()));
  EXPECT_EQ(variable.optimizer().adam().learning_rate(), 0.125f);
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::TableProto table,
      (EmbeddingTableSpec{
          .name = "t", .rows = 1, .dim = 1, .optimizer = Ftrl{0.5f}, .learning_rate_factor = 2}
           .ToProto()));
  EXPECT_EQ(table.optimizer().ftrl().learning_rate(), 1.0f);
  EXPECT_THAT((VariableSpec{.name = "w", .optimizer = Sgd{}, .learning_rate_factor = 0}.ToProto()),
              StatusIs(kInvalid, HasSubstr("trainable = false")));
  EXPECT_THAT(
      (VariableSpec{.name = "w", .optimizer = Sgd{1}, .learning_rate_factor = 1e-39f}.ToProto()),
      StatusIs(kInvalid, HasSubstr("learning_rate")));
}

// So servers keep no slots for it.
TEST(Optimizers, WhatIsFrozenHasNone) {
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::VariableProto variable,
      (VariableSpec{.name = "w", .optimizer = Adam{}, .trainable = false}.ToProto()));
  EXPECT_FALSE(variable.has_optimizer());
  EXPECT_FALSE(variable.trainable());
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::TableProto table,
      (EmbeddingTableSpec{.name = "t", .rows = 1, .dim = 1, .optimizer = Adam{}, .trainable = false}
           .ToProto()));
  EXPECT_FALSE(table.has_optimizer());
}

class MinimizeRatesTest : public ::testing::Test {
 protected:
  pb::FunctionProto Traced(const MinimizeOptions& options) {
    const auto traced = Trace("f", [&](FunctionBuilder& f) { f.Minimize(ReduceSum(w_), options); });
    EXPECT_THAT(traced, testing::IsOk());
    return traced.value_or(pb::FunctionProto());
  }
  const Variable w_ = MakeVariable("w", {3});
};

TEST_F(MinimizeRatesTest, SchedulesReachTheFunction) {
  EXPECT_FALSE(Traced({}).has_schedule());
  EXPECT_FALSE(Traced({.schedule = ConstantRate{}}).has_schedule());
  EXPECT_EQ(Traced({.schedule = StepDecay{.every = 9, .factor = 0.5f}}).schedule().step().every(),
            9u);
  EXPECT_EQ(Traced({.schedule = StepDecay{.at = {2, 4}}}).schedule().step().at(1), 4u);
  EXPECT_EQ(Traced({.schedule = ExponentialDecay{.steps = 7}}).schedule().exponential().steps(),
            7u);
  EXPECT_EQ(
      Traced({.schedule = PolynomialDecay{.steps = 7, .power = 2}}).schedule().polynomial().power(),
      2);
  EXPECT_EQ(Traced({.schedule = CosineDecay{.steps = 7, .end_factor = 0.5f}})
                .schedule()
                .cosine()
                .end_factor(),
            0.5f);
}

TEST_F(MinimizeRatesTest, ARateArgIsMadeOrFound) {
  const pb::FunctionProto made = Traced({.rate_arg = "rate"});
  EXPECT_EQ(made.rate_arg(), 1u);
  EXPECT_EQ(made.args(0).name(), "rate");
  EXPECT_EQ(made.args(0).dtype(), kFloat32);
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto found, Trace("f", [&](FunctionBuilder& f) {
                            f.Arg("other");
                            f.Minimize(ReduceSum(w_) * f.Arg("rate"), {.rate_arg = "rate"});
                          }));
  EXPECT_EQ(found.rate_arg(), 2u);
  EXPECT_EQ(found.args_size(), 2);
}

TEST_F(MinimizeRatesTest, StalenessReachesTheFunction) {
  EXPECT_FALSE(Traced({}).has_staleness());
  const pb::FunctionProto counts = Traced({.staleness = Staleness{}});
  EXPECT_TRUE(counts.has_staleness());
  EXPECT_FALSE(counts.staleness().has_max());
  EXPECT_EQ(counts.staleness().discount(), pb::STALENESS_DISCOUNT_NONE);
  const auto traced = [&](StalenessDiscount discount) {
    return Traced({.staleness = Staleness{.discount = discount, .max = 0}}).staleness();
  };
  EXPECT_EQ(traced(StalenessDiscount::kInverse).discount(), pb::STALENESS_DISCOUNT_INVERSE);
  EXPECT_EQ(traced(StalenessDiscount::kExponential).discount(), pb::STALENESS_DISCOUNT_EXPONENTIAL);
  EXPECT_TRUE(traced(StalenessDiscount::kNone).has_max());
}

TEST_F(MinimizeRatesTest, AFunctionHasOneStaleness) {
  const int line = __LINE__ + 4;
  const std::string error = TraceError(line, [&](FunctionBuilder& f) {
    f.Minimize(ReduceSum(w_), {.staleness = Staleness{.max = 3}});
    f.Minimize(ReduceSum(w_), {});
    f.Minimize(ReduceSum(w_), {.staleness = Staleness{.max = 4}});
  });
  EXPECT_THAT(error, HasSubstr("another staleness"));
}

TEST_F(MinimizeRatesTest, MistakesHaveTheirPlace) {
  int line = __LINE__ + 2;
  std::string error = TraceError(
      line, [&](FunctionBuilder& f) { f.Minimize(ReduceSum(w_), {.schedule = CosineDecay{}}); });
  EXPECT_THAT(error, HasSubstr("the schedule's cosine.steps must be at least 1"));
  line = __LINE__ + 4;
  error = TraceError(line, [&](FunctionBuilder& f) {
    f.Minimize(ReduceSum(w_), {.schedule = CosineDecay{.steps = 3}});
    f.Minimize(ReduceSum(w_), {});
    f.Minimize(ReduceSum(w_), {.schedule = CosineDecay{.steps = 4}});
  });
  EXPECT_THAT(error, HasSubstr("another schedule"));
  line = __LINE__ + 3;
  error = TraceError(line, [&](FunctionBuilder& f) {
    f.Arg("rate", kInt64);
    f.Minimize(ReduceSum(w_), {.rate_arg = "rate"});
  });
  EXPECT_THAT(error, HasSubstr("must be float32"));
}

}  // namespace
}  // namespace mu
