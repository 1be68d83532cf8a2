// Jobs that are evaluated on the way: by epoch and by steps in the report, stopped early, with the
// best checkpoints kept, and all that through the coordinator's death.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <set>

#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/metric_text.h"
#include "coordinator/training/training_history.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

class EvaluationTest : public testing::CliTest {
 protected:
  // What is evaluated is the opposite of what is trained: beyond the mean, each epoch makes it
  // worse. `keys` stand beside the model.
  std::string EvaluatedJob(const std::string& training, const std::string& keys = "",
                           int records = 500) {
    std::string data = "user,item,rating\n";
    for (int i = 0; i < records; ++i)
      absl::StrAppend(&data, i % 10, ",", i * 7 % 20, ",", 5 - (i % 5 + 0.5), "\n");
    WriteText("eval.csv", data);
    return Job({{"model:",
                 "  eval: {format: csv, files: [eval.csv], columns: [{name: user, kind: id}, "
                 "{name: item, kind: id}, {name: rating, kind: number}]}\n" +
                     keys + "model:"},
                {"learning_rate: 0.1", "learning_rate: 0.02"},
                {"training: {epochs: 1, batch_size: 32}", "training: {" + training + "}"}});
  }
  // One worker with one function at a time: two runs give the same bits.
  int Train(const std::string& job, const std::string& job_dir) {
    return Run(Command(job, job_dir));
  }
  std::vector<std::string> Command(const std::string& job, const std::string& job_dir) {
    return {"train", job, "--job_dir=" + Path(job_dir), "--workers=1", "--ps=2"};
  }
  Json ReportOf(const std::string& job_dir) { return Report(Path(job_dir) + "/report.json"); }
  std::vector<std::string> Checkpoints(const std::string& job_dir) {
    return ListCheckpoints(Path(job_dir) + "/checkpoints").value_or(std::vector<std::string>());
  }
};

// Without what no two runs have alike.
std::vector<Json> WithoutTimes(const Json& evaluations) {
  std::vector<Json> without;
  for (Json evaluation : evaluations) {
    evaluation.erase("seconds");
    evaluation.erase("checkpoint");
    without.push_back(std::move(evaluation));
  }
  return without;
}

std::vector<uint64_t> StepsOf(const Json& evaluations) {
  std::vector<uint64_t> steps;
  for (const Json& evaluation : evaluations) steps.push_back(evaluation["steps"].get<uint64_t>());
  return steps;
}

TEST_F(EvaluationTest, TheReportSaysHowEachEpochWent) {
  ASSERT_EQ(Train(EvaluatedJob("epochs: 3, batch_size: 20, eval_every: {epochs: 1}"), "run"), 0)
      << Output();
  EXPECT_THAT(Output(), HasSubstr("epoch 2/3: loss "));
  EXPECT_THAT(Output(), HasSubstr("evaluated after 100 steps, epoch 1: mae "));
  const Json report = ReportOf("run");
  ASSERT_THAT(report["epochs"], SizeIs(3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(report["epochs"][i]["epoch"], i + 1);
    EXPECT_EQ(report["epochs"][i]["samples"], 2000);
  }
  EXPECT_LT(report["epochs"][2]["loss"], report["epochs"][0]["loss"]);
  EXPECT_EQ(report["epochs"][2]["loss"], report["train_loss"]);
  EXPECT_THAT(StepsOf(report["evaluations"]), ElementsAre(100, 200, 300));
  EXPECT_EQ(report["evaluations"][1]["epoch"], 2);
  EXPECT_EQ(report["evaluations"][1]["examples"], 500);
  EXPECT_EQ(report["evaluations"][1]["checkpoint"], "") << "nothing goes back to it";
  // Not evaluated once more.
  EXPECT_EQ(report["eval"]["rmse"], report["evaluations"][2]["metrics"]["rmse"]);
  EXPECT_EQ(report["eval"]["examples"], 500);
  EXPECT_EQ(report["steps"], 300);
  EXPECT_EQ(report["samples"], 6000) << "the evaluations' are none of them";
  EXPECT_TRUE(report["early_stopping"].is_null());
}

// Of the same checkpoints, with the same numbers; the workers only train.
TEST_F(EvaluationTest, InTheCoordinatorsProcessAsOnTheWorkers) {
  const std::string training = "epochs: 3, batch_size: 20, eval_every: {epochs: 1}";
  ASSERT_EQ(Train(EvaluatedJob(training, "evaluation: {beside: true}\n"), "workers"), 0)
      << Output();
  ASSERT_EQ(Train(EvaluatedJob(training, "evaluation: {where: coordinator}\n"), "coordinator"), 0)
      << Output();
  const Json workers = ReportOf("workers"), coordinator = ReportOf("coordinator");
  EXPECT_THAT(StepsOf(coordinator["evaluations"]), ElementsAre(100, 200, 300));
  EXPECT_EQ(WithoutTimes(coordinator["evaluations"]), WithoutTimes(workers["evaluations"]));
  EXPECT_EQ(coordinator["eval"], workers["eval"]);
  const auto steps = [](const Json& report) {
    return report["time_by_part"]["worker.step"]["count"].get<uint64_t>();
  };
  EXPECT_GT(steps(workers), 300u);
  EXPECT_LE(steps(coordinator), 300u);
  // What is evaluated at the end only, of a run that has no other evaluations.
  ASSERT_EQ(
      Train(EvaluatedJob("epochs: 3, batch_size: 20", "evaluation: {where: coordinator}\n"), "end"),
      0)
      << Output();
  EXPECT_EQ(ReportOf("end")["eval"], workers["eval"]);
  EXPECT_LE(steps(ReportOf("end")), 300u);
}

// Without a checkpoint but the last; what the report says of the end is of the values at the end.
TEST_F(EvaluationTest, OfTheCurrentValuesBesideTraining) {
  ASSERT_EQ(Train(EvaluatedJob("epochs: 3, batch_size: 20, eval_every: {epochs: 1}",
                               "evaluation: {beside: true, values: current}\n"
                               "checkpoint: {every: never, keep: 0}\n"),
                  "run"),
            0)
      << Output();
  const Json report = ReportOf("run");
  EXPECT_THAT(StepsOf(report["evaluations"]), ElementsAre(100, 200, 300));
  for (const Json& evaluation : report["evaluations"]) {
    EXPECT_EQ(evaluation["examples"], 500);
    EXPECT_EQ(evaluation["checkpoint"], "");
  }
  EXPECT_THAT(Checkpoints("run"), SizeIs(1)) << "that of the end";
  // Nothing was trained while the last one ran.
  EXPECT_NEAR(report["eval"]["rmse"].get<double>(),
              report["evaluations"][2]["metrics"]["rmse"].get<double>(), 1e-9);
}

// One that dies with the coordinator begins anew.
TEST_F(EvaluationTest, OfTheCurrentValuesThroughTheCoordinatorsDeaths) {
  const std::string job = EvaluatedJob("epochs: 3, batch_size: 20, eval_every: {epochs: 1}",
                                       "evaluation: {beside: true, values: current}\n"
                                       "checkpoint: {every: 1s}\n",
                                       /*records=*/50000);
  int kills = 0, pending = 0;
  std::string newest;
  while (kills < 2) {
    auto process = Start(Command(job, "run"));
    EXPECT_TRUE(testing::Eventually([&] {
      const std::vector<std::string> found = Checkpoints("run");
      return (!found.empty() && BaseName(found.back()) > newest) || process->TryWait();
    })) << Output();
    if (process->TryWait().has_value()) break;  // it was faster
    MU_ASSERT_OK(process->Kill(SIGKILL));
    ExitOf(process.get());
    ++kills;
    const std::string last = Checkpoints("run").back();
    newest = BaseName(last);
    MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(last));
    pending += TrainingHistory::Parse(manifest.user_state()).pending().has_value() ? 1 : 0;
  }
  EXPECT_GT(pending, 0) << "of " << kills;
  ASSERT_EQ(Train(job, "run"), 0) << Output();
  const Json report = ReportOf("run");
  EXPECT_THAT(StepsOf(report["evaluations"]), ElementsAre(100, 200, 300));
  for (const Json& evaluation : report["evaluations"]) EXPECT_EQ(evaluation["examples"], 50000);
  EXPECT_THAT(Output(), Not(HasSubstr("given up")));
}

TEST_F(EvaluationTest, BySteps) {
  ASSERT_EQ(Train(EvaluatedJob("epochs: 2, batch_size: 20, eval_every: {steps: 70}"), "run"), 0)
      << Output();
  const Json report = ReportOf("run");
  EXPECT_THAT(StepsOf(report["evaluations"]), ElementsAre(70, 140));
  EXPECT_EQ(report["evaluations"][1]["epoch"], 2);
  EXPECT_NE(report["eval"]["rmse"], report["evaluations"][1]["metrics"]["rmse"])
      << "60 steps came after it";
}

// No machine is so fast that two of them do not fit into ten epochs.
TEST_F(EvaluationTest, BySeconds) {
  ASSERT_EQ(Train(EvaluatedJob("epochs: 10, batch_size: 20, steps_per_function: 10, "
                               "eval_batch_size: 500, eval_every: {seconds: 0.01}"),
                  "run"),
            0)
      << Output();
  const Json report = ReportOf("run");
  EXPECT_EQ(report["steps"], 1000);
  const std::vector<uint64_t> steps = StepsOf(report["evaluations"]);
  ASSERT_GT(steps.size(), 1u);
  EXPECT_LT(steps[1], 1000u) << "before the end";
  EXPECT_EQ(std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()), steps.end())
      << ::testing::PrintToString(steps);
}

// Before anything is trained, with where it is written.
TEST_F(EvaluationTest, CheckAndTrainNoteWhatDoesNotDoWhatIsExpected) {
  const std::string job = EvaluatedJob(
      "epochs: 2, batch_size: 500, mode: sync, sync: {replicas: 2}, clip_by_norm: 0.5, l2: 0.001");
  for (const bool train : {false, true}) {
    ASSERT_EQ(train ? Train(job, "run") : Run({"check", job}), 0) << Output();
    EXPECT_THAT(Output(), HasSubstr(absl::StrCat("note: ", job, ":10:")));
    EXPECT_THAT(Output(), HasSubstr(": data.eval: is evaluated at the end only, after 2 epochs"));
    EXPECT_THAT(Output(), HasSubstr(absl::StrCat("note: ", job, ":15:")));
    EXPECT_THAT(Output(), HasSubstr(": training.clip_by_norm: with training.mode: sync "));
    EXPECT_THAT(Output(), HasSubstr(": training.l2: with training.mode: sync "));
  }
  ASSERT_EQ(Run({"check", EvaluatedJob("epochs: 2, eval_every: {epochs: 1}, clip_by_norm: 0.5")}),
            0)
      << Output();
  EXPECT_THAT(Output(), Not(HasSubstr("note: ")));
}

constexpr char kStopping[] = "early_stopping: {metric: rmse, patience: 4}\n";
constexpr char kManyEpochs[] =
    "epochs: 60, batch_size: 20, steps_per_function: 10, functions_in_flight: 1";

TEST_F(EvaluationTest, StopsEarlyAndBringsBackTheBest) {
  const std::string job = EvaluatedJob(kManyEpochs, kStopping);
  ASSERT_EQ(Train(job, "run"), 0) << Output();
  const Json report = ReportOf("run");
  EXPECT_EQ(report["status"], "done");
  const Json& stopping = report["early_stopping"];
  EXPECT_EQ(stopping["stopped"], true) << stopping;
  EXPECT_EQ(stopping["waits"], 4);
  EXPECT_EQ(stopping["restored_best"], true);
  const Json& evaluations = report["evaluations"];
  ASSERT_GE(evaluations.size(), 5u);
  const Json& best = evaluations[evaluations.size() - 5];
  EXPECT_EQ(best["best_so_far"], true);
  EXPECT_EQ(stopping["best_steps"], best["steps"]);
  EXPECT_EQ(stopping["best"], best["metrics"]["rmse"]);
  EXPECT_EQ(stopping["best_checkpoint"], best["checkpoint"]);
  for (const Json& evaluation : evaluations)
    EXPECT_GE(evaluation["metrics"]["rmse"], stopping["best"]) << evaluation;
  EXPECT_EQ(report["steps"], evaluations.back()["steps"]) << "trained until it was stopped";
  EXPECT_EQ(report["eval"]["rmse"], stopping["best"]);
  EXPECT_THAT(Output(), HasSubstr("stopped early: rmse was best"));
  EXPECT_EQ(report["warnings"], Json::array()) << "the best is what it ends with";
  // The checkpoint at the end holds the best values, to the last digit.
  ASSERT_EQ(Run({"eval", job, "--job_dir=" + Path("run"), "--report=" + Path("eval.json")}), 0)
      << Output();
  EXPECT_EQ(Report(Path("eval.json"))["eval"], report["eval"]);
  EXPECT_EQ(Report(Path("run/eval_report.json"))["eval"], report["eval"]);
  EXPECT_EQ(ReportOf("run"), report) << "it stays that of the training";
}

// Each evaluation is better than the one before it, but by less than that.
TEST_F(EvaluationTest, StopsEarlyWhereNothingIsBetterByMoreThanMinDelta) {
  std::vector<std::string> command = Command(
      EvaluatedJob(kManyEpochs, "early_stopping: {metric: rmse, patience: 2, min_delta: 100}\n"),
      "run");
  // So slow that it gets better for more than ten epochs.
  command.push_back("--set=optimizer={sgd: {learning_rate: 0.002}}");
  ASSERT_EQ(Run(command), 0) << Output();
  const Json report = ReportOf("run");
  const Json& evaluations = report["evaluations"];
  ASSERT_THAT(evaluations, SizeIs(3));
  const auto rmse = [&](int i) { return evaluations[i]["metrics"]["rmse"].get<double>(); };
  EXPECT_LT(rmse(1), rmse(0));
  EXPECT_LT(rmse(2), rmse(1));
  EXPECT_EQ(report["early_stopping"]["stopped"], true);
  EXPECT_EQ(report["early_stopping"]["best"].get<double>(), rmse(0));
}

// The last checkpoint has fewer steps than the run.
TEST_F(EvaluationTest, WhoFollowsARunSeesWhatStepsItsBestValuesHaveSeen) {
  const std::string job = EvaluatedJob(kManyEpochs, kStopping);
  ASSERT_EQ(Train(job, "run"), 0) << Output();
  const Json report = ReportOf("run");
  ASSERT_EQ(report["early_stopping"]["restored_best"], true);
  const Json& steps = report["early_stopping"]["best_steps"];
  ASSERT_LT(steps, report["steps"]);
  Json best;
  for (const Json& evaluation : report["evaluations"])
    if (evaluation["steps"] == steps) best = evaluation;
  ASSERT_EQ(Run({"eval", job, "--follow=" + Path("run"), "--job_dir=" + Path("follower"),
                 "--workers=1", "--ps=1"}),
            0)
      << Output();
  const Json followed = Report(Path("run/evaluations.json"));
  ASSERT_FALSE(followed.empty());
  const Json& last = followed.back();
  EXPECT_EQ(last["checkpoint"], BaseName(report["checkpoint"].get<std::string>()));
  EXPECT_EQ(last["steps"], steps);
  EXPECT_EQ(last["epoch"], best["epoch"]);
  EXPECT_EQ(last["metrics"], best["metrics"]);
  const std::string told = absl::StrCat(" (", steps.get<uint64_t>(), " steps)");
  EXPECT_THAT(Output(),
              HasSubstr("evaluated " + last["checkpoint"].get<std::string>() + told + ": mae "));
  ASSERT_EQ(Run({"eval", job, "--job_dir=" + Path("run")}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("begins with " + report["checkpoint"].get<std::string>() + told));
}

TEST_F(EvaluationTest, TheLastValuesStayIfTheJobSaysSo) {
  const std::string job = EvaluatedJob(
      kManyEpochs, "early_stopping: {metric: rmse, patience: 2, restore_best: false}\n");
  ASSERT_EQ(Train(job, "run"), 0) << Output();
  const Json report = ReportOf("run");
  EXPECT_EQ(report["early_stopping"]["stopped"], true);
  EXPECT_EQ(report["early_stopping"]["restored_best"], false);
  EXPECT_EQ(report["eval"]["rmse"], report["evaluations"].back()["metrics"]["rmse"]);
  EXPECT_NE(report["eval"]["rmse"], report["early_stopping"]["best"]);
}

TEST_F(EvaluationTest, AWarningSaysThatAnEarlierEpochWasBetter) {
  ASSERT_EQ(Train(EvaluatedJob("epochs: 12, batch_size: 20, eval_every: {epochs: 1}"), "run"), 0)
      << Output();
  const Json report = ReportOf("run");
  Json best = report["evaluations"][0];
  for (const Json& evaluation : report["evaluations"])
    if (evaluation["metrics"]["rmse"] < best["metrics"]["rmse"]) best = evaluation;
  const double value = best["metrics"]["rmse"].get<double>();
  const double last = report["eval"]["rmse"].get<double>();
  ASSERT_GT(last, value + 0.001);
  const std::string warning =
      absl::StrCat("the last evaluation is worse than the best one: rmse is ", MetricText(last),
                   " in epoch 12, after 1200 steps, and was ", MetricText(value), " in epoch ",
                   best["epoch"].get<int>(), ", after ", best["steps"].get<int>(), " steps");
  ASSERT_THAT(report["warnings"], SizeIs(1));
  EXPECT_THAT(report["warnings"][0].get<std::string>(), HasSubstr(warning));
  EXPECT_THAT(Output(), HasSubstr("note: " + warning));
  EXPECT_THAT(ReadFile(Path("run/logs/coordinator.log")).value_or(""), HasSubstr(warning));
  EXPECT_THAT(Output(), HasSubstr("checkpoint.keep_best keeps the best values"));
  EXPECT_THAT(Output(), Not(HasSubstr("evaluation.values")));
}

TEST_F(EvaluationTest, TheWarningOfAWorseEndNamesWhatCurrentValuesDoNotGoWith) {
  ASSERT_EQ(Train(EvaluatedJob("epochs: 12, batch_size: 20, eval_every: {epochs: 1}",
                               "evaluation: {beside: true, values: current}\n"),
                  "run"),
            0)
      << Output();
  EXPECT_THAT(Output(), HasSubstr("the last evaluation is worse than the best one: rmse is "));
  EXPECT_THAT(Output(), HasSubstr("keeps the best values, but needs evaluation.values: checkpoint "
                                  "instead of current"));
}

TEST_F(EvaluationTest, TheBestCheckpointsStay) {
  const std::string job =
      EvaluatedJob("epochs: 8, batch_size: 20, eval_every: {epochs: 1}",
                   "checkpoint: {every: never, keep: 1, keep_best: {metric: rmse, count: 2}}\n");
  ASSERT_EQ(Train(job, "run"), 0) << Output();
  const Json report = ReportOf("run");
  std::vector<std::pair<double, std::string>> evaluated;
  for (const Json& evaluation : report["evaluations"]) {
    evaluated.emplace_back(evaluation["metrics"]["rmse"].get<double>(),
                           evaluation["checkpoint"].get<std::string>());
  }
  ASSERT_THAT(evaluated, SizeIs(8));
  std::sort(evaluated.begin(), evaluated.end());
  ASSERT_THAT(report["best_checkpoints"], SizeIs(2));
  std::set<std::string> expected = {report["checkpoint"].get<std::string>()};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(report["best_checkpoints"][i]["checkpoint"], evaluated[i].second);
    EXPECT_EQ(report["best_checkpoints"][i]["value"], evaluated[i].first);
    expected.insert(evaluated[i].second);
  }
  const std::vector<std::string> found = Checkpoints("run");
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()), expected);
  EXPECT_EQ(report["warnings"], Json::array()) << "a worse end is no loss";
}

// The same evaluations with the same values, and the same end, whenever the coordinator dies.
TEST_F(EvaluationTest, GoesOnExactlyAfterTheCoordinatorsDeath) {
  const std::string job = EvaluatedJob(kManyEpochs, kStopping);
  ASSERT_EQ(Train(job, "undisturbed"), 0) << Output();
  int kills = 0;
  for (size_t checkpoints = 2; checkpoints <= 6; checkpoints += 2) {
    auto process = Start(Command(job, "run"));
    const std::string number = absl::StrCat("ckpt-0000000", checkpoints);
    EXPECT_TRUE(testing::Eventually([&] {
      const std::vector<std::string> found = Checkpoints("run");
      return (!found.empty() && BaseName(found.back()) >= number) || process->TryWait();
    })) << Output();
    if (process->TryWait().has_value()) break;  // it was faster
    MU_ASSERT_OK(process->Kill(SIGKILL));
    ExitOf(process.get());
    ++kills;
  }
  EXPECT_GT(kills, 0);
  ASSERT_EQ(Train(job, "run"), 0) << Output();
  const Json report = ReportOf("run"), undisturbed = ReportOf("undisturbed");
  EXPECT_EQ(WithoutTimes(report["evaluations"]), WithoutTimes(undisturbed["evaluations"]));
  EXPECT_EQ(report["early_stopping"]["best_steps"], undisturbed["early_stopping"]["best_steps"]);
  EXPECT_EQ(report["early_stopping"]["waits"], undisturbed["early_stopping"]["waits"]);
  EXPECT_EQ(report["eval"], undisturbed["eval"]);
  EXPECT_EQ(report["steps"], undisturbed["steps"]);
}

// Ctrl-C, and the same command again.
TEST_F(EvaluationTest, GoesOnAfterAStop) {
  const std::string job = EvaluatedJob(kManyEpochs, kStopping);
  auto process = Start(Command(job, "run"));
  EXPECT_TRUE(testing::Eventually([&] {
    return Output().find("evaluated after") != std::string::npos || process->TryWait();
  })) << Output();
  MU_ASSERT_OK(process->Kill(SIGINT));
  const int code = ExitOf(process.get());
  ASSERT_TRUE(code == 130 || code == 0) << Output();
  if (code == 130) {
    EXPECT_EQ(ReportOf("run")["status"], "stopped");
    EXPECT_THAT(Output(), HasSubstr("\nto continue: "));
    ASSERT_EQ(Train(job, "run"), 0) << Output();
  }
  const Json report = ReportOf("run");
  EXPECT_EQ(report["status"], "done");
  const std::vector<uint64_t> steps = StepsOf(report["evaluations"]);
  EXPECT_EQ(std::set<uint64_t>(steps.begin(), steps.end()).size(), steps.size()) << "none twice";
  EXPECT_EQ(report["early_stopping"]["stopped"], true);
}

TEST_F(EvaluationTest, AMetricThatIsNotComputedIsRefused) {
  EXPECT_EQ(Run({"check", EvaluatedJob("epochs: 1", "early_stopping: {metric: auc}\n")}), 2);
  EXPECT_THAT(Output(), HasSubstr("job.yaml:11:26: early_stopping.metric: is `auc`, which is not "
                                  "computed; computed are rmse, mae; choose one of them"));
  EXPECT_EQ(
      Run({"check", EvaluatedJob("epochs: 1", "checkpoint: {keep_best: {metric: calibration}}\n")}),
      2);
  EXPECT_THAT(Output(), HasSubstr("job.yaml:11:34: checkpoint.keep_best.metric: is `calibration`"));
  EXPECT_EQ(Run({"check", EvaluatedJob("epochs: 1",
                                       "evaluation: {metrics: [calibration]}\n"
                                       "early_stopping: {metric: calibration}\n")}),
            0)
      << Output();
}

}  // namespace
}  // namespace mu
