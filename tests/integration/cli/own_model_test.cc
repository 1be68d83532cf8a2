// A user's binary with a model of its own has the whole command line: examples/own_model.cc, with
// real daemons.
#include <gmock/gmock.h>

#include "common/base/hash.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

class OwnModelTest : public testing::CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    program_ = "own_model";
    // Who clicks depends on the user and a little on the price.
    SplitMix random(7);
    std::string rows = "user,age,price,clicked\n";
    for (int i = 0; i < 4000; ++i) {
      const uint64_t user = random.Below(100), price = random.Below(10);
      const bool clicked = random.Below(100) < (user % 2 == 0 ? 80 : 15) - price;
      absl::StrAppend(&rows, user, ",", random.Below(60), ",0.", price, ",", clicked ? 1 : 0, "\n");
    }
    WriteText("clicks.csv", rows);
    text_ = absl::StrReplaceAll(ReadFile("examples/own_model.yaml").value_or(""),
                                {{"${CLICKS:-clicks.csv}", Path("clicks.csv")}});
    ASSERT_THAT(text_, HasSubstr(Path("clicks.csv")));
    WriteText("own.yaml", text_);
  }
  // The example's job with a change; returns its path.
  std::string With(const std::string& from, const std::string& to) {
    EXPECT_THAT(text_, HasSubstr(from));
    WriteText("changed.yaml", absl::StrReplaceAll(text_, {{from, to}}));
    return Path("changed.yaml");
  }
  std::string text_;
};

TEST_F(OwnModelTest, TrainsAndEvaluates) {
  EXPECT_EQ(Run({"check", Path("own.yaml")}), 0) << Output();
  ASSERT_EQ(Run({"train", Path("own.yaml"), "--local", "--workers=2", "--ps=2",
                 "--job_dir=" + Path("run")}),
            0)
      << Output();
  const auto trained = Report(Path("run/report.json"));
  EXPECT_EQ(trained["samples"], 5 * 3600);
  EXPECT_EQ(trained["eval"]["examples"], 400);
  EXPECT_GT(trained["eval"]["auc"].get<double>(), 0.7);
  ExpectNoDaemonLeft(Path("run"), 4);

  ASSERT_EQ(Run({"eval", Path("own.yaml"), "--local", "--workers=1", "--ps=1",
                 "--checkpoint=" + Path("run"), "--job_dir=" + Path("eval")}),
            0)
      << Output();
  const auto evaluated = Report(Path("eval/report.json"));
  EXPECT_EQ(evaluated["eval"]["examples"], 400);
  EXPECT_NEAR(evaluated["eval"]["auc"].get<double>(), trained["eval"]["auc"].get<double>(), 1e-9);
}

// With the clicks that lie beside it.
TEST_F(OwnModelTest, TheExampleRunsAsItIs) {
  EXPECT_EQ(Run({"check", "examples/own_model.yaml"}), 0) << Output();
  ASSERT_EQ(Run({"train", "examples/own_model.yaml", "--local", "--workers=1", "--ps=1",
                 "--job_dir=" + Path("run")}),
            0)
      << Output();
  const auto trained = Report(Path("run/report.json"));
  EXPECT_EQ(trained["samples"], 5 * 360);
  EXPECT_EQ(trained["eval"]["examples"], 40);
}

TEST_F(OwnModelTest, WhatTheModelSaysOfItsOptionsHasItsPlace) {
  EXPECT_EQ(Run({"check", With("numbers: [age, price]", "numbers: 3")}), 2);
  EXPECT_THAT(Output(),
              HasSubstr("changed.yaml:21:14: model.linear.numbers: must be a list of texts, not"));
  EXPECT_EQ(Run({"check", With("label: clicked", "labels: clicked")}), 2);
  EXPECT_THAT(Output(),
              HasSubstr("changed.yaml:20:13: model.linear.labels: is no option of this model"));
  EXPECT_EQ(Run({"check", With("numbers: [age, price]", "numbers: [age, prize]")}), 2);
  EXPECT_THAT(Output(), HasSubstr("data.train has no column \"prize\""));
  EXPECT_EQ(Run({"check", With("linear:", "lineal:")}), 2);
  EXPECT_THAT(Output(), HasSubstr("did you mean `linear`?"));
  // The model bounds its ids, so they are looked at with the data.
  EXPECT_EQ(Run({"train", With("user: 100", "user: 50"), "--job_dir=" + Path("run")}), 2);
  EXPECT_THAT(Output(), HasSubstr("is not below 50, the bound of its ids"));
  EXPECT_FALSE(FileExists(Path("run")));
}

// A mistake of the job, not of a machine: a cluster manager would start it again and again.
TEST_F(OwnModelTest, ATableThatNoServerCanHoldIsToldBeforeAnythingStarts) {
  // The second one is too large only with the sums of its optimizer, Adagrad.
  for (const char* rows : {"10000000000000000", "1125899906842624"}) {
    const std::string job = With("user: 100", absl::StrCat("user: ", rows));
    for (const char* command : {"check", "train"}) {
      EXPECT_EQ(Run({command, job, "--job_dir=" + Path("run")}), 2) << Output();
      EXPECT_THAT(Output(), HasSubstr("1 problem; nothing was started:\n" + job));
      EXPECT_THAT(Output(), HasSubstr("model: embedding table \"user\": it is too large"));
      EXPECT_THAT(Output(), HasSubstr("give it fewer rows or columns, or more partitions\n"));
      EXPECT_FALSE(FileExists(Path("run")));
    }
  }
}

// A mistake in the model's graph is told with the line of the op in the user's own file, before
// anything is started.
TEST_F(OwnModelTest, AGraphThatDoesNotVerifyIsToldWithItsPlace) {
  program_ = "wrong_model";
  const std::string job = With(
      "model:\n  linear:\n    label: clicked\n    numbers: [age, price]\n    ids: {user: 100}\n",
      "model: {wrong: {}}\n");
  for (const char* command : {"check", "train"}) {
    EXPECT_EQ(Run({command, job, "--job_dir=" + Path("run")}), 2);
    EXPECT_THAT(Output(), HasSubstr("nothing was started:\n" + job +
                                    ":18:1: model on data.train: function \"step\": "));
    EXPECT_THAT(Output(), HasSubstr("tests/integration/cli/wrong_model.cc:18: matmul: inner sizes "
                                    "differ: [?, 1] times [3, 1] has 1 against 3\n"));
    EXPECT_FALSE(FileExists(Path("run")));
  }
}

}  // namespace
}  // namespace mu
