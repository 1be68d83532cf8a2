// Optimizers, schedules and what some parameters have instead, in job files. Every kind and every
// key is known by the table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/optimizer/optimizer_settings.h"
#include "coordinator/cli/job_file.h"
#include "tests/coordinator/cli/job_text.h"
#include "tests/testing/example_optimizers.h"

namespace mu {
namespace {

using testing::GoodJob;
using ::testing::HasSubstr;
using testing::ProblemsOf;
using ::testing::StartsWith;
using testing::With;

constexpr char kAdagrad[] = "  adagrad: {learning_rate: 0.02}\n";

std::string JobWith(const std::string& optimizer) {
  return With(GoodJob(), kAdagrad, absl::StrCat("  ", optimizer, "\n"));
}

pb::JobProto Parsed(const std::string& text) {
  ProblemList problems;
  const JobFile file =
      ParseJob(text, "job.yaml", ".", {.environment = testing::NoEnvironment()}, &problems);
  EXPECT_EQ(problems.ToString(), "") << text;
  return file.job;
}

TEST(JobOptimizers, EveryKindHasItsKeys) {
  for (const OptimizerKind& kind : AllOptimizers()) {
    std::string settings = "learning_rate: 0.5";
    for (const OptimizerKey& key : kind.keys) {
      if (key.range == OptimizerKey::Range::kAboveZero && key.fallback == 0) continue;
      absl::StrAppend(&settings, ", ", key.name, ": ", DefaultText(key));
    }
    const pb::JobProto job = Parsed(JobWith(absl::StrCat(kind.name, ": {", settings, "}")));
    pb::OptimizerProto bare =
        Parsed(JobWith(absl::StrCat(kind.name, ": {learning_rate: 0.5}"))).optimizer();
    EXPECT_EQ(WithDefaults(bare).DebugString(), WithDefaults(job.optimizer()).DebugString());
    EXPECT_EQ(job.optimizer().kind_case(), kind.kind);
  }
}

TEST(JobOptimizers, EveryKindNeedsALearningRateAboveZero) {
  for (const OptimizerKind& kind : AllOptimizers()) {
    const std::string key = absl::StrCat("optimizer.", kind.name, ".learning_rate");
    EXPECT_THAT(
        ProblemsOf(JobWith(absl::StrCat(kind.name, ": {learning_rate: -0.5}"))),
        AllOf(StartsWith("job.yaml:15:"), HasSubstr(absl::StrCat("`", key, "` must be above 0"))));
    EXPECT_THAT(ProblemsOf(JobWith(absl::StrCat(kind.name, ": {}"))),
                HasSubstr(absl::StrCat("the key `", key, "` is missing")));
  }
}

TEST(JobOptimizers, WhatIsOutOfRangeHasItsPlace) {
  EXPECT_EQ(
      ProblemsOf(JobWith("adam: {learning_rate: 0.1, beta1: 1, beta2: -1}")),
      "job.yaml:15:37: `optimizer.adam.beta1` must be from 0 to below 1; leave it out for 0.9\n"
      "job.yaml:15:47: `optimizer.adam.beta2` must be from 0 to below 1; leave it out for "
      "0.999\n");
  EXPECT_EQ(ProblemsOf(JobWith("adam: {learning_rate: 0.1, bias_correction: column}")),
            "job.yaml:15:47: `optimizer.adam.bias_correction` must be job or row; leave it out for "
            "job\n");
  EXPECT_EQ(ProblemsOf(JobWith("sgd: {learning_rate: 0.1, nesterov: true}")),
            "job.yaml:15:3: `optimizer.sgd` nesterov needs momentum; 0.9 is usual\n");
}

TEST(JobOptimizers, UnknownKindsListTheKnownOnes) {
  const std::string known = testing::OptimizerNames();
  EXPECT_EQ(ProblemsOf(JobWith("newton: {learning_rate: -0.5}")),
            "job.yaml:15:3: there is no key `newton` under `optimizer`; it may be one of: " +
                known + "\n");
  EXPECT_EQ(ProblemsOf(JobWith("adma: {learning_rate: 0.5}")),
            "job.yaml:15:3: there is no key `adma` under `optimizer`; did you mean `adam`? It may "
            "be one of: " +
                known + "\n");
}

TEST(JobOptimizers, SomeParametersMayHaveOthers) {
  const pb::JobProto job = Parsed(GoodJob() +
                                  "parameters:\n"
                                  "  - match: \"embedding_*\"\n"
                                  "    optimizer: {rowwise_adagrad: {learning_rate: 0.1}}\n"
                                  "    learning_rate_factor: 0.5\n"
                                  "  - {match: bottom_0/bias, trainable: false}\n");
  ASSERT_EQ(job.parameters_size(), 2);
  EXPECT_EQ(job.parameters(0).optimizer().rowwise_adagrad().learning_rate(), 0.1f);
  EXPECT_EQ(job.parameters(0).learning_rate_factor(), 0.5f);
  EXPECT_FALSE(job.parameters(1).trainable());
}

TEST(JobOptimizers, MistakesInParametersHaveTheirPlace) {
  const auto problems = [](const std::string& rule) {
    return ProblemsOf(GoodJob() + "parameters:\n  - " + rule + "\n");
  };
  EXPECT_EQ(problems("{trainable: false}"),
            "job.yaml:18:5: the key `parameters[0].match` is missing: it names no variables or "
            "tables; write a name or a pattern such as \"embedding_*\"\n");
  EXPECT_EQ(problems("{match: a}"),
            "job.yaml:18:5: `parameters[0]` changes nothing; give it optimizer, "
            "learning_rate_factor, trainable or partitioner\n");
  EXPECT_EQ(problems("{match: a, learning_rate_factor: 0}"),
            "job.yaml:18:38: `parameters[0].learning_rate_factor` must be above 0; to train these "
            "not at all, write trainable: false\n");
  EXPECT_EQ(problems("{match: a, trainable: false, learning_rate_factor: 2}"),
            "job.yaml:18:27: `parameters[0].trainable` is false, so nothing else about training "
            "applies; remove `optimizer` and `learning_rate_factor` here\n");
  EXPECT_EQ(problems("{match: a, optimizer: {adam: {learning_rate: -1}}}"),
            "job.yaml:18:50: `parameters[0].optimizer.adam.learning_rate` must be above 0; 0.001 "
            "is usual\n");
  EXPECT_THAT(problems("{match: a, optimizer: {}}"),
              HasSubstr("`parameters[0].optimizer` names no optimizer"));
}

TEST(JobOptimizers, VariablesMayBeCutOtherwise) {
  const auto with = [](const std::string& partitioner) {
    return GoodJob() + "parameters:\n  - {match: a, partitioner: " + partitioner + "}\n";
  };
  const auto parsed = [&](const std::string& partitioner) {
    const pb::JobProto job = Parsed(with(partitioner));
    return job.parameters_size() == 1 ? job.parameters(0).partitioner() : pb::PartitionerProto();
  };
  EXPECT_EQ(parsed("{fixed_shards: 4}").fixed_shards(), 4u);
  EXPECT_EQ(parsed("{min_size: 8000000000}").min_size(), 8'000'000'000u);
  EXPECT_EQ(parsed("{max_size: 1048576}").max_size(), 1u << 20);
  for (const std::string kind : {"fixed_shards", "min_size", "max_size"}) {
    for (const std::string number : {"0", "-3"}) {
      EXPECT_EQ(ProblemsOf(with(absl::StrCat("{", kind, ": ", number, "}"))),
                absl::StrCat("job.yaml:18:", 32 + kind.size(), ": `parameters[0].partitioner.",
                             kind, "` must be above 0", number == "0" ? "" : ", not -3",
                             "; without a partitioner, variables are cut by their size\n"));
    }
  }
  EXPECT_EQ(ProblemsOf(with("{}")),
            "job.yaml:18:16: `parameters[0].partitioner` names no partitioner; write for example "
            "partitioner: {fixed_shards: 4}; min_size and max_size are bytes of a partition\n");
  EXPECT_THAT(ProblemsOf(with("{min_size: 1, max_size: 2}")),
              HasSubstr("stands beside another choice under `parameters[0].partitioner`"));
  EXPECT_THAT(ProblemsOf(with("{shards: 2}")),
              HasSubstr("job.yaml:18:30: there is no key `shards` under "
                        "`parameters[0].partitioner`"));
}

TEST(JobOptimizers, SchedulesAndTheirMistakes) {
  const auto with = [](const std::string& schedule) {
    return With(GoodJob(), "epochs: 1", absl::StrCat("schedule: ", schedule));
  };
  EXPECT_TRUE(Parsed(with("{cosine: {}}")).training().schedule().has_cosine());
  EXPECT_TRUE(Parsed(with("{constant: {}}")).training().schedule().has_constant());
  EXPECT_EQ(Parsed(with("{polynomial: {power: 2, steps: 9, end_factor: 0.5}}"))
                .training()
                .schedule()
                .polynomial()
                .steps(),
            9u);
  EXPECT_EQ(
      Parsed(with("{step: {at: [1, 2], factor: 0.5}}")).training().schedule().step().at_size(), 2);
  EXPECT_EQ(Parsed(with("{exponential: {steps: 5, factor: 0.5}}"))
                .training()
                .schedule()
                .exponential()
                .steps(),
            5u);
  EXPECT_EQ(ProblemsOf(with("{step: {every: 5}}")),
            "job.yaml:16:23: the key `training.schedule.step.factor` is missing: it must be above "
            "0 and at most 1; 0.1 is usual\n");
  EXPECT_EQ(ProblemsOf(with("{step: {at: [5, 5], factor: 0.5}}")),
            "job.yaml:16:38: `training.schedule.step.at[1]` must be above the one before it\n");
  EXPECT_EQ(ProblemsOf(with("{cosine: {end_factor: 2}}")),
            "job.yaml:16:44: `training.schedule.cosine.end_factor` must be from 0 to 1; leave it "
            "out for 0\n");
  EXPECT_THAT(ProblemsOf(with("{linear: {}}")),
              HasSubstr("it may be one of: constant, step, exponential, polynomial, cosine"));
}

}  // namespace
}  // namespace mu
