// Evaluation and prediction of users' models through the whole command line: several tasks,
// classes, groups, records that are left out, checkpoints that do not fit.
#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kRows = 300;

double XOf(int row) { return (row * 37 % 100 - 50) / 25.0; }
int ClickedOf(int row) { return row * 13 % 10 < 4 ? 1 : 0; }

class TasksTest : public testing::CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    program_ = "tasks_model";
    std::string good = "user,x,kind,clicked\n", spoilt = good;
    for (int i = 0; i < kRows; ++i) {
      const std::string row = absl::StrCat(i % 7, ",", XOf(i), ",", i % 3, ",", ClickedOf(i), "\n");
      good += row;
      spoilt += i % 100 == 50 ? "no,number\n" : row;
    }
    WriteText("good.csv", good);
    WriteText("spoilt.csv", spoilt);
  }
  std::string TasksJob(const std::string& more, const std::string& model = "tasks: {}") {
    const std::string source =
        "{format: csv, on_bad_record: skip, columns: [{name: user, kind: id}, {name: x, kind: "
        "number}, {name: kind, kind: id}, {name: clicked, kind: number}], files: ";
    WriteText("tasks.yaml",
              absl::StrCat("name: tasks\ndata:\n  train: ", source, "[good.csv]}\n  eval: ", source,
                           "[good.csv]}\n  predict: ", source, "[spoilt.csv]}\nmodel: {", model,
                           "}\noptimizer: {sgd: {learning_rate: 0.001}}\n"
                           "training: {batch_size: 32}\n",
                           more));
    return Path("tasks.yaml");
  }
};

TEST_F(TasksTest, IsMeasuredByTaskAndGroup) {
  ASSERT_EQ(Run({"train",
                 TasksJob("evaluation: {metrics: [accuracy, auc, top_k_accuracy@2, hit_rate@3]}"),
                 "--job_dir=" + Path("run")}),
            0)
      << Output();
  const auto eval = Report(Path("run/report.json"))["eval"];
  EXPECT_EQ(eval["examples"], kRows);
  double clicks_right = 0, first = 0, among_two = 0;
  for (int i = 0; i < kRows; ++i) {
    clicks_right += (XOf(i) >= 0) == (ClickedOf(i) == 1) ? 1 : 0;
    const double x = XOf(i), scores[] = {x, 0, -x};
    int rank = 0;
    for (int c = 0; c < 3; ++c)
      rank += scores[c] > scores[i % 3] || (scores[c] == scores[i % 3] && c < i % 3) ? 1 : 0;
    first += rank == 0;
    among_two += x == 0 ? 2.0 / 3 : rank < 2;  // equal probabilities have no order
  }
  EXPECT_NEAR(eval["click.accuracy"].get<double>(), clicks_right / kRows, 1e-9);
  EXPECT_NEAR(eval["kind.accuracy"].get<double>(), first / kRows, 1e-9);
  EXPECT_NEAR(eval["kind.top_k_accuracy@2"].get<double>(), among_two / kRows, 1e-9);
  EXPECT_EQ(eval["kind.hit_rate@3"], 1.0);
  EXPECT_TRUE(eval["click.hit_rate@3"].is_number());
  EXPECT_TRUE(eval["click.auc"].is_number());
  EXPECT_FALSE(eval.contains("kind.auc"));
  EXPECT_EQ(Report(Path("run/report.json"))["warnings"], nlohmann::json::array());
}

TEST_F(TasksTest, WrongMetricsHaveTheirPlace) {
  EXPECT_EQ(Run({"check", TasksJob("evaluation: {metrics: [rmse]}")}), 2);
  EXPECT_THAT(Output(), HasSubstr("tasks.yaml:9:24: evaluation.metrics[0]: `rmse` is no metric of "
                                  "the task, which is binary classification"));
  EXPECT_EQ(Run({"check", TasksJob("evaluation: {group: usr}")}), 2);
  EXPECT_THAT(Output(), HasSubstr("tasks.yaml:9:21: evaluation.group: is `usr`, which is no column "
                                  "of the data; did you mean \"user\"?"));
}

TEST_F(TasksTest, ALineForEachRecordWithColumnsBesideIt) {
  const std::string job = TasksJob("");
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  ASSERT_EQ(Run({"predict", job, "--checkpoint=" + Path("run"), "--job_dir=" + Path("predict"),
                 "--columns=user,kind", "--out=" + Path("out.csv")}),
            0)
      << Output();
  MU_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(Path("out.csv")));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), size_t{kRows} + 1);
  EXPECT_EQ(lines[0], "user,kind,click,kind_class,kind_probability,skipped");
  for (int i = 0; i < kRows; ++i) {
    const std::string& line = lines[static_cast<size_t>(i) + 1];
    if (i % 100 == 50) {
      EXPECT_THAT(line, StartsWith(absl::StrCat(",,,,,\"", Path("spoilt.csv"), ":", i + 2, ": ")));
      continue;
    }
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    ASSERT_EQ(fields.size(), 6u) << line;
    double click = 0;
    ASSERT_TRUE(absl::SimpleAtod(fields[2], &click)) << line;
    EXPECT_EQ(fields[0], absl::StrCat(i % 7));
    EXPECT_EQ(fields[1], absl::StrCat(i % 3));
    EXPECT_NEAR(click, 1 / (1 + std::exp(-XOf(i))), 1e-5);
    EXPECT_EQ(fields[3], XOf(i) >= 0 ? "0" : "2") << line;
    EXPECT_EQ(fields[5], "");
  }
  const auto report = Report(Path("predict/report.json"));
  EXPECT_EQ(report["samples"], kRows - 3);
  EXPECT_EQ(report["bad_records"]["count"], 3);
  ASSERT_EQ(report["warnings"].size(), 1u);
  EXPECT_THAT(report["warnings"][0].get<std::string>(), HasSubstr("3 records were left out"));
  EXPECT_EQ(Run({"predict", job, "--checkpoint=" + Path("run"), "--columns=uset"}), 2);
  EXPECT_THAT(Output(), HasSubstr("--columns: is `uset`, which is no column of the data; did you "
                                  "mean \"user\"?"));
}

TEST_F(TasksTest, UndefinedMetricsAreWarnings) {
  std::string rows = "user,x,kind,clicked\n";
  for (int i = 0; i < 40; ++i) absl::StrAppend(&rows, i % 7, ",", XOf(i), ",0,0\n");
  WriteText("one_class.csv", rows);
  const std::string job = TasksJob("");
  ASSERT_EQ(
      Run({"train", job, "--set=data.eval.files=[one_class.csv]", "--job_dir=" + Path("run")}), 0)
      << Output();
  EXPECT_THAT(Output(), HasSubstr("note: click.auc is not defined: no label is 1"));
  EXPECT_THAT(Output(), HasSubstr("click.auc not defined"));
  const auto report = Report(Path("run/report.json"));
  EXPECT_TRUE(report["eval"]["click.auc"].is_null());
  ASSERT_EQ(report["warnings"].size(), 2u);
  EXPECT_EQ(report["warnings"][0], "click.auc is not defined: no label is 1");
  EXPECT_EQ(report["warnings"][1],
            "click.gauc is not defined: each of the 7 groups has labels of one kind only");
}

TEST_F(TasksTest, GroupsThatAMetricLeavesOutAreAWarning) {
  std::string rows = "user,x,kind,clicked\n";
  for (int i = 0; i < 42; ++i)
    absl::StrAppend(&rows, i % 7, ",", XOf(i), ",0,", i % 7 == 3 ? 0 : 1, "\n");
  WriteText("one_without.csv", rows);
  const std::string job = TasksJob("evaluation: {metrics: [hit_rate@3]}");
  ASSERT_EQ(
      Run({"train", job, "--set=data.eval.files=[one_without.csv]", "--job_dir=" + Path("run")}), 0)
      << Output();
  const std::string warning =
      "click.hit_rate@3 leaves out 1 of 7 groups, which have no label that is 1";
  EXPECT_THAT(Output(), HasSubstr("note: " + warning));
  EXPECT_EQ(Report(Path("run/report.json"))["warnings"], nlohmann::json({warning}));
}

TEST_F(TasksTest, EvalTakesTheNewestCheckpointThatFits) {
  const auto job = [&](int dim) { return TasksJob("", absl::StrCat("rows: {dim: ", dim, "}")); };
  // ./runs belongs to the folder that the program runs in: two runs below one of the test's own.
  ASSERT_EQ(Run({"train", job(4), "--job_dir=" + Path("four")}), 0) << Output();
  ASSERT_EQ(Run({"train", job(8), "--job_dir=" + Path("eight")}), 0) << Output();
  EXPECT_EQ(Run({"eval", job(4), "--checkpoint=" + Path("eight")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--checkpoint: " + Path("eight/checkpoints/ckpt-00000001") +
                                  " does not fit the model: the checkpoint is of another job (1 "
                                  "differences): 'rows' is table of 10 rows of 4"));
  EXPECT_THAT(Output(), HasSubstr("name one of this model with --checkpoint=DIR, or train again"));
  // A newer one of another shape in the same run is passed over.
  ASSERT_EQ(std::rename(Path("eight/checkpoints/ckpt-00000001").c_str(),
                        Path("four/checkpoints/ckpt-00000007").c_str()),
            0);
  ASSERT_EQ(Run({"eval", job(4), "--job_dir=" + Path("four")}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("ckpt-00000007 does not fit the model: "));
  EXPECT_THAT(Output(), HasSubstr("ckpt-00000001 is taken, the newest that fits; --checkpoint=DIR "
                                  "names another"));
}

TEST_F(TasksTest, EvalTakesTheNewestCheckpointOfItsPartitions) {
  const auto job = [&](const std::string& rules) {
    return TasksJob(rules, "mlp: {features: [{column: x}], label_column: clicked, hidden: [4]}");
  };
  const std::string cut = "parameters: [{match: deep_1/kernel, partitioner: {fixed_shards: 4}}]\n";
  ASSERT_EQ(Run({"train", job(""), "--job_dir=" + Path("whole")}), 0) << Output();
  ASSERT_EQ(Run({"train", job(cut), "--job_dir=" + Path("cut")}), 0) << Output();
  ASSERT_EQ(Run({"eval", job(cut), "--job_dir=" + Path("cut")}), 0) << Output();
  EXPECT_THAT(Output(), ::testing::Not(HasSubstr("does not fit")));
  // Found before anything starts.
  EXPECT_EQ(Run({"eval", job(""), "--checkpoint=" + Path("cut")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--checkpoint: " + Path("cut/checkpoints/ckpt-00000001") +
                                  " does not fit the model: the checkpoint is of another job (1 "
                                  "differences): 'deep_1/kernel' has 1 partitions in the job and "
                                  "4 in the checkpoint"));
  ASSERT_EQ(std::rename(Path("cut/checkpoints/ckpt-00000001").c_str(),
                        Path("whole/checkpoints/ckpt-00000007").c_str()),
            0);
  ASSERT_EQ(Run({"eval", job(""), "--job_dir=" + Path("whole")}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("ckpt-00000007 does not fit the model: "));
  EXPECT_THAT(Output(), HasSubstr("ckpt-00000001 is taken, the newest that fits; "));
}

TEST_F(TasksTest, AFailedRunSaysNoLossThatItDoesNotKnow) {
  std::string rows = "user,x,kind,clicked\n";
  for (int i = 0; i < 400; ++i) absl::StrAppend(&rows, i % 7, ",1e18,0,1\n");
  WriteText("good.csv", rows);
  ASSERT_EQ(Run({"train", TasksJob("", "rows: {dim: 4}"), "--set",
                 "optimizer={sgd: {learning_rate: 1e9}}", "--job_dir=" + Path("run")}),
            3)
      << Output();
  EXPECT_THAT(Output(), HasSubstr("tasks: failed"));
  EXPECT_THAT(Output(), ::testing::Not(HasSubstr("loss 0.0000")));
  EXPECT_TRUE(Report(Path("run/report.json"))["train_loss"].is_null());
}

TEST_F(TasksTest, ALossThatGrowsIsAWarning) {
  ASSERT_EQ(Run({"train", TasksJob("", "rows: {dim: 1}"), "--set",
                 "optimizer={sgd: {learning_rate: 40}}", "--set",
                 "training={batch_size: 4, steps_per_function: 1, warmup_steps: 0, max_steps: 12}",
                 "--workers=1", "--job_dir=" + Path("run")}),
            0)
      << Output();
  const auto report = Report(Path("run/report.json"));
  ASSERT_EQ(report["warnings"].size(), 1u) << Output();
  EXPECT_THAT(report["warnings"][0].get<std::string>(), HasSubstr("the training diverges"));
  EXPECT_THAT(Output(), HasSubstr("note: the loss has grown from "));
}

}  // namespace
}  // namespace mu
