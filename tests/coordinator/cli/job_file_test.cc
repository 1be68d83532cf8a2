// What a right job file becomes: values, defaults, overrides, environment, paths, users' models.
#include "coordinator/cli/job_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "common/env/file.h"
#include "coordinator/cli/job_paths.h"
#include "tests/coordinator/cli/job_text.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::GoodCsvJob;
using testing::GoodJob;
using ::testing::HasSubstr;
using testing::NoEnvironment;
using testing::ProblemsOf;
using testing::ProblemsWithSet;
using testing::With;

muster::JobProto Parse(const std::string& text,
                       JobFileOptions options = {.environment = NoEnvironment()}) {
  ProblemList problems;
  JobFile file = ParseJob(text, "job.yaml", ".", options, &problems);
  EXPECT_EQ(problems.ToString(), "");
  return file.job;
}

TEST(JobFileTest, ReadsEveryKindOfValue) {
  const muster::JobProto job = Parse(GoodJob());
  EXPECT_EQ(job.name(), "criteo-dlrm");
  EXPECT_EQ(job.seed(), 1u);
  EXPECT_EQ(job.data().train().shuffle().records(), 1000u);
  EXPECT_EQ(job.model().dlrm().hash_buckets(), 1000);
  ASSERT_EQ(job.model().dlrm().bottom_mlp_size(), 2);
  EXPECT_EQ(job.model().dlrm().bottom_mlp(1), 16u);
  EXPECT_FLOAT_EQ(job.optimizer().adagrad().learning_rate(), 0.02f);
  EXPECT_EQ(job.training().steps_per_function(), "auto");
}

TEST(JobFileTest, FillsInDefaults) {
  const muster::JobProto job = Parse(GoodCsvJob());
  EXPECT_EQ(job.training().epochs(), 1u);
  EXPECT_EQ(job.training().batch_size(), 512u);
  EXPECT_EQ(job.training().eval_batch_size(), 512u);
  EXPECT_EQ(job.training().steps_per_function(), "auto");
  EXPECT_EQ(job.training().functions_in_flight(), 2u);
  EXPECT_EQ(job.data().train().on_bad_record(), "fail");
  EXPECT_TRUE(job.data().train().header());
  EXPECT_EQ(job.data().train().delimiter(), ",");
  EXPECT_EQ(job.data().train().columns(2).field(), "rating");
  EXPECT_EQ(job.data().train().columns(0).field(), "userId");
}

TEST(JobFileTest, ReadsTheLargestGap) {
  const std::vector<std::pair<const char*, double>> gaps = {
      {"0.25", 0.25}, {"1", 1.0}, {"1e-6", 1e-6}};
  for (const auto& [text, gap] : gaps) {
    const muster::JobProto job = Parse(
        GoodJob(),
        {.overrides = {absl::StrCat("training.max_gap=", text)}, .environment = NoEnvironment()});
    EXPECT_EQ(job.training().max_gap(), gap);
  }
  EXPECT_FALSE(Parse(GoodJob()).training().has_max_gap());
}

TEST(JobFileTest, OverridesReplaceAndAdd) {
  const muster::JobProto job =
      Parse(GoodJob(), {.overrides = {"training.batch_size=64", "model.dlrm.bottom_mlp=[8, 16]",
                                      "training.max_steps=5",
                                      "optimizer={sgd: {learning_rate: 0.5}}", "job_dir=/tmp/x"},
                        .environment = NoEnvironment()});
  EXPECT_EQ(job.training().batch_size(), 64u);
  EXPECT_EQ(job.model().dlrm().bottom_mlp(0), 8u);
  EXPECT_EQ(job.training().max_steps(), 5u);
  EXPECT_FLOAT_EQ(job.optimizer().sgd().learning_rate(), 0.5f);
  EXPECT_EQ(job.job_dir(), "/tmp/x");
}

TEST(JobFileTest, OverridesHaveTheirOwnPlace) {
  EXPECT_EQ(
      ProblemsWithSet(GoodJob(), {"training.epoch=2"}),
      "--set training.epoch: there is no key `epoch` under `training`; did you mean `epochs`?\n");
  EXPECT_EQ(ProblemsWithSet(GoodJob(), {"training.epochs=0"}),
            "--set training.epochs: `training.epochs` must be at least 1; leave it out for 1\n");
  EXPECT_EQ(ProblemsWithSet(GoodJob(), {"seed=a"}),
            "--set seed: `seed` must be a whole number, not `a`\n");
  EXPECT_EQ(ProblemsWithSet(GoodJob(), {"seed"}),
            "--set seed: there is no value; write --set key.key=value\n");
  EXPECT_EQ(ProblemsWithSet(GoodJob(), {".x=1"}),
            "--set .x: there is an empty key in it; write --set key.key=value\n");
  EXPECT_EQ(ProblemsWithSet(GoodJob(), {"seed.x=1"}),
            "--set seed.x: `x` cannot be set inside of `1`; set the whole of it, for example --set "
            "a.b=[1, 2]\n");
  EXPECT_EQ(ProblemsWithSet(GoodJob(), {"data.train.files=[a"}).substr(0, 41),
            "--set data.train.files: this is not YAML:");
}

// The range is the key's, not that of its type.
TEST(JobFileTest, ANumberBeyondItsTypeIsToldTheKeysRange) {
  const auto said = [](const std::string& key, const std::string& number) {
    std::string text = ProblemsWithSet(GoodJob(), {key + "=" + number});
    const std::string begin = "--set " + key + ": `" + key + "` ";
    EXPECT_EQ(text.substr(0, begin.size()), begin);
    return text.substr(begin.size());
  };
  EXPECT_EQ(said("training.batch_size", "-3"), "must be from 1 to 1048576, not -3\n");
  EXPECT_EQ(said("training.batch_size", "0"), "must be from 1 to 1048576, not 0\n");
  EXPECT_EQ(said("training.eval_batch_size", "5000000000"),
            "must be from 1 to 1048576, not 5000000000\n");
  EXPECT_EQ(said("training.epochs", "-3"), "must be at least 1, not -3; leave it out for 1\n");
  EXPECT_EQ(said("training.epochs", "5000000000"), "must be at most 4294967295, not 5000000000\n");
  for (const char* number : {"0", "-3", "65", "5000000000"}) {
    EXPECT_EQ(said("training.functions_in_flight", number),
              absl::StrCat("must be from 1 to 64, not ", number, "; 2 hides the round trip\n"));
  }
  EXPECT_EQ(said("model.dlrm.embedding_dim", "-1"),
            "must be from 1 to 65536, not -1; 16 is usual\n");
  // 0 is allowed there.
  EXPECT_EQ(said("training.eval_batch_size", "-3"), "must not be negative, but is -3\n");
  EXPECT_EQ(said("training.max_steps", "-3"), "must not be negative, but is -3\n");
  EXPECT_EQ(said("seed", "-3"), "must not be negative, but is -3\n");
}

TEST(JobFileTest, OnlyKeysThatTheModelTakesAreOffered) {
  const auto offered = [](const std::string& model) {
    return ProblemsWithSet(GoodJob(), {"model={" + model +
                                       ": {features: [{column: dense}], "
                                       "label_column: label, hidden: [4], zzz: 3}}"});
  };
  EXPECT_THAT(offered("mlp"),
              HasSubstr("it may be one of: features, label_column, embedding_dim, hidden, "
                        "classes, product\n"));
  EXPECT_THAT(offered("dcn_v2"), HasSubstr("hidden, cross_layers, classes, product\n"));
  EXPECT_THAT(offered("deepfm"), HasSubstr("embedding_dim, hidden\n"));
  EXPECT_THAT(ProblemsWithSet(GoodJob(), {"model={logistic_regression: 1}"}),
              HasSubstr("its keys are: features, label_column, classes, product\n"));
}

TEST(JobFileTest, ExpandsTheEnvironment) {
  const Environment environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "SET") return "value";
    if (name == "EMPTY") return "";
    if (name == "NUMBER") return "7";
    return std::nullopt;
  };
  const auto name = [&](const std::string& text) {
    return Parse(With(GoodJob(), "criteo-dlrm", text), {.environment = environment}).name();
  };
  EXPECT_EQ(name("\"${SET}\""), "value");
  EXPECT_EQ(name("\"a-${SET}-${UNSET:-b}${EMPTY:-c}\""), "a-value-bc");
  EXPECT_EQ(name("a${EMPTY}"), "a");
  const muster::JobProto job =
      Parse(With(GoodJob(), "epochs: 1", "epochs: \"${NUMBER}\""), {.environment = environment});
  EXPECT_EQ(job.training().epochs(), 7u);
  EXPECT_EQ(*ExpandEnvironment("$${SET}", environment), "${SET}");
  EXPECT_EQ(*ExpandEnvironment("$SET {} $", environment), "$SET {} $");
}

TEST(JobFileTest, PathsAreRelativeToTheFileAndPatternsExpand) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("job_file_test"));
  MU_ASSERT_OK(MakeDirectories(JoinPath(directory.path(), "data")));
  for (const char* name : {"data/b.tsv", "data/a.tsv", "data/c.txt"}) {
    MU_ASSERT_OK(WriteFileAtomic(JoinPath(directory.path(), name), "x"));
  }
  const std::string path = JoinPath(directory.path(), "job.yaml");
  MU_ASSERT_OK(WriteFileAtomic(path, With(GoodJob(), "[tests/coordinator/cli/CMakeLists.txt]",
                                          "[\"data/*.tsv\", data/c.txt, data/a.tsv]")));
  ProblemList problems;
  const JobFile file =
      LoadJobFile(path, {.overrides = {"job_dir=out"}, .environment = NoEnvironment()}, &problems);
  EXPECT_EQ(problems.ToString(), "");
  ASSERT_EQ(file.job.data().train().files_size(), 3);
  EXPECT_EQ(file.job.data().train().files(0), JoinPath(directory.path(), "data/a.tsv"));
  EXPECT_EQ(file.job.data().train().files(1), JoinPath(directory.path(), "data/b.tsv"));
  EXPECT_EQ(file.job.data().train().files(2), JoinPath(directory.path(), "data/c.txt"));
  EXPECT_EQ(file.job.job_dir(), JoinPath(directory.path(), "out"));
}

TEST(JobFileTest, FilesThatCannotBeAJob) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("job_file_test"));
  ProblemList problems;
  LoadJobFile(JoinPath(directory.path(), "no.yaml"), {}, &problems);
  EXPECT_EQ(problems.ToString(),
            directory.path() +
                "/no.yaml: there is no such job file; check the path; deploy/jobs has "
                "examples\n");
  const std::string large = JoinPath(directory.path(), "large.yaml");
  MU_ASSERT_OK(WriteFileAtomic(large, std::string(2 << 20, 'x')));
  ProblemList more;
  LoadJobFile(large, {}, &more);
  EXPECT_NE(more.ToString().find("is it a data file?"), std::string::npos);
  ProblemList folder;
  LoadJobFile(directory.path(), {}, &folder);
  EXPECT_EQ(folder.size(), 1u);
}

TEST(JobFileTest, BytesThatAreNoText) {
  EXPECT_EQ(ProblemsOf("name: x\n# caf\xC3\xA9 and caf\xE9\n"),
            "job.yaml:2:16: this is not UTF-8; save the job file, or write the value, as UTF-8\n");
  EXPECT_EQ(ProblemsOf("\xFF").substr(0, 16), "job.yaml:1:1: th");
  EXPECT_EQ(ProblemsWithSet(GoodJob(), {"name=caf\xE9"}).substr(0, 24), "--set: this is not UTF-8");
}

TEST(JobFileTest, DataOfOtherCommandsNeedNotExist) {
  const std::string text =
      With(GoodJob(), "model:", "  eval: {format: criteo_tsv, files: [nowhere.tsv]}\nmodel:");
  EXPECT_NE(ProblemsOf(text), "");  // train evaluates at its end
  ProblemList problems;
  ParseJob(With(text, "CMakeLists.txt", "missing.txt"), "job.yaml", ".",
           {.use = JobUse::kEval, .environment = NoEnvironment()}, &problems);
  EXPECT_EQ(problems.size(), 1u);
  EXPECT_NE(problems.ToString().find("nowhere.tsv"), std::string::npos);
  ProblemList predict;
  ParseJob(GoodJob(), "job.yaml", ".", {.use = JobUse::kPredict, .environment = NoEnvironment()},
           &predict);
  EXPECT_NE(predict.ToString().find("`data.predict` is missing"), std::string::npos);
}

TEST(JobFileTest, UsersModelsKeepTheirMapAsJson) {
  std::string text = GoodJob();
  const size_t from = text.find("  dlrm:"), to = text.find("optimizer:");
  text.replace(from, to - from,
               "  my_model: {dim: 8, rate: 0.5, on: true, name: \"7\", list: [a, 1], none: ~}\n");
  JobFileOptions options = {.models = {"dlrm", "my_model"}, .environment = NoEnvironment()};
  const muster::JobProto job = Parse(text, options);
  EXPECT_EQ(job.model().custom().name(), "my_model");
  EXPECT_EQ(job.model().custom().json(),
            R"({"dim":8,"list":["a",1],"name":"7","none":null,"on":true,"rate":0.5})");
  EXPECT_EQ(ProblemsOf(With(text, "my_model", "my_models"), options),
            "job.yaml:9:3: there is no key `my_models` under `model`; did you mean `my_model`?\n");
  EXPECT_EQ(ProblemsOf(With(text, "my_model", "custom"), options).substr(0, 46),
            "job.yaml:9:3: there is no key `custom` under `");
  options.overrides = {"model.my_model.dim=9"};
  EXPECT_NE(Parse(text, options).model().custom().json().find("\"dim\":9"), std::string::npos);
}

// Whatever stands in the file: problems or a job, never a crash.
TEST(JobFileTest, MutatedFilesNeverCrash) {
  const std::string pieces[] = {
      "{",   "}",         "[",  "]",      ": ",    "- ",    "\n",
      "  ",  "&a ",       "*a", "!!str ", "\"",    "'",     "|\n",
      ">\n", "#",         "? ", "<<: ",   "---\n", "...\n", "${",
      "}",   "%YAML 9\n", "\t", "\xff",   "~",     "010",   std::string(1, '\0')};
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string text = seed % 2 ? GoodJob() : GoodCsvJob();
    const uint32_t changes = 1 + random() % 6;
    for (uint32_t i = 0; i < changes; ++i) {
      const size_t at = random() % (text.size() + 1);
      switch (random() % 4) {
        case 0:
          text.insert(at, pieces[random() % std::size(pieces)]);
          break;
        case 1:
          text.erase(at, random() % 12);
          break;
        case 2:
          if (at < text.size()) text[at] = static_cast<char>(random());
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
      }
    }
    ProblemList problems;
    ParseJob(text, "job.yaml", ".", {.models = {"mine"}, .environment = NoEnvironment()},
             &problems);
    for (const Problem& problem : problems.problems()) {
      ASSERT_FALSE(problem.message.empty());
      ASSERT_FALSE(problem.place.source.empty());
    }
  }
}

// Would be waited for without end.
TEST(JobFileTest, PipesAndDevicesAreRefused) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("job_file_test"));
  const std::string pipe = JoinPath(directory.path(), "pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string file = "tests/coordinator/cli/CMakeLists.txt";
  const std::string said =
      pipe + " is a pipe, a socket or a device; data is read several times: write it into a file\n";
  EXPECT_THAT(ProblemsOf(With(GoodCsvJob(), file, pipe)), HasSubstr(said));
  EXPECT_THAT(ProblemsOf(With(GoodCsvJob(), file, JoinPath(directory.path(), "p*"))),
              HasSubstr(said));
  EXPECT_THAT(ProblemsOf(With(GoodCsvJob(), file, "/dev/zero")), HasSubstr("/dev/zero is a pipe"));
  EXPECT_THAT(ProblemsOf(With(GoodCsvJob(), file, pipe),
                         {.files_elsewhere = true, .environment = NoEnvironment()}),
              HasSubstr(said));
  EXPECT_THAT(ProblemsOf(With(GoodCsvJob(), "kind: id, buckets: 10",
                              "kind: vocabulary, vocabulary: " + pipe)),
              HasSubstr(said));
  ProblemList problems;
  LoadJobFile(pipe, {.environment = NoEnvironment()}, &problems);
  EXPECT_EQ(problems.ToString(), pipe +
                                     ": a job file cannot be a pipe, a socket or a device; it may "
                                     "be read again to continue the job: save it as a file\n");
}

TEST(JobFileTest, AFileOfSeveralNamesIsReadOnce) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("job_file_test"));
  const auto path = [&](const char* name) { return JoinPath(directory.path(), name); };
  for (const char* name : {"t.csv", "u.csv"}) MU_ASSERT_OK(WriteFileAtomic(path(name), name));
  ASSERT_EQ(::symlink("u.csv", path("v.csv").c_str()), 0);
  const std::string file = "tests/coordinator/cli/CMakeLists.txt";
  const auto files = [&](const std::vector<const char*>& names) {
    std::string written;
    for (const char* name : names) written += (written.empty() ? "\"" : ", \"") + path(name) + "\"";
    const muster::JobProto job = Parse(With(GoodCsvJob(), file, written));
    return std::vector<std::string>(job.data().train().files().begin(),
                                    job.data().train().files().end());
  };
  EXPECT_EQ(files({"t.csv", "./t.csv", "t.csv"}), std::vector<std::string>{path("t.csv")});
  EXPECT_EQ(files({"*.csv", "u*", "./*"}),
            (std::vector<std::string>{path("t.csv"), path("u.csv")}));
  EXPECT_EQ(files({"v.csv", "u.csv"}), std::vector<std::string>{path("v.csv")});
}

TEST(JobFileTest, FilesInLockstepAreRepeatedTogether) {
  muster::SourceProto source;
  for (const char* file : {"a", "b", "./a"}) source.add_files(file);
  for (int i = 0; i < 3; ++i) source.add_labels("l");
  ProblemList problems;
  ResolveFiles("data.train", "/no", FilesAre::kElsewhere, /*vocabularies_exist=*/false, KeyPlaces(),
               &source, &problems);
  EXPECT_EQ(problems.ToString(), "");
  EXPECT_THAT(source.files(), ::testing::ElementsAre("/no/a", "/no/b"));
  EXPECT_THAT(source.labels(), ::testing::ElementsAre("/no/l", "/no/l"));
}

TEST(JobFileTest, LinksThatLeadToNothing) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("job_file_test"));
  const std::string link = JoinPath(directory.path(), "broken.csv");
  const std::string folder = JoinPath(directory.path(), "folder");
  ASSERT_EQ(::symlink("../gone.csv", link.c_str()), 0);
  ASSERT_EQ(::symlink("/no/such", folder.c_str()), 0);
  const std::string file = "tests/coordinator/cli/CMakeLists.txt";
  const auto said = [](const std::string& path, const std::string& target) {
    return path + " is a link to " + target +
           ", which does not exist: correct the link, or name the file itself\n";
  };
  EXPECT_EQ(ProblemsOf(With(GoodCsvJob(), file, link)),
            "job.yaml:5:13: there is no file " + link + "; " + said(link, "../gone.csv"));
  EXPECT_THAT(ProblemsOf(With(GoodCsvJob(), file, JoinPath(directory.path(), "b*"))),
              HasSubstr(said(link, "../gone.csv")));
  EXPECT_THAT(ProblemsOf(With(GoodCsvJob(), file, JoinPath(folder, "x.csv"))),
              HasSubstr(said(folder, "/no/such")));
  ProblemList problems;
  LoadJobFile(link, {.environment = NoEnvironment()}, &problems);
  EXPECT_EQ(problems.ToString(),
            link + ": there is no such job file; " + said(link, "../gone.csv"));
}

}  // namespace
}  // namespace mu
