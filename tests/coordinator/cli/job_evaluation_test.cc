// Mistakes of a job in when it is evaluated, and in who goes by the evaluations.
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/cli/job_text.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::GoodJob;
using testing::ProblemsOf;
using testing::With;

// Lines 8 and 9 are new; what follows is two lines below its place in GoodJob.
std::string Evaluated(const std::string& line) {
  return With(GoodJob(), "model:\n",
              absl::StrCat("  eval: {format: criteo_tsv, files: [tests/coordinator/cli/"
                           "CMakeLists.txt]}\n",
                           line, "\nmodel:\n"));
}
std::string Trained(const std::string& keys) {
  return With(Evaluated(""), "{epochs: 1", absl::StrCat("{", keys, ", epochs: 1"));
}

TEST(JobEvaluation, WhatIsRightIsRight) {
  EXPECT_EQ(ProblemsOf(Evaluated(
                "early_stopping: {metric: auc, patience: 1, min_delta: 0.1, restore_best: false}")),
            "");
  EXPECT_EQ(ProblemsOf(Evaluated("checkpoint: {keep_best: {metric: logloss, count: 2}}")), "");
  for (const char* every : {"{steps: 100}", "{epochs: 2}", "{seconds: 0.5}"})
    EXPECT_EQ(ProblemsOf(Trained(absl::StrCat("eval_every: ", every))), "") << every;
}

TEST(JobEvaluation, BesideTrainingNeedsEvaluationsThere) {
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {beside: true}")),
            "job.yaml:9:22: `evaluation.beside` is for evaluations while training goes on, and "
            "there are none; add training.eval_every, such as {epochs: 1}, or remove this\n");
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {beside: false}")), "");
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {where: sidecar}")),
            "job.yaml:9:21: `evaluation.where` must be workers or coordinator, not `sidecar`; "
            "coordinator: in its process, which needs memory for the whole model; beside the job, "
            "on machines of its own, `coordinator eval JOB.yaml --follow=RUN` evaluates each "
            "checkpoint of the run's directory RUN\n");
  for (const char* where : {"workers", "coordinator"})
    EXPECT_EQ(ProblemsOf(Evaluated(absl::StrCat("evaluation: {where: ", where, "}"))), "");
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {beside: false, where: coordinator}")),
            "job.yaml:9:22: `evaluation.beside` is false, but `where: coordinator` evaluates "
            "beside training; remove one of the two\n");
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {beside: false, where: workers}")), "");
  for (const char* with :
       {"early_stopping: {metric: auc}", "checkpoint: {keep_best: {metric: auc}}"}) {
    EXPECT_EQ(ProblemsOf(Evaluated(absl::StrCat("evaluation: {beside: true}\n", with))), "");
    EXPECT_EQ(ProblemsOf(Evaluated(
                  absl::StrCat("evaluation: {beside: true, where: coordinator}\n", with))),
              "");
  }
}

TEST(JobEvaluation, CurrentValuesGoWithNothingThatNeedsACheckpoint) {
  const auto current = [](const std::string& keys, const std::string& lines = "") {
    return ProblemsOf(Evaluated(absl::StrCat("evaluation: {values: current", keys, "}", lines)));
  };
  EXPECT_EQ(current(", beside: true", "\nearly_stopping: {metric: auc, restore_best: false}"), "");
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {values: checkpoint}")), "");
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {values: now}")),
            "job.yaml:9:22: `evaluation.values` must be checkpoint or current, not `now`; current: "
            "without a checkpoint, while training changes the values\n");
  EXPECT_EQ(current(""),
            "job.yaml:9:22: `evaluation.values` is for `evaluation.beside`: without that, training "
            "stands still and its current values are evaluated anyway; add beside: true, or remove "
            "this\n");
  EXPECT_EQ(current(", where: coordinator"),
            "job.yaml:9:22: `evaluation.values` is current, but `where: coordinator` evaluates "
            "checkpoints; remove one of the two\n");
  for (const char* restore : {"", ", restore_best: true"}) {
    EXPECT_EQ(
        current(", beside: true", absl::StrCat("\nearly_stopping: {metric: auc", restore, "}")),
        "job.yaml:9:22: `evaluation.values` is current, but `early_stopping.restore_best` "
        "brings back the checkpoint that was evaluated; set restore_best: false there, or "
        "remove this\n");
  }
  EXPECT_EQ(current(", beside: true", "\ncheckpoint: {keep_best: {metric: auc}}"),
            "job.yaml:9:22: `evaluation.values` is current, but `checkpoint.keep_best` keeps the "
            "checkpoints that were evaluated; remove one of the two\n");
}

TEST(JobEvaluation, AnErrorEndsTrainingWhereThereAreEvaluationsOnTheWay) {
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {on_error: warn}")), "");
  EXPECT_EQ(ProblemsOf(With(Evaluated("evaluation: {on_error: stop}"), "{epochs: 1",
                            "{eval_every: {epochs: 1}, epochs: 1")),
            "");
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {on_error: fail}")),
            "job.yaml:9:24: `evaluation.on_error` must be warn or stop, not `fail`; stop: an error "
            "of an evaluation on the way ends training\n");
  EXPECT_EQ(ProblemsOf(Evaluated("evaluation: {on_error: stop}")),
            "job.yaml:9:24: `evaluation.on_error` is for evaluations on the way, and there are "
            "none; an error of the one at the end is the run's in any case; add "
            "training.eval_every, such as {epochs: 1}, or remove this\n");
  const auto with = [](const char* on_error, const char* line) {
    return ProblemsOf(Evaluated(absl::StrCat("evaluation: {on_error: ", on_error, "}\n", line)));
  };
  for (const auto& [key, line] :
       {std::pair("early_stopping", "early_stopping: {metric: auc}"),
        std::pair("checkpoint.keep_best", "checkpoint: {keep_best: {metric: auc}}")}) {
    EXPECT_EQ(with("stop", line), "") << key;
    EXPECT_EQ(with("warn", line),
              absl::StrCat("job.yaml:9:24: `evaluation.on_error` is warn, but `", key,
                           "` needs each evaluation, so an error of one ends training; write "
                           "stop, or remove this\n"));
  }
}

TEST(JobEvaluation, OneUnitSaysHowOften) {
  EXPECT_EQ(ProblemsOf(Trained("eval_every: {}")),
            "job.yaml:18:12: `training.eval_every` must have one of steps, epochs and seconds, not "
            "0; write for example eval_every: {epochs: 1}\n");
  EXPECT_EQ(ProblemsOf(Trained("eval_every: {epochs: 1, steps: 5}")),
            "job.yaml:18:12: `training.eval_every` must have one of steps, epochs and seconds, not "
            "2; write for example eval_every: {epochs: 1}\n");
  EXPECT_EQ(ProblemsOf(Trained("eval_every: {steps: 0}")),
            "job.yaml:18:32: `training.eval_every.steps` must be above 0; leave eval_every out to "
            "evaluate at the end only\n");
  EXPECT_EQ(ProblemsOf(Trained("eval_every: {epochs: 0}")),
            "job.yaml:18:33: `training.eval_every.epochs` must be above 0; leave eval_every out to "
            "evaluate at the end only\n");
  EXPECT_EQ(ProblemsOf(Trained("eval_every: {seconds: -1}")),
            "job.yaml:18:34: `training.eval_every.seconds` must be above 0; leave eval_every out "
            "to evaluate at the end only\n");
}

TEST(JobEvaluation, EarlyStoppingGoesByAMetric) {
  EXPECT_EQ(ProblemsOf(Evaluated("early_stopping: {patience: 2}")),
            "job.yaml:9:1: the key `early_stopping.metric` is missing: it names no metric; name "
            "one, such as auc or rmse\n");
  EXPECT_EQ(ProblemsOf(Evaluated("early_stopping: {metric: acu}")),
            "job.yaml:9:26: `early_stopping.metric` is wrong: there is no metric `acu`; did you "
            "mean `auc`?\n");
  EXPECT_EQ(ProblemsOf(Evaluated("early_stopping: {metric: auc, patience: 0}")),
            "job.yaml:9:41: `early_stopping.patience` must be at least 1; 1 ends training at the "
            "first evaluation that is no better\n");
  EXPECT_EQ(ProblemsOf(Evaluated("early_stopping: {metric: auc, min_delta: -0.1}")),
            "job.yaml:9:42: `early_stopping.min_delta` must not be negative; it is by how much a "
            "better value has to be better\n");
}

TEST(JobEvaluation, TheBestCheckpointsGoByAMetric) {
  EXPECT_EQ(ProblemsOf(Evaluated("checkpoint: {keep_best: {metric: ndcg}}")),
            "job.yaml:9:34: `checkpoint.keep_best.metric` is wrong: `ndcg` is not how this metric "
            "is written; write ndcg@10\n");
  EXPECT_EQ(ProblemsOf(Evaluated("checkpoint: {keep_best: {metric: auc, count: 0}}")),
            "job.yaml:9:46: `checkpoint.keep_best.count` must be at least 1; remove keep_best to "
            "keep none\n");
}

TEST(JobEvaluation, NothingIsEvaluatedWithoutData) {
  EXPECT_EQ(ProblemsOf(With(GoodJob(), "epochs: 1", "eval_every: {epochs: 1}")),
            "job.yaml:16:12: `training.eval_every` needs data.eval, which is what is evaluated; "
            "add data.eval, or remove this\n");
  EXPECT_EQ(ProblemsOf(With(GoodJob(), "seed: 1", "early_stopping: {metric: auc}")),
            "job.yaml:2:1: `early_stopping` needs data.eval, which is what is evaluated; add "
            "data.eval, or remove this\n");
  EXPECT_EQ(ProblemsOf(With(GoodJob(), "seed: 1", "checkpoint: {keep_best: {metric: auc}}")),
            "job.yaml:2:14: `checkpoint.keep_best` needs data.eval, which is what is evaluated; "
            "add data.eval, or remove this\n");
}

}  // namespace
}  // namespace mu
