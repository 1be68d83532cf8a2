// The models that come with Muster, asynchronously on 2 workers and 2 servers: as good as on one
// machine. By hand, some minutes. What PyTorch and scikit-learn reach stands in
// tests/reference/model_results.json; docs/jobs.md has the figures.
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "tests/testing/coordinator_run.h"
#include "tests/testing/matchers.h"

namespace mu::testing {
namespace {

constexpr int kSeeds = 3;

// The mean of the seeds that were run.
double Reference(const std::string& model) {
  const auto results = nlohmann::json::parse(std::ifstream("tests/reference/model_results.json"));
  const nlohmann::json& seeds = results.at(model);
  double sum = 0;
  for (const auto& [seed, value] : seeds.items()) sum += value.get<double>();
  return sum / static_cast<double>(seeds.size());
}

class ModelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDirectory::Create("models");
    MU_ASSERT_OK(made);
    directory_ = std::make_unique<TempDirectory>(*std::move(made));
  }

  // The report's `eval`.
  nlohmann::json Train(const std::string& job, std::vector<std::string> more = {}) {
    std::vector<std::string> args = {
        "train",   "deploy/jobs/" + job + ".yaml",
        "--local", "--workers=2",
        "--ps=2",  absl::StrCat("--job_dir=", directory_->path(), "/", ++runs_)};
    args.insert(args.end(), more.begin(), more.end());
    const auto run = RunCoordinator(args, directory_->path(), true, absl::Minutes(20));
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok()) return {};
    EXPECT_EQ(run->exit_code, 0) << run->output;
    return run->report["eval"];
  }

  // The mean of a metric over the seeds. Each run's value is printed.
  double MeanOf(const std::string& metric, const std::string& job, int64_t examples,
                const std::vector<std::string>& more) {
    double sum = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      std::vector<std::string> args = more;
      args.push_back(absl::StrCat("--set=seed=", seed));
      const nlohmann::json eval = Train(job, std::move(args));
      EXPECT_EQ(eval["examples"], examples);
      const double value = eval[metric].get<double>();
      std::cout << job << ", seed " << seed << ": " << metric << " " << value << std::endl;
      sum += value;
    }
    std::cout << job << ": mean " << sum / kSeeds << std::endl;
    return sum / kSeeds;
  }

  std::unique_ptr<TempDirectory> directory_;
  int runs_ = 0;
};

class RealDataTest : public ModelsTest {
 protected:
  void SetUp() override {
    data_ = DataDirectory();
    if (data_.empty())
      GTEST_SKIP() << "the real data sets are not here; set MUSTER_DATA to their folder";
    ModelsTest::SetUp();
  }

  // With the files of deploy/movielens_ranking.py.
  void HitsAsOftenAsPyTorch(const std::string& model, const std::string& train_file) {
    const std::string files = directory_->path() + "/ranking";
    const std::string make = absl::StrCat("python3 deploy/movielens_ranking.py ", data_,
                                          "/movielens/ratings.csv.gz ", files);
    ASSERT_EQ(std::system(make.c_str()), 0);
    // Each user's film among 100 others.
    const double hit_rate =
        MeanOf("hit_rate@10", "movielens_" + model, 610 * 101,
               {absl::StrCat("--set=data.train.files=[", files, "/", train_file, "]"),
                absl::StrCat("--set=data.eval.files=[", files, "/test.csv]")});
    EXPECT_GT(hit_rate, Reference("ranking_popularity"));
    EXPECT_GE(hit_rate, Reference("ranking_" + model) - 0.03);
  }

  std::string data_;
};

TEST_F(RealDataTest, MnistMlp) { EXPECT_GE(Train("mnist_mlp")["accuracy"].get<double>(), 0.973); }

TEST_F(RealDataTest, MnistCnn) { EXPECT_GE(Train("mnist_cnn")["accuracy"].get<double>(), 0.985); }

TEST_F(RealDataTest, Kdd99DeepFm) {
  EXPECT_GE(Train("kdd99_deepfm")["accuracy"].get<double>(), 0.995);
}

// As a network for each label.
TEST_F(RealDataTest, AdultMmoe) {
  const nlohmann::json eval = Train("adult_mmoe");
  for (const std::string task : {"income", "never_married"}) {
    std::cout << task << " " << eval[task + ".auc"] << std::endl;
    EXPECT_GE(eval[task + ".auc"].get<double>(), Reference("adult_" + task) - 0.005);
  }
}

TEST_F(RealDataTest, MovieLensTwoTower) { HitsAsOftenAsPyTorch("two_tower", "pairs.csv"); }

TEST_F(RealDataTest, MovieLensSasRec) { HitsAsOftenAsPyTorch("sasrec", "sequences.csv"); }

class ClickModelsTest : public ModelsTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ClickModelsTest, RankAsWellAsInPyTorch) {
  const std::string model = GetParam(), files = directory_->path() + "/clicks";
  const auto made = RunCoordinator(
      {"make-data", "criteo", "--rows=300000", "--test_rows=50000", "--seed=1", "--out=" + files},
      directory_->path(), false, absl::Minutes(5));
  MU_ASSERT_OK(made);
  ASSERT_EQ(made->exit_code, 0) << made->output;
  const double auc = MeanOf("auc", "criteo_" + model, 50'000,
                            {absl::StrCat("--set=data.train.files=[", files, "/train-*.tsv.gz]"),
                             absl::StrCat("--set=data.eval.files=[", files, "/test.tsv.gz]")});
  EXPECT_GE(auc, Reference("click_" + model) - 0.003);
}

INSTANTIATE_TEST_SUITE_P(All, ClickModelsTest,
                         ::testing::Values("logistic_regression", "factorization_machine", "mlp",
                                           "wide_deep", "deepfm", "dcn_v2", "nfm", "dlrm"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mu::testing
