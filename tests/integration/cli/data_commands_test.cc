// What looks at data before it is trained on, and mistakes in data that used to pass in silence.
#include <gmock/gmock.h>

#include "common/env/compression.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DataCommandsTest : public testing::CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    std::string rows = "age,city,income\n";
    for (int i = 0; i < 200; ++i) {
      const char* const city = i % 4 == 0 ? "rome" : i % 4 == 1 ? "bonn" : "paris";
      absl::StrAppend(&rows, i % 10 == 9 ? "?" : std::to_string(20 + i % 3), ",", city, ",",
                      i % 2 == 0 ? " >50K" : " <=50K", "\n");
    }
    WriteText("people.csv", rows);
  }

  // Three columns; `label` and `more` are YAML.
  std::string PeopleJob(const std::string& label, const std::string& predict = "",
                        const std::string& city = "kind: hash, buckets: 100") {
    const std::string source = absl::StrCat(
        "{format: csv, files: [people.csv], missing: [\"?\"], columns: [{name: age, kind: number}, "
        "{name: city, ",
        city, "}, {name: income, ", label, "}]}\n");
    WriteText(
        "people.yaml",
        absl::StrCat("name: people\ndata:\n  train: ", source, "  eval: ", source, predict,
                     "model:\n  logistic_regression:\n    features: [{column: age}, {column: "
                     "city, kind: id, rows: 100}]\n    label_column: income\n"
                     "optimizer: {sgd: {learning_rate: 0.001}}\ntraining: {batch_size: 50}\n"));
    return Path("people.yaml");
  }
};

constexpr char kGood[] = "kind: label, positive: [\" >50K\"]";

TEST_F(DataCommandsTest, StatsOfColumns) {
  ASSERT_EQ(Run({"stats", PeopleJob(kGood), "--out=" + Path("stats.json")}), 0) << Output();
  EXPECT_THAT(Output(), AllOf(HasSubstr("column"), HasSubstr("200 records of 1 files")));
  const nlohmann::json stats = Report(Path("stats.json"));
  EXPECT_EQ(stats["records"], 200);
  const nlohmann::json& age = stats["columns"]["age"];
  EXPECT_EQ(age["count"], 180);
  EXPECT_EQ(age["missing"], 20);
  EXPECT_EQ(age["min"], 20);
  EXPECT_EQ(age["max"], 22);
  EXPECT_NEAR(age["mean"].get<double>(), 21, 0.1);
  EXPECT_EQ(age["distinct"], 3);
  EXPECT_EQ(stats["columns"]["city"]["distinct"], 3);
  EXPECT_TRUE(stats["columns"]["city"]["mean"].is_null());
}

// Both were read into the place of the other, which ended the process.
TEST_F(DataCommandsTest, ColumnsThatTakeOneNameAreRefused) {
  WriteText("items.jsonl", "{\"items\": [1, 2], \"items.weights\": 0.5, \"y\": 1}\n");
  WriteText(
      "items.yaml",
      "name: items\ndata:\n  train:\n    format: jsonl\n    files: [items.jsonl]\n    columns:\n"
      "      - {name: items, kind: id, list: true, buckets: 7}\n"
      "      - {name: items.weights, kind: number}\n"
      "      - {name: y, kind: label, positive: [\"1\"]}\n"
      "model: {logistic_regression: {features: [{column: items, kind: list, rows: 7}], "
      "label_column: y}}\noptimizer: {sgd: {learning_rate: 0.1}}\n");
  for (const char* command : {"check", "stats", "train"}) {
    EXPECT_EQ(Run({command, Path("items.yaml")}), 2) << command;
    EXPECT_THAT(Output(), HasSubstr("items.yaml:8:16: `data.train.columns[1].name` is "
                                    "`items.weights`, but the columns items and items.weights both "
                                    "take the name items.weights"))
        << command;
  }
}

TEST_F(DataCommandsTest, AVocabularyIsMadeAndUsed) {
  const std::string city = "kind: vocabulary, vocabulary: cities.txt";
  EXPECT_EQ(Run({"check", PeopleJob(kGood, "", city)}), 2);
  EXPECT_THAT(Output(), HasSubstr("there is no file"));
  ASSERT_EQ(Run({"make-vocab", PeopleJob(kGood, "", city), "--column=city",
                 "--out=" + Path("cities.txt")}),
            0)
      << Output();
  EXPECT_EQ(ReadFile(Path("cities.txt")).value(), "paris\nbonn\nrome\n");
  EXPECT_EQ(Run({"train", PeopleJob(kGood, "", city), "--job_dir=" + Path("run")}), 0) << Output();
  EXPECT_EQ(Run({"make-vocab", PeopleJob(kGood), "--column=city", "--min_count=60",
                 "--out=" + Path("frequent.txt")}),
            0);
  EXPECT_EQ(ReadFile(Path("frequent.txt")).value(), "paris\n");
  // A name says how it is written, since it says how it is read.
  for (const char* ending : {".gz", ".zst"}) {
    const std::string name = absl::StrCat("cities.txt", ending);
    const std::string packed = "kind: vocabulary, vocabulary: " + name;
    ASSERT_EQ(
        Run({"make-vocab", PeopleJob(kGood, "", packed), "--column=city", "--out=" + Path(name)}),
        0)
        << Output();
    MU_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ByteStream> stream, OpenUnpacked(Path(name)));
    std::string text(100, ' ');
    MU_ASSERT_OK_AND_ASSIGN(const size_t n, stream->Read(text.data(), text.size()));
    EXPECT_EQ(text.substr(0, n), "paris\nbonn\nrome\n");
    EXPECT_NE(ReadFile(Path(name)).value(), text.substr(0, n));
    EXPECT_EQ(Run({"train", PeopleJob(kGood, "", packed), "--job_dir=" + Path("run-" + name)}), 0)
        << Output();
  }
  EXPECT_EQ(Run({"make-vocab", PeopleJob(kGood), "--column=city", "--out=" + Path("x.txt"),
                 "--set=data.train.missing=[\"?\", paris, bonn, rome]"}),
            2);
  EXPECT_THAT(Output(), HasSubstr("column city has no text in any of 200 records"));
  EXPECT_EQ(Run({"make-vocab", PeopleJob(kGood), "--column=town", "--out=" + Path("x.txt")}), 2);
  EXPECT_THAT(Output(), HasSubstr("has no column \"town\""));
}

// Its ids are made of other columns' texts.
TEST_F(DataCommandsTest, ACrossHasNoVocabulary) {
  EXPECT_EQ(Run({"make-vocab",
                 PeopleJob(kGood, "",
                           "kind: hash, buckets: 100}, {name: street, kind: hash, field: city, "
                           "buckets: 100}, {name: both, kind: cross, of: [city, street], "
                           "buckets: 100"),
                 "--column=both", "--out=" + Path("both.txt")}),
            2);
  EXPECT_THAT(Output(), HasSubstr("--column: both is of kind cross"));
  EXPECT_THAT(Output(), HasSubstr("name one of the columns that it crosses: city, street\n"));
  EXPECT_FALSE(FileExists(Path("both.txt")));
}

// Training leaves them out, so their texts would be rows that nothing is learned for. They are read
// before what makes the record bad.
TEST_F(DataCommandsTest, AVocabularyHasNoTextsOfBadRecords) {
  WriteText("people.csv",
            "city,age,income\nrome,20, >50K\nbonn,21, >50K\noslo,old, >50K\nbonn,old, >50K\n"
            "bonn,old, >50K\nrome,22, >50K\n");
  const std::string job = PeopleJob(kGood);
  const auto command = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> args = {
        name, job, "--set=data.train.on_bad_record=skip",
        "--set=data.train.columns=[{name: city, kind: hash, buckets: 100}, {name: age, kind: "
        "number}, {name: income, kind: label, positive: [\" >50K\"]}]"};
    args.insert(args.end(), more.begin(), more.end());
    return Run(args);
  };
  ASSERT_EQ(command("make-vocab", {"--column=city", "--out=" + Path("cities.txt")}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("2 of 2 texts in 3 records: "));
  EXPECT_EQ(ReadFile(Path("cities.txt")).value(), "rome\nbonn\n");
  ASSERT_EQ(command("stats", {"--out=" + Path("stats.json")}), 0) << Output();
  EXPECT_EQ(Report(Path("stats.json"))["columns"]["city"]["distinct"], 2);
  WriteText("people.csv", "city,age,income\noslo,old, >50K\n");
  EXPECT_EQ(command("make-vocab", {"--column=city", "--out=" + Path("none.txt")}), 2);
  EXPECT_THAT(Output(), HasSubstr("it has no good record; mend the files"));
  EXPECT_FALSE(FileExists(Path("none.txt")));
}

TEST_F(DataCommandsTest, LabelsOfWhichNoneIsPositive) {
  EXPECT_EQ(Run({"check", PeopleJob("kind: label, positive: [\">50K\"]")}), 2);
  EXPECT_THAT(Output(),
              AllOf(HasSubstr("column income: none of 100 labels is one of its `positive`"),
                    HasSubstr("write trim: true")));
  EXPECT_EQ(Run({"train", PeopleJob("kind: label, positive: [rich]")}), 2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("column income: none of 200 labels is one of its "
                                        "`positive` texts, \"rich\"; they are \" >50K\", "
                                        "\" <=50K\""),
                              HasSubstr("nothing was started")));
}

// A positive label may come further behind: the files are read on before training.
TEST_F(DataCommandsTest, ManyLabelsOfWhichNoneIsPositive) {
  std::string rows = "age,city,income\n";
  for (int i = 0; i < 10'050; ++i) rows += "20,rome,poor\n";
  WriteText("people.csv", rows);
  const std::string job = PeopleJob("kind: label, positive: [rich]");
  const std::string none =
      "column income: none of 10050 labels is one of its `positive` texts, \"rich\"; they are "
      "\"poor\"";
  EXPECT_EQ(Run({"check", job}), 2);
  EXPECT_THAT(Output(), HasSubstr("data.train.files: " + none));
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 2);
  EXPECT_THAT(Output(),
              AllOf(HasSubstr("data.train.files: " + none), HasSubstr("data.eval.files: " + none),
                    HasSubstr("nothing was started")));
  WriteText("people.csv", rows + "20,rome,rich\n");
  EXPECT_EQ(Run({"check", job}), 0) << Output();
}

// They trained to losses below 0, and only the evaluation failed.
TEST_F(DataCommandsTest, LabelsThatAreNeitherZeroNorOne) {
  WriteText("signs.svm", "+1 1:1\n-1 2:1\n-1 1:1 2:1\n");
  const std::string source = "{format: libsvm, files: [signs.svm], features: 3";
  const auto job = [&](const std::string& positive, const std::string& model) {
    WriteText("signs.yaml",
              absl::StrCat("name: signs\ndata:\n  train: ", source, positive, "}\nmodel: ", model,
                           "\noptimizer: {sgd: {learning_rate: 0.1}}\n"));
    return Path("signs.yaml");
  };
  const std::string model =
      "{logistic_regression: {features: [{column: features, kind: weighted_list, rows: 3}], "
      "label_column: label}}";
  EXPECT_EQ(Run({"train", job("", model), "--job_dir=" + Path("run")}), 2);
  EXPECT_THAT(Output(),
              HasSubstr("1 problem; nothing was started:\n" + Path("signs.yaml") +
                        ":3:27: data.train.files: " + Path("signs.svm") +
                        ":2: column label: -1 is neither 0 nor 1, as a label of two classes has to "
                        "be; the first labels are -1, 1; name the texts that mean 1: positive: "
                        "[\"+1\"]\n"));
  EXPECT_EQ(Run({"check", job(", positive: [\"+1\"]", model)}), 0) << Output();
}

TEST_F(DataCommandsTest, DataOfTheEvaluationArePredictedWithoutALabel) {
  const std::string job = PeopleJob(kGood);
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  WriteText("people.csv", "age,city\n21,rome\n22,oslo\n");
  ASSERT_EQ(Run({"predict", job, "--job_dir=" + Path("run"), "--out=" + Path("out.csv")}), 0)
      << Output();
  const std::string lines = ReadFile(Path("out.csv")).value();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << lines;
  // To be measured or copied, it has to be there; and what is wrong has the place of data.eval.
  EXPECT_EQ(Run({"eval", job, "--job_dir=" + Path("run")}), 2);
  EXPECT_THAT(Output(), HasSubstr("the header has no column \"income\""));
  EXPECT_EQ(Run({"predict", job, "--job_dir=" + Path("run"), "--columns=income"}), 2);
  EXPECT_THAT(Output(), HasSubstr("people.yaml:4:23: data.eval.files: " + Path("people.csv:1")));
}

TEST_F(DataCommandsTest, DataToPredictNeedsNoLabel) {
  WriteText("new.csv", "age,city\n21,rome\n22,oslo\n");
  const std::string predict =
      "  predict: {format: csv, files: [new.csv], columns: [{name: age, kind: number}, {name: "
      "city, "
      "kind: hash, buckets: 100}, {name: income, kind: label, positive: [\" >50K\"]}]}\n";
  const std::string job = PeopleJob(kGood, predict);
  EXPECT_EQ(Run({"check", job}), 0) << Output();
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  ASSERT_EQ(Run({"predict", job, "--job_dir=" + Path("run"), "--out=" + Path("out.csv")}), 0)
      << Output();
  const std::string lines = ReadFile(Path("out.csv")).value();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << lines;
}

TEST_F(DataCommandsTest, FieldsAreCopiedAsTheyStandInTheData) {
  std::string job = PeopleJob(kGood);
  std::string text = ReadFile(job).value();
  for (size_t at = 0; (at = text.find("kind: number", at)) != std::string::npos; at += 20)
    text.replace(at, 12, "kind: number, mean: 20, stddev: 4");
  WriteText("people.yaml", text);
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  WriteText("people.csv",
            "age,city,income\n12345678901.50,\"Rome, \"\"the city\"\"\", >50K\n?,oslo,poor\n");
  ASSERT_EQ(Run({"predict", job, "--job_dir=" + Path("run"), "--columns=city,age,income",
                 "--out=" + Path("out.csv")}),
            0)
      << Output();
  EXPECT_THAT(ReadFile(Path("out.csv")).value(),
              ::testing::MatchesRegex("city,age,income,prediction\n"
                                      "\"Rome, \"\"the city\"\"\",12345678901.50, >50K,[^,]*\n"
                                      "oslo,\\?,poor,[^,]*\n"));
}

// Of formats whose label has a place in the line, and no name.
TEST_F(DataCommandsTest, LinesToPredictNeedNoLabel) {
  std::string clicks, bare_clicks;
  for (int i = 0; i < 40; ++i) {
    std::string line;
    for (int field = 0; field < 39; ++field)
      absl::StrAppend(&line, field == 0 ? "" : "\t",
                      field < 13 ? (i + field) % 5 : 0xABCDEF00 + i % 3);
    absl::StrAppend(&clicks, i % 2, "\t", line, "\n");
    absl::StrAppend(&bare_clicks, line, "\n");
  }
  const auto predicted = [&](const std::string& name, const std::string& keys,
                             const std::string& model, const std::string& labelled,
                             const std::string& bare) {
    WriteText(name + ".txt", labelled);
    WriteText("bare_" + name + ".txt", bare);
    const auto source = [&](const std::string& file) {
      return absl::StrCat("{format: ", name, keys, ", files: [", file, ".txt]}\n");
    };
    WriteText("lines.yaml",
              absl::StrCat("name: lines\ndata:\n  train: ", source(name), "  eval: ", source(name),
                           "  predict: ", source("bare_" + name), "model: {logistic_regression: {",
                           "features: [", model, "], label_column: label}}\n",
                           "optimizer: {sgd: {learning_rate: 0.1}}\ntraining: {batch_size: 20}\n"));
    const std::string run = "--job_dir=" + Path("run_" + name);
    EXPECT_EQ(Run({"check", Path("lines.yaml")}), 0) << Output();
    EXPECT_EQ(Run({"train", Path("lines.yaml"), run}), 0) << Output();
    EXPECT_EQ(Run({"predict", Path("lines.yaml"), run, "--out=" + Path("bare.csv")}), 0)
        << Output();
    EXPECT_EQ(Run({"predict", Path("lines.yaml"), run, "--out=" + Path("with.csv"),
                   "--set=data.predict.files=[" + name + ".txt]"}),
              0)
        << Output();
    const std::string lines = ReadFile(Path("bare.csv")).value_or("");
    EXPECT_EQ(ReadFile(Path("with.csv")).value_or("none"), lines) << "a label changes nothing";
    return lines;
  };
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(predicted("criteo_tsv", "", "{column: ids, kind: id, size: 26, rows: 50}", clicks,
                            bare_clicks)),
            41);
  EXPECT_EQ(lines(predicted("libsvm", ", features: 3, positive: [\"+1\"]",
                            "{column: features, kind: weighted_list, rows: 3}",
                            "# Generated by dump_svmlight_file\n# Column indices are one-based\n"
                            "+1 1:1\n-1 2:1\n-1 1:1 2:1\n",
                            "# Generated by a script\n1:1\n \n2:1\n\t# the last:\n1:1 2:1\n# end")),
            4);
  EXPECT_EQ(lines(predicted("libffm", ", features: 3, fields: 2, positive: [\"1\"]",
                            "{column: field_0, kind: weighted_list, rows: 3}, {column: field_1, "
                            "kind: weighted_list, rows: 3}",
                            "# clicks\n1 0:1:1\n0 1:2:1\n0 0:1:1 1:2:1\n",
                            "0:1:1\n # none\n1:2:1\n0:1:1 1:2:1\n \t")),
            4);
}

// A mistake in one column hides none of another.
TEST_F(DataCommandsTest, AWrongHeaderNameIsFoundBesideOtherMistakes) {
  WriteText("two.yaml",
            "name: two\ndata:\n  train:\n    format: csv\n    files: [people.csv]\n    columns:\n"
            "      - {name: age, kind: nmber}\n"
            "      - {name: town, kind: hash}\n"
            "      - {name: income, kind: label, positive: [a]}\n"
            "model: {logistic_regression: {features: [{column: age}], label_column: income}}\n"
            "optimizer: {sgd: {learning_rate: 0.1}}\n");
  EXPECT_EQ(Run({"check", Path("two.yaml")}), 2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("two.yaml:7:"), HasSubstr("not `nmber`"),
                              HasSubstr("the header has no column \"town\"")));
}

}  // namespace
}  // namespace mu
