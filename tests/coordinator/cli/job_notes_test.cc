// What is told of jobs that are right, but may not do what is expected.
#include "coordinator/cli/job_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/cli/job_text.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::GoodJob;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::With;

// Of a job without mistakes.
std::vector<std::string> NotesOf(const std::string& text, JobUse use = JobUse::kTrain) {
  ProblemList problems;
  const JobFile file =
      ParseJob(text, "job.yaml", ".", {.environment = testing::NoEnvironment()}, &problems);
  EXPECT_EQ(problems.ToString(), "");
  return JobNotes(file.job, use);
}
std::string Training(const std::string& keys) {
  return With(GoodJob(), "steps_per_function: auto", keys);
}

TEST(JobNotes, RoundsClipEachStep) {
  for (const char* key : {"clip_by_value", "clip_by_norm", "clip_by_global_norm"}) {
    for (const char* rows : {"mean", "sum"}) {
      EXPECT_THAT(NotesOf(Training(absl::StrCat("mode: sync, sync: {replicas: 4, rows: ", rows,
                                                "}, ", key, ": 0.5"))),
                  ElementsAre(AllOf(
                      StartsWith(absl::StrCat("training.", key, ": with training.mode: sync ")),
                      HasSubstr("each of the 4 steps of a round, and not on their mean"),
                      HasSubstr("training.micro_batches is clipped as a whole"))));
    }
    EXPECT_THAT(NotesOf(Training(absl::StrCat(key, ": 0.5"))), IsEmpty()) << "another mode";
    EXPECT_THAT(NotesOf(Training(absl::StrCat("mode: sync, sync: {replicas: 4}, ", key, ": 0"))),
                IsEmpty());
    EXPECT_THAT(NotesOf(Training(absl::StrCat("mode: sync, sync: {replicas: 1}, ", key, ": 0.5"))),
                IsEmpty())
        << "the mean of one step";
  }
}

TEST(JobNotes, RoundsPenalizeRowsByTheStepsThatUseThem) {
  for (const char* key : {"l1", "l2", "weight_decay"}) {
    const std::string written = absl::StrCat(key, ": 0.01");
    EXPECT_THAT(NotesOf(Training(absl::StrCat("mode: sync, sync: {replicas: 8}, ", written))),
                ElementsAre(AllOf(
                    StartsWith(absl::StrCat("training.", key, ": with training.mode: sync ")),
                    HasSubstr("only 1 of the 8 steps of a round uses gets about 1/8 of it"))));
    EXPECT_THAT(
        NotesOf(Training(absl::StrCat("mode: sync, sync: {replicas: 8, rows: sum}, ", written))),
        IsEmpty());
    EXPECT_THAT(NotesOf(Training(written)), IsEmpty()) << "another mode";
  }
}

TEST(JobNotes, EachKeyIsTold) {
  EXPECT_THAT(NotesOf(Training("mode: sync, sync: {replicas: 2}, clip_by_norm: 1, l2: 0.1, l1: 1")),
              ElementsAre(StartsWith("training.clip_by_norm: "), StartsWith("training.l1: "),
                          StartsWith("training.l2: ")));
}

std::string Evaluated() {
  return With(GoodJob(), "model:\n",
              "  eval: {format: criteo_tsv, files: [tests/coordinator/cli/CMakeLists.txt]}\n"
              "model:\n");
}

// As docs/jobs.md says of matrix factorization: sixty epochs make it worse, unseen.
TEST(JobNotes, ManyEpochsAreEvaluatedAtTheEndOnly) {
  const std::string evaluated = Evaluated();
  const std::string many = With(evaluated, "epochs: 1", "epochs: 60");
  for (const JobUse use : {JobUse::kTrain, JobUse::kCheck}) {
    EXPECT_THAT(NotesOf(many, use),
                ElementsAre(AllOf(StartsWith("data.eval: is evaluated at the end only, after 60 "),
                                  HasSubstr("training.eval_every: {epochs: 1}"))));
  }
  EXPECT_THAT(NotesOf(many, JobUse::kEval), IsEmpty()) << "nothing is trained";
  EXPECT_THAT(NotesOf(evaluated), IsEmpty()) << "one epoch";
  EXPECT_THAT(NotesOf(With(GoodJob(), "epochs: 1", "epochs: 60")), IsEmpty()) << "no data.eval";
  EXPECT_THAT(NotesOf(With(many, "epochs: 60", "epochs: 60, eval_every: {epochs: 10}")), IsEmpty());
  for (const char* with :
       {"early_stopping: {metric: auc}\n", "checkpoint: {keep_best: {metric: auc}}\n"})
    EXPECT_THAT(NotesOf(many + with), IsEmpty()) << with;
}

TEST(JobNotes, AnIntervalLongerThanTheJobIsTold) {
  const auto notes = [](const std::string& keys) {
    return NotesOf(With(Evaluated(), "epochs: 1", keys));
  };
  const auto told = [](const std::string& length) {
    return ElementsAre(AllOf(StartsWith("training.eval_every: is longer than the job"),
                             HasSubstr(absl::StrCat("ends after ", length,
                                                    ", so data.eval is evaluated at the "
                                                    "end only"))));
  };
  EXPECT_THAT(notes("epochs: 5, eval_every: {epochs: 10}"), told("5 epochs"));
  EXPECT_THAT(notes("epochs: 1, eval_every: {epochs: 2}"), told("1 epoch"));
  EXPECT_THAT(notes("epochs: 1, max_steps: 100, eval_every: {steps: 1000}"), told("100 steps"));
  EXPECT_THAT(notes("epochs: 5, max_steps: 100, eval_every: {steps: 101}"), told("100 steps"));
  for (const char* due :
       {"epochs: 5, eval_every: {epochs: 5}", "epochs: 1, eval_every: {epochs: 1}",
        "epochs: 1, max_steps: 100, eval_every: {steps: 100}",
        "epochs: 5, eval_every: {steps: 1000000}", "epochs: 1, eval_every: {seconds: 1000000}"})
    EXPECT_THAT(notes(due), IsEmpty()) << due;
  // Early stopping adds no evaluations to an interval that is written.
  EXPECT_THAT(NotesOf(With(Evaluated(), "epochs: 1", "epochs: 5, eval_every: {epochs: 10}") +
                      "early_stopping: {metric: auc}\n"),
              told("5 epochs"));
}

TEST(JobNotes, WhatIsMeasuredNeedsDataToMeasureItOn) {
  const std::string measured =
      "evaluation: {metrics: [auc], group: label, weight: label, on_error: warn}\n";
  for (const JobUse use : {JobUse::kTrain, JobUse::kCheck}) {
    EXPECT_THAT(
        NotesOf(GoodJob() + measured, use),
        ElementsAre(StartsWith("evaluation.metrics: has no effect, since there is no data.eval"),
                    StartsWith("evaluation.group: has no effect"),
                    StartsWith("evaluation.weight: has no effect")));
  }
  EXPECT_THAT(NotesOf(GoodJob() + "evaluation: {group: label}\n"),
              ElementsAre(StartsWith("evaluation.group: ")));
  EXPECT_THAT(NotesOf(Evaluated() + measured), IsEmpty());
  EXPECT_THAT(NotesOf(GoodJob() + "evaluation: {on_error: warn}\n"), IsEmpty()) << "the default";
}

// A job of 200,000 classes with a batch of 8. `keys`: of the model.
std::string ManyClasses(const std::string& model, const std::string& keys) {
  const std::string text = With(
      GoodJob(),
      "dlrm:\n    embedding_dim: 16\n    hash_buckets: 1000\n    bottom_mlp: [32, 16]\n"
      "    top_mlp: [32, 1]\n",
      absl::StrCat(model,
                   ":\n    features: [{column: dense, size: 13}, {column: ids, kind: id, size: 26, "
                   "rows: 10}]\n    label_column: label\n",
                   keys));
  return With(text, "batch_size: 512", "batch_size: 8");
}

TEST(JobNotes, ALayerOfManyClassesThatMovesFarMoreThanItNeeds) {
  const std::string job = ManyClasses("mlp", "    hidden: [256]\n    classes: 200000\n");
  for (const JobUse use : {JobUse::kTrain, JobUse::kCheck}) {
    EXPECT_THAT(NotesOf(job, use),
                ElementsAre(AllOf(StartsWith("model.mlp.product: is not written, so each step "
                                             "moves 410 MB for the weights of 200000 classes"),
                                  HasSubstr("write product: auto"), HasSubstr("about 21 MB"))));
  }
  EXPECT_THAT(NotesOf(job, JobUse::kEval), IsEmpty()) << "nothing is trained";
  EXPECT_THAT(NotesOf(With(job, "batch_size: 8", "batch_size: 64")), SizeIs(1));
  EXPECT_THAT(NotesOf(With(job, "batch_size: 8", "batch_size: 120")), IsEmpty())
      << "a little less than all of it";
  EXPECT_THAT(NotesOf(With(job, "batch_size: 8", "batch_size: 512")), IsEmpty());
  EXPECT_THAT(NotesOf(With(job, "200000", "2000")), IsEmpty()) << "4 MB";
  for (const char* product : {"auto", "servers", "worker"}) {
    EXPECT_THAT(NotesOf(ManyClasses("mlp", absl::StrCat("    hidden: [256]\n    classes: 200000\n",
                                                        "    product: ", product, "\n"))),
                IsEmpty())
        << product;
  }
  EXPECT_THAT(NotesOf(GoodJob()), IsEmpty()) << "another model";
}

// Where `auto` would read the weights all the same.
TEST(JobNotes, NoProductWhereServersCannotComputeIt) {
  const std::string job = ManyClasses("mlp", "    hidden: [256]\n    classes: 200000\n");
  for (const char* key : {"micro_batches: 2", "clip_by_value: 1", "clip_by_norm: 1",
                          "clip_by_global_norm: 1", "l1: 1", "l2: 1", "weight_decay: 1"}) {
    EXPECT_THAT(NotesOf(With(job, "steps_per_function: auto", key)), IsEmpty()) << key;
  }
}

// A row of an id has a number for each class, and 65,536 columns at most.
TEST(JobNotes, ProductsOfNumbersAreAddedUp) {
  const std::string ids = ", {column: ids, kind: id, size: 26, rows: 10}";
  const std::string regression =
      With(ManyClasses("logistic_regression", "    classes: 200000\n"), ids, "");
  EXPECT_THAT(NotesOf(regression), IsEmpty()) << "19 MB instead of 21 MB";
  EXPECT_THAT(NotesOf(With(regression, "batch_size: 8", "batch_size: 1")),
              ElementsAre(AllOf(StartsWith("model.logistic_regression.product: "),
                                HasSubstr("moves 21 MB"), HasSubstr("about 2 MB"))));
  const std::string fewer = "    classes: 60000\n";
  EXPECT_THAT(NotesOf(ManyClasses("wide_deep", "    hidden: [256]\n" + fewer)),
              ElementsAre(AllOf(StartsWith("model.wide_deep.product: "), HasSubstr("moves 129 MB"),
                                HasSubstr("about 13 MB"))));
  EXPECT_THAT(
      NotesOf(With(ManyClasses("logistic_regression", fewer), "{column: dense, size: 13}, ", "")),
      IsEmpty())
      << "of ids only the rows of a batch travel";
}

}  // namespace
}  // namespace mu
