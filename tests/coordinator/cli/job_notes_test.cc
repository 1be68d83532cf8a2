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

// As docs/jobs.md says of matrix factorization: sixty epochs make it worse, unseen.
TEST(JobNotes, ManyEpochsAreEvaluatedAtTheEndOnly) {
  const std::string evaluated = With(GoodJob(), "model:\n",
                                     "  eval: {format: criteo_tsv, files: [tests/coordinator/cli/"
                                     "CMakeLists.txt]}\nmodel:\n");
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

}  // namespace
}  // namespace mu
