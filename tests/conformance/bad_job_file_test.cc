// A job file that is wrong, through the real coordinator.
#include <gmock/gmock.h>

#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

using ConformanceCli = testing::CliTest;

TEST_F(ConformanceCli, BadJobFile) {
  const auto expect_refused = [&](const char* what, const std::string& job,
                                  const std::vector<std::string>& says) {
    SCOPED_TRACE(what);
    for (const char* command : {"check", "train"}) {
      EXPECT_EQ(Run({command, job, "--job_dir=" + Path("run")}), 2) << command;
      for (const std::string& problem : says)
        EXPECT_THAT(Output(), HasSubstr("\n" + job + ":" + problem + "\n")) << command;
      EXPECT_THAT(Output(),
                  HasSubstr(absl::StrCat(says.size(), says.size() == 1 ? " problem" : " problems",
                                         "; nothing was started:\n")))
          << command;
    }
    EXPECT_FALSE(FileExists(Path("run")));
  };
  const std::string key =
      "13:19: there is no key `learning_rat` under `optimizer.sgd`; did you mean `learning_rate`?";
  const std::string top = "13:1: there is no key `optimiser` in a job; did you mean `optimizer`?";
  const std::string number =
      "12:11: `model.matrix_factorization.dim` must be a whole number, not `four`";
  const std::string list = "14:20: `training.epochs` must be a whole number, not a list";
  const std::string file =
      "5:13: there is no file " + Path("dta.csv") + "; did you mean `data.csv`?";
  expect_refused("unknown key", Job({{"learning_rate", "learning_rat"}}), {key});
  expect_refused("unknown key at the top", Job({{"optimizer:", "optimiser:"}}), {top});
  expect_refused("wrong type", Job({{"dim: 4", "dim: four"}}), {number});
  expect_refused("a list for a number", Job({{"epochs: 1", "epochs: [1]"}}), {list});
  expect_refused("missing file", Job({{"[data.csv]", "[dta.csv]"}}), {file});
  expect_refused("all of them at once",
                 Job({{"[data.csv]", "[dta.csv]"},
                      {"dim: 4", "dim: four"},
                      {"learning_rate", "learning_rat"},
                      {"epochs: 1", "epochs: [1]"}}),
                 {file, number, key, list});
  // The same job without a mistake runs.
  EXPECT_EQ(Run({"train", Job(), "--job_dir=" + Path("run")}), 0) << Output();
}

}  // namespace
}  // namespace mu
