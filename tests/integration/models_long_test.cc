// The models that come with Muster on real data, asynchronously on 2 workers and 2 servers: as good
// as on one machine. By hand, some minutes; tests/reference has the scripts of the other side and
// docs/jobs.md the figures.
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "tests/testing/coordinator_run.h"
#include "tests/testing/matchers.h"

namespace mu::testing {
namespace {

class ModelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    data_ = DataDirectory();
    if (data_.empty())
      GTEST_SKIP() << "the real data sets are not here; set MUSTER_DATA to their folder";
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

  // The mean of three seeds, with the files of deploy/movielens_ranking.py.
  double MeanHitRate(const std::string& job, const std::string& train_file) {
    const std::string files = directory_->path() + "/ranking";
    const std::string make = absl::StrCat("python3 deploy/movielens_ranking.py ", data_,
                                          "/movielens/ratings.csv.gz ", files);
    EXPECT_EQ(std::system(make.c_str()), 0);
    double sum = 0;
    for (int seed = 1; seed <= 3; ++seed) {
      const nlohmann::json eval =
          Train(job, {absl::StrCat("--set=seed=", seed),
                      absl::StrCat("--set=data.train.files=[", files, "/", train_file, "]"),
                      absl::StrCat("--set=data.eval.files=[", files, "/test.csv]")});
      EXPECT_EQ(eval["examples"], 610 * 101) << "each user's film among 100 others";
      sum += eval["hit_rate@10"].get<double>();
    }
    return sum / 3;
  }

  std::string data_;
  std::unique_ptr<TempDirectory> directory_;
  int runs_ = 0;
};

// Of how often each film was rated: tests/reference/ranking_models.py.
constexpr double kHitRateOfPopularity = 0.6115;

TEST_F(ModelsTest, MnistMlp) { EXPECT_GE(Train("mnist_mlp")["accuracy"].get<double>(), 0.973); }

TEST_F(ModelsTest, MnistCnn) { EXPECT_GE(Train("mnist_cnn")["accuracy"].get<double>(), 0.985); }

TEST_F(ModelsTest, Kdd99DeepFm) {
  EXPECT_GE(Train("kdd99_deepfm")["accuracy"].get<double>(), 0.995);
}

TEST_F(ModelsTest, AdultMmoe) {
  const nlohmann::json eval = Train("adult_mmoe");
  EXPECT_GE(eval["income.auc"].get<double>(), 0.88);
  EXPECT_GE(eval["never_married.auc"].get<double>(), 0.88);
}

TEST_F(ModelsTest, MovieLensTwoTower) {
  const double hit_rate = MeanHitRate("movielens_two_tower", "pairs.csv");
  EXPECT_GT(hit_rate, kHitRateOfPopularity);
  EXPECT_GE(hit_rate, 0.741 - 0.03) << "PyTorch: 0.741";
}

TEST_F(ModelsTest, MovieLensSasRec) {
  const double hit_rate = MeanHitRate("movielens_sasrec", "sequences.csv");
  EXPECT_GT(hit_rate, kHitRateOfPopularity);
  EXPECT_GE(hit_rate, 0.772 - 0.03) << "PyTorch: 0.772";
}

}  // namespace
}  // namespace mu::testing
