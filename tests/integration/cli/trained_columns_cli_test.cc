// Data whose columns do not mean what they meant in training, and models that are not what was
// trained, through the real program.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

class TrainedColumnsCliTest : public testing::CliTest {
 protected:
  // With a column that is hashed into so many ids in training, and in what is evaluated.
  std::string HashedJob(const std::string& train, const std::string& other) {
    const std::string rest = "}, {name: item, kind: id}, {name: rating, kind: number}]}\n";
    return Job(
        {{"      - {name: user, kind: id}\n",
          absl::StrCat("      - {name: user, kind: hash, buckets: ", train, "}\n")},
         {"model:\n", absl::StrCat("  eval: {format: csv, files: [data.csv], columns: [{name: "
                                   "user, kind: hash, buckets: ",
                                   other, rest, "model:\n")}});
  }
  // Nothing is evaluated, predicted or exported with a checkpoint of "run", and what is said why.
  void ExpectNotTaken(const std::string& job, const std::string& why) {
    const std::string checkpoint = "--checkpoint=" + Path("run");
    for (const char* command : {"eval", "predict"}) {
      EXPECT_EQ(Run({command, job, checkpoint, "--job_dir=" + Path("own")}), 2) << command;
      EXPECT_THAT(Output(), HasSubstr("--checkpoint: " + why)) << command;
    }
    EXPECT_EQ(Run({"export", job, checkpoint, "--onnx=" + Path("model.onnx")}), 2);
    EXPECT_THAT(Output(), HasSubstr("--checkpoint: " + why));
    EXPECT_FALSE(FileExists(Path("model.onnx")));
  }
};

TEST_F(TrainedColumnsCliTest, IdsThatWouldBeOthersThanThoseTrained) {
  const auto with = [&](const std::string& user) {
    return Job(
        {{"model:\n", absl::StrCat("  eval: {format: csv, files: [data.csv], columns: [{name: "
                                   "user, ",
                                   user,
                                   "}, {name: item, kind: id}, {name: rating, kind: "
                                   "number}]}\nmodel:\n")}});
  };
  EXPECT_EQ(Run({"check", with("kind: id")}), 0) << Output();
  EXPECT_EQ(Run({"check", with("kind: hash, buckets: 10")}), 2);
  EXPECT_THAT(Output(), HasSubstr("job.yaml:10:52: data.eval.columns[0]: column user is hash into "
                                  "10, in data.train id: its values would be other ids"));
}

// What counts is what was trained, also where the job file says it no more.
TEST_F(TrainedColumnsCliTest, ColumnsOfWhatIsEvaluatedAreThoseThatWereTrained) {
  const auto job = [&](const std::string& train, const std::string& other) {
    return HashedJob(train, other);
  };
  ASSERT_EQ(Run({"train", job("10", "10"), "--job_dir=" + Path("run")}), 0) << Output();
  const std::string checkpoint = "--checkpoint=" + Path("run");
  EXPECT_EQ(Run({"eval", job("10", "10"), checkpoint}), 0) << Output();
  const std::string what = "data.eval.columns[0]: column user is hash into 5, in data.train of " +
                           Path("run/job.json") + " hash into 10: its values would be other ids";
  for (const char* train : {"10", "5"}) {
    for (const char* command : {"eval", "predict"}) {
      EXPECT_EQ(Run({command, job(train, "5"), checkpoint}), 2) << command << train;
      EXPECT_THAT(Output(), HasSubstr("job.yaml:10:52: " + what)) << command << train;
    }
  }
  EXPECT_EQ(Run({"eval", job("10", "5"), "--follow=" + Path("run")}), 2);
  EXPECT_THAT(Output(), HasSubstr(what));
  // A data.train that was edited since says nothing.
  EXPECT_EQ(Run({"predict", job("5", "10"), checkpoint}), 0) << Output();
  // Of a checkpoint that lies alone nobody knows more than the job file.
  ASSERT_EQ(::rename(Path("run/job.json").c_str(), Path("run/away").c_str()), 0);
  EXPECT_EQ(Run({"eval", job("10", "5"), checkpoint}), 2);
  EXPECT_THAT(Output(), HasSubstr("is hash into 5, in data.train hash into 10"));
}

// As a disk leaves it that has lost its end. The job file would be compared with itself.
TEST_F(TrainedColumnsCliTest, ARecordThatCannotBeReadIsNoReasonToBelieveTheJobFile) {
  const std::string record = Path("run/job.json");
  ASSERT_EQ(Run({"train", HashedJob("10", "10"), "--job_dir=" + Path("run")}), 0) << Output();
  MU_ASSERT_OK_AND_ASSIGN(const std::string taken, FindCheckpoint(Path("run")));
  MU_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(record));
  const std::string job = HashedJob("5", "5");
  const std::string unknown = ": it is not known what " + taken +
                              " was trained with; copy the checkpoint's folder to a place outside "
                              "of " +
                              Path("run");
  for (const std::string& text : {whole.substr(0, 300), std::string()}) {
    WriteText("run/job.json", text);
    ExpectNotTaken(job, record + " is damaged" + unknown);
    EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 2);
    EXPECT_THAT(Output(), HasSubstr(record + " is damaged"));
  }
  // It can wait with a record that cannot be read, but not evaluate.
  EXPECT_EQ(Run({"eval", job, "--follow=" + Path("run"), "--job_dir=" + Path("follower")}), 2);
  EXPECT_THAT(Output(), HasSubstr(record + " is damaged: it is not known what "));
  // A folder in its place can be read by nobody, whatever the rights are.
  MU_ASSERT_OK(RemoveFile(record));
  MU_ASSERT_OK(MakeDirectories(record));
  ExpectNotTaken(job, "cannot read " + record);
  EXPECT_THAT(Output(), HasSubstr(unknown));
}

// The run that the record describes has left nothing. What it would train says nothing of what the
// run before has left.
TEST_F(TrainedColumnsCliTest, ACheckpointOfBeforeTheRunThatTheRecordDescribes) {
  const std::string run = "--job_dir=" + Path("run"), record = Path("run/job.json");
  ASSERT_EQ(Run({"train", HashedJob("10", "10"), run}), 0) << Output();
  MU_ASSERT_OK_AND_ASSIGN(const std::string taken, FindCheckpoint(Path("run")));
  const auto first_epoch = [&] { return Report(record)["first_epoch"].get<uint64_t>(); };
  const uint64_t before = first_epoch();
  const std::string job = HashedJob("5", "5");
  auto again = Start({"train", job, run, "--train_again", "--set", "training.epochs=1000000",
                      "--set", "checkpoint.every=never"});
  EXPECT_TRUE(testing::Eventually([&] {
    return first_epoch() > before || again->TryWait().has_value();
  })) << Output();
  ASSERT_FALSE(again->TryWait().has_value()) << Output();
  MU_ASSERT_OK(again->Kill(SIGKILL));
  ExitOf(again.get());
  MU_ASSERT_OK_AND_ASSIGN(const std::string newest, FindCheckpoint(Path("run")));
  ASSERT_EQ(newest, taken);
  ExpectNotTaken(job, taken + " is older than the run that " + record + " describes");
  EXPECT_THAT(Output(), HasSubstr("wait for the new run's first checkpoint, or copy the "
                                  "checkpoint's folder to a place outside of " +
                                  Path("run")));
  // Who does so says that the job file is right.
  const std::string alone = Path("alone/" + BaseName(taken));
  MU_ASSERT_OK(MakeDirectories(Path("alone")));
  std::filesystem::copy(taken, alone, std::filesystem::copy_options::recursive);
  EXPECT_EQ(
      Run({"eval", HashedJob("10", "10"), "--checkpoint=" + alone, "--job_dir=" + Path("own")}), 0)
      << Output();
  // Who follows the new run evaluates what the old one has left as well, and says what it is.
  auto follower = Start(
      {"eval", HashedJob("5", "5"), "--follow=" + Path("run"), "--job_dir=" + Path("follower")});
  EXPECT_TRUE(testing::Eventually([&] {
    return FileExists(Path("run/evaluations.json")) || follower->TryWait().has_value();
  })) << Output();
  WriteText("run/run.json", R"({"status": "done"})");
  EXPECT_EQ(ExitOf(follower.get()), 0) << Output();
  const auto report = Report(Path("follower/report.json"));
  ASSERT_EQ(report["warnings"].size(), 1u);
  EXPECT_THAT(report["warnings"][0].get<std::string>(),
              HasSubstr(" is older than the run that " + record + " describes"));
}

TEST_F(TrainedColumnsCliTest, AVocabularyWhoseTextsHaveChangedSinceTraining) {
  WriteText("voc.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n");
  const std::string job = Job(
      {{"      - {name: user, kind: id}\n",
        "      - {name: user, kind: vocabulary, vocabulary: voc.txt}\n"},
       {"model:\n",
        "  eval: {format: csv, files: [data.csv], columns: [{name: user, kind: vocabulary, "
        "vocabulary: voc.txt}, {name: item, kind: id}, {name: rating, kind: number}]}\nmodel:\n"}});
  const std::string run = "--job_dir=" + Path("run"), checkpoint = "--checkpoint=" + Path("run");
  ASSERT_EQ(Run({"train", job, run}), 0) << Output();
  // The same texts, as another program writes them.
  WriteText("voc.txt", "0\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n");
  EXPECT_EQ(Run({"eval", job, checkpoint}), 0) << Output();
  WriteText("voc.txt", "1\n0\n2\n3\n4\n5\n6\n7\n8\n");
  for (const char* command : {"eval", "predict"}) {
    EXPECT_EQ(Run({command, job, checkpoint}), 2) << command;
    EXPECT_THAT(Output(), HasSubstr("column user is vocabulary " + Path("voc.txt") +
                                    ", whose texts are not those that " + Path("voc.txt") +
                                    " had in data.train of " + Path("run/job.json")));
  }
  EXPECT_EQ(Run({"train", job, run}), 2);
  EXPECT_THAT(Output(), HasSubstr("the vocabulary of column user has other texts than those that "
                                  "it was trained with"));
  EXPECT_EQ(Run({"check", job}), 0) << Output();
}

// It may be meant: other files write the same in another way.
TEST_F(TrainedColumnsCliTest, PositiveTextsThatTrainingHasNot) {
  const auto columns = [](const std::string& positive) {
    return absl::StrCat(
        "{format: csv, files: [data.csv], columns: [{name: user, kind: number}, "
        "{name: rating, kind: label, positive: [",
        positive, "]}]}\n");
  };
  WriteText("job.yaml", absl::StrCat("name: small\ndata:\n  train: ", columns("0.5, 1.5"),
                                     "  eval: ", columns("2.5, 3.5"),
                                     "model:\n  logistic_regression: {features: [{column: user}], "
                                     "label_column: rating}\noptimizer: {sgd: {learning_rate: "
                                     "0.1}}\n"));
  EXPECT_EQ(Run({"check", Path("job.yaml")}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("note: " + Path("job.yaml") + ":4:"));
  EXPECT_THAT(Output(), HasSubstr("data.eval.columns[1].positive: column rating is 1 for 2.5, 3.5, "
                                  "in data.train for 0.5, 1.5: "));
}

constexpr char kSame[] = ": the values were trained for another function; write it as it is there";

// Names and shapes of all variables fit.
TEST_F(TrainedColumnsCliTest, AModelThatMakesAnotherFunctionOfTheValues) {
  const auto job = [&](const std::string& more) {
    return Job({{"model:\n",
                 "  eval: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, "
                 "{name: item, kind: id}, {name: rating, kind: number}]}\nmodel:\n"},
                {"rating_column: rating}", absl::StrCat("rating_column: rating", more, "}")}});
  };
  const std::string run = "--job_dir=" + Path("run"), checkpoint = "--checkpoint=" + Path("run");
  const std::string what =
      "model.matrix_factorization.global_mean: is 0, in " + Path("run/job.json") + " 2" + kSame;
  // It began before the run, so it is not known yet what is trained.
  auto follower = Start({"eval", job(""), "--follow=" + Path("run"), "--ps=1", "--workers=1",
                         "--job_dir=" + Path("follower"), "--report=" + Path("follower.json")});
  EXPECT_TRUE(testing::Eventually([&] {
    return Output().find("there is no run in") != std::string::npos;
  })) << Output();
  ASSERT_EQ(Run({"train", job(", global_mean: 2"), run}), 0) << Output();
  EXPECT_EQ(ExitOf(follower.get()), 2);
  EXPECT_THAT(Report(Path("follower.json"))["error"].get<std::string>(), HasSubstr(what));
  for (const char* command : {"eval", "predict"}) {
    EXPECT_EQ(Run({command, job(""), checkpoint}), 2) << command;
    EXPECT_THAT(Output(), HasSubstr(what)) << command;
  }
  EXPECT_EQ(Run({"eval", job(""), "--follow=" + Path("run")}), 2);
  EXPECT_THAT(Output(), HasSubstr(what));
  EXPECT_EQ(Run({"export", job(""), checkpoint, "--onnx=" + Path("model.onnx")}), 2);
  EXPECT_THAT(Output(), HasSubstr(what));
  EXPECT_FALSE(FileExists(Path("model.onnx")));
  EXPECT_EQ(Run({"export", job(""), checkpoint, "--npy=" + Path("npy")}), 0) << Output();
  // Only training reads `l2`.
  for (const char* command : {"eval", "predict"})
    EXPECT_EQ(Run({command, job(", global_mean: 2, l2: 0.5"), checkpoint}), 0) << Output();
  EXPECT_EQ(
      Run({"export", job(", global_mean: 2, l2: 0.5"), checkpoint, "--onnx=" + Path("model.onnx")}),
      0)
      << Output();
}

TEST_F(TrainedColumnsCliTest, OtherModelsThatMakeAnotherFunctionOfTheValues) {
  const auto job = [&](const std::string& kind, const std::string& model) {
    const std::string data =
        absl::StrCat("{format: csv, files: [data.csv], columns: [{name: user, kind: ", kind,
                     "}, {name: item, kind: ", kind,
                     "}, {name: rating, kind: label, positive: [\"3.5\", \"4.5\"]}]}\n");
    WriteText("job.yaml", absl::StrCat("name: small\ndata:\n  train: ", data, "  predict: ", data,
                                       "model:\n  ", model, "label_column: rating}\n",
                                       "optimizer: {sgd: {learning_rate: 0.1}}\n"));
    return Path("job.yaml");
  };
  struct Change {
    const char *kind, *trained, *now, *key, *is;  // `is`: and what it was
  };
  const Change changes[] = {
      {"number", "mlp: {features: [{column: user}, {column: item, stddev: 6}], hidden: [4], ",
       "mlp: {features: [{column: user}, {column: item}], hidden: [4], ",
       "model.mlp.features[1].stddev", "1 6"},
      {"number", "logistic_regression: {features: [{column: user}, {column: item}], ",
       "logistic_regression: {features: [{column: item}, {column: user}], ",
       "model.logistic_regression.features[0].column", "item user"},
      {"id",
       "two_tower: {user: [{column: user, kind: id, rows: 10}], item: [{column: item, kind: id, "
       "rows: 20}], hidden: [4], ",
       "two_tower: {user: [{column: user, kind: id, rows: 10}], item: [{column: item, kind: id, "
       "rows: 20}], hidden: [4], negatives: sampled, temperature: 0.5, ",
       "model.two_tower.temperature", "0.5 0.1"},
  };
  int runs = 0;
  for (const auto& [kind, trained, now, key, is] : changes) {
    const std::string run = Path(absl::StrCat("run-", ++runs));
    ASSERT_EQ(Run({"train", job(kind, trained), "--ps=1", "--workers=1", "--job_dir=" + run}), 0)
        << Output();
    EXPECT_EQ(Run({"predict", job(kind, trained), "--ps=1", "--workers=1", "--checkpoint=" + run}),
              0)
        << Output();
    const std::string values(is);
    const size_t space = values.find(' ');
    EXPECT_EQ(Run({"predict", job(kind, now), "--checkpoint=" + run}), 2) << key;
    EXPECT_THAT(Output(),
                HasSubstr(absl::StrCat(key, ": is ", values.substr(0, space), ", in ", run,
                                       "/job.json ", values.substr(space + 1), kSame)));
  }
}

// Half of the users are in no record that was trained. Their rows are in no checkpoint.
TEST_F(TrainedColumnsCliTest, RowsThatNoStepHasTouchedAreThoseOfTheRunsSeed) {
  std::string all = "user,item,rating\n";
  for (int i = 0; i < 20; ++i) absl::StrAppend(&all, i, ",", i, ",1.5\n");
  WriteText("all.csv", all);
  const std::string job = Job(
      {{"users: 10", "users: 20"},
       {"model:\n",
        "  eval: {format: csv, files: [all.csv], columns: [{name: user, kind: id}, {name: item, "
        "kind: id}, {name: rating, kind: number}]}\nmodel:\n"}});
  const auto run = [&](const std::string& command, const std::string& seed,
                       std::vector<std::string> more) {
    std::vector<std::string> args = {command,        job,      "--set",
                                     "seed=" + seed, "--ps=1", "--workers=1"};
    args.insert(args.end(), more.begin(), more.end());
    EXPECT_EQ(Run(args), 0) << Output();
  };
  run("train", "5", {"--job_dir=" + Path("run")});
  std::vector<std::string> predictions;
  std::vector<double> errors;
  for (const char* seed : {"5", "6"}) {
    const std::string out = Path(absl::StrCat("predictions-", seed)),
                      report = Path(absl::StrCat("report-", seed));
    run("predict", seed, {"--checkpoint=" + Path("run"), "--out=" + out});
    predictions.push_back(ReadFile(out).value_or(""));
    run("eval", seed, {"--checkpoint=" + Path("run"), "--report=" + report});
    errors.push_back(Report(report)["eval"]["rmse"].get<double>());
  }
  EXPECT_GT(predictions[0].size(), 20u);
  EXPECT_EQ(predictions[0], predictions[1]);
  EXPECT_DOUBLE_EQ(errors[0], errors[1]);
  run("eval", "7",
      {"--follow=" + Path("run"), "--job_dir=" + Path("follower"), "--report=" + Path("followed")});
  EXPECT_DOUBLE_EQ(Report(Path("followed"))["eval"]["rmse"].get<double>(), errors[0]);
}

}  // namespace
}  // namespace mu
