// Runs every piece of docs/program.md on clusters within this process.
#include "examples/guide/guide.h"

#include <fstream>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace guide {
namespace {

using ::mu::testing::HasCode;
using ::testing::ElementsAre;

constexpr char kVisits[] = "examples/guide/visits.csv";  // ctest runs tests at the tree's root
constexpr uint64_t kRecords = 400, kBatch = 20;

class GuideTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = mu::TempDirectory::Create("guide");
    MU_ASSERT_OK(folder);
    folder_ = std::make_unique<mu::TempDirectory>(*std::move(folder));
    Restart();
  }
  // A new coordinator of the same job.
  void Restart() {
    c_.reset();
    auto c = Launch("in_process", {.job_dir = folder_->path() + "/job"});
    MU_ASSERT_OK(c);
    c_ = *std::move(c);
  }
  std::string Path(const std::string& name) const { return folder_->path() + "/" + name; }

  std::unique_ptr<mu::TempDirectory> folder_;
  std::unique_ptr<mu::Coordinator> c_;
};

TEST_F(GuideTest, CreatesParameters) { MU_EXPECT_OK(CreateOneOfEach(*c_)); }

TEST_F(GuideTest, TrainsLayers) {
  MU_ASSERT_OK_AND_ASSIGN(const std::string summary, TrainLayers(*c_, kVisits));
  for (const char* layer : {"user ", "job ", "norm ", "mlp_0 ", "mlp_1 "}) {
    EXPECT_THAT(summary, ::testing::HasSubstr(layer));
  }
}

TEST_F(GuideTest, Trains) { MU_EXPECT_OK(TrainAndTell(*c_, kVisits, nullptr)); }

TEST_F(GuideTest, StopsOnRequest) {
  const std::atomic<int> stop = 1;
  MU_EXPECT_OK(TrainAndTell(*c_, kVisits, &stop));
  EXPECT_EQ(c_->Stats().steps, 0);
}

TEST_F(GuideTest, TrainsByALoopOfItsOwn) {
  MU_ASSERT_OK_AND_ASSIGN(const ClickModel model, ClickModel::Create(*c_));
  MU_ASSERT_OK_AND_ASSIGN(const mu::Dataset data, c_->CreateDataset(Visits(kVisits)));
  MU_ASSERT_OK_AND_ASSIGN(const mu::Function step, DefineStep(*c_, model, data));
  double loss = 10;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    MU_ASSERT_OK_AND_ASSIGN(const double now, OneEpoch(*c_, step, data, epoch));
    EXPECT_LT(now, loss);
    loss = now;
    EXPECT_EQ(c_->Stats().samples, (epoch + 1) * kRecords);
  }
  MU_EXPECT_OK(ReadAndAssign(*c_, model));
  MU_EXPECT_OK(MoveRows(*c_, model, Path("jobs.safetensors")));
  MU_ASSERT_OK_AND_ASSIGN(const mu::Tensor assigned, c_->ReadRows(model.jobs, {99}));
  EXPECT_EQ(assigned.data<float>()[3], 2);
  MU_ASSERT_OK_AND_ASSIGN(const mu::Tensor steps, c_->Read(model.steps));
  EXPECT_EQ(steps.data<int64_t>()[0], 0);
}

TEST_F(GuideTest, TrainsTwoPartsInTurn) {
  MU_ASSERT_OK_AND_ASSIGN(const ClickModel model, ClickModel::Create(*c_));
  MU_ASSERT_OK_AND_ASSIGN(const mu::Dataset data, c_->CreateDataset(Visits(kVisits)));
  MU_ASSERT_OK_AND_ASSIGN(const mu::Function tables,
                          DefinePart(*c_, model, data, "tables", {"users", "jobs"}));
  MU_ASSERT_OK_AND_ASSIGN(const mu::Function network,
                          DefinePart(*c_, model, data, "network", {"mlp*"}));
  const mu::Variable kernel = model.mlp.layers()[0].kernel();
  // The numbers of the user of the file's first line, and of the network's first layer.
  const auto values = [&](bool of_network) -> std::vector<float> {
    const absl::StatusOr<mu::Tensor> read =
        of_network ? c_->Read(kernel) : c_->ReadRows(model.users, {24});
    if (!read.ok()) ADD_FAILURE() << read.status();
    if (!read.ok()) return {};
    const auto flat = read->flat<float>();
    return {flat.begin(), flat.end()};
  };
  const auto user = values(false), layer = values(true);
  MU_ASSERT_OK_AND_ASSIGN(const double first, TrainInTurn(*c_, {tables}, 1));
  const auto trained_user = values(false);
  EXPECT_NE(trained_user, user);
  EXPECT_EQ(values(true), layer) << "it was not the network's turn";
  MU_ASSERT_OK(TrainInTurn(*c_, {network}, 1));
  EXPECT_EQ(values(false), trained_user) << "it was not the tables' turn";
  EXPECT_NE(values(true), layer);
  MU_ASSERT_OK_AND_ASSIGN(const double last, TrainInTurn(*c_, {tables, network}, 4));
  EXPECT_LT(last, first);
  EXPECT_EQ(c_->Stats().samples, 10 * kRecords) << "the turns share the data's passes";
}

TEST_F(GuideTest, StopsEarly) {
  MU_ASSERT_OK_AND_ASSIGN(const uint32_t best, TrainWhileItHelps(*c_, kVisits, Path("best")));
  EXPECT_GE(best, 1);
  EXPECT_LE(best, 20);
}

TEST_F(GuideTest, FitsWhileItHelps) {
  MU_ASSERT_OK_AND_ASSIGN(const mu::FitResult first,
                          FitWhileItHelps(*c_, kVisits, Path("checkpoints")));
  ASSERT_FALSE(first.evaluations.empty());
  EXPECT_GE(first.evaluations.size(), first.best.size());
  // A program that is started again finds that there is nothing left.
  Restart();
  MU_ASSERT_OK_AND_ASSIGN(const mu::FitResult second,
                          FitWhileItHelps(*c_, kVisits, Path("checkpoints")));
  EXPECT_EQ(second.train.steps, first.train.steps);
  EXPECT_EQ(second.evaluations.size(), first.evaluations.size());
  ASSERT_TRUE(second.early_stopping.has_value());
  EXPECT_EQ(second.early_stopping->best, first.early_stopping->best);
}

TEST_F(GuideTest, FollowsARun) {
  MU_ASSERT_OK_AND_ASSIGN(const mu::FitResult fit,
                          FitWhileItHelps(*c_, kVisits, Path("run/checkpoints")));
  Restart();
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<mu::Evaluation> evaluations,
                          EvaluateEach(*c_, kVisits, Path("run")));
  ASSERT_FALSE(evaluations.empty());
  ASSERT_TRUE(fit.last.has_value());
  // The last checkpoint has the values of the best evaluation.
  for (const char* metric : {"logloss", "auc"})
    EXPECT_NEAR(evaluations.back().metrics.at(metric), fit.last->metrics.at(metric), 1e-6);
}

TEST_F(GuideTest, CrossesAndBuckets) {
  MU_ASSERT_OK_AND_ASSIGN(const mu::Dataset data, c_->CreateDataset(Visits(kVisits).Epochs(1)));
  MU_ASSERT_OK_AND_ASSIGN(const mu::Function step, DefineCrosses(*c_, data));
  MU_ASSERT_OK_AND_ASSIGN(const mu::FunctionResult result, c_->Schedule(step).Fetch());
  MU_ASSERT_OK_AND_ASSIGN(const mu::Tensor ids, result.Get(0, "ids"));
  // The file's first two lines: user 24, age 37, hour 9; user 19, age 59, hour 19.
  const auto id = ids.flat<int64_t>();
  EXPECT_EQ(id[0], 2);
  EXPECT_EQ((id[1] - 4) % 24, 9);
  EXPECT_EQ(id[2], 4 + 2400 + 4);
  EXPECT_EQ(id[4], 3);
  EXPECT_EQ((id[5] - 4) % 24, 19);
  EXPECT_EQ((id[5] - 4) / 24, (id[1] - 4) / 24) << "both are artists";
  EXPECT_EQ(id[6], 4 + 2400 + 9);
  for (const int i : {3, 7}) {
    EXPECT_GE(id[i], 4 + 2400 + 10);
    EXPECT_LT(id[i], 4 + 2400 + 10 + 1000);
  }
  EXPECT_NE(id[3], id[7]) << "another user, another quarter of the day";
}

TEST_F(GuideTest, CountsStepsByWorker) {
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> steps, StepsByWorker(*c_));
  EXPECT_EQ(steps[0] + steps[1], 50);
}

TEST_F(GuideTest, ReadsLists) {
  MU_ASSERT_OK_AND_ASSIGN(const mu::Dataset data, c_->CreateDataset(VisitsWithTags(kVisits)));
  MU_ASSERT_OK_AND_ASSIGN(const mu::Function step, DefineTagged(*c_, data));
  MU_EXPECT_OK(mu::Train(*c_, step, data, {}));
}

TEST_F(GuideTest, ReadsClickLogs) {
  std::ofstream file(Path("clicks.tsv"));
  for (int i = 0; i < 100; ++i) {
    file << i % 2;
    for (int k = 0; k < 13; ++k) file << '\t' << k;
    for (int k = 0; k < 26; ++k) file << "\t68fd1e64";
    file << '\n';
  }
  file.close();
  MU_ASSERT_OK_AND_ASSIGN(const mu::Dataset data, Clicks(*c_, Path("clicks*")));
  EXPECT_THAT(c_->BatchesInEpoch(data), ::testing::Eq(absl::StatusOr<uint64_t>(1)));
}

TEST_F(GuideTest, CountsEpochs) { MU_EXPECT_OK(CountRecords(*c_, kVisits)); }

TEST_F(GuideTest, EveryWorkerReadsByItself) {
  EXPECT_THAT(EveryWorkerByItself(*c_, kVisits),
              ::testing::Eq(absl::StatusOr<uint64_t>(2 * kRecords)));
}

TEST_F(GuideTest, ContinuesWhereItStopped) {
  MU_ASSERT_OK_AND_ASSIGN(
      const mu::TrainResult first,
      TrainOrContinue(*c_, kVisits, Path("checkpoints"), {.epochs = 3, .max_steps = 7}));
  EXPECT_EQ(first.steps, 7);
  Restart();
  MU_ASSERT_OK_AND_ASSIGN(const mu::TrainResult second,
                          TrainOrContinue(*c_, kVisits, Path("checkpoints"), {.epochs = 3}));
  EXPECT_EQ(second.steps, 3 * kRecords / kBatch);
  EXPECT_EQ(second.samples, 3 * kRecords);
}

TEST_F(GuideTest, ContinuesWithItsOwnState) {
  MU_ASSERT_OK(EpochsOrContinue(*c_, kVisits, Path("checkpoints"), 2));
  EXPECT_EQ(c_->Stats().samples, 2 * kRecords);
  Restart();
  MU_ASSERT_OK(EpochsOrContinue(*c_, kVisits, Path("checkpoints"), 3));
  EXPECT_EQ(c_->Stats().samples, 3 * kRecords) << "of the whole job";
}

TEST_F(GuideTest, FailsAndGoesOn) { MU_EXPECT_OK(FailAndGoOn(*c_, kVisits)); }

TEST_F(GuideTest, ReportsWhoIsAtFault) {
  EXPECT_EQ(Report(absl::OkStatus()), 0);
  EXPECT_EQ(Report(absl::InvalidArgumentError("no such column")), 2);
  EXPECT_EQ(Report(absl::UnavailableError("server 1 is lost")), 4);
}

// [testing]
// One worker that has one function at a time: two runs give the same bits.
absl::StatusOr<std::vector<float>> WeightsAfter(uint32_t epochs) {
  MU_ASSIGN_OR_RETURN(auto c, mu::InProcess({.workers = 1,
                                             .ps = 1,
                                             .seed = 7,
                                             .default_optimizer = mu::Sgd{.learning_rate = 0.1f},
                                             .functions_in_flight = 1}));
  MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(*c));
  MU_ASSIGN_OR_RETURN(mu::Dataset data,
                      c->CreateDataset(Visits("examples/guide/visits.csv").Shuffle(100)));
  MU_ASSIGN_OR_RETURN(mu::Function step, DefineStep(*c, model, data));
  MU_ASSIGN_OR_RETURN(mu::TrainResult result, mu::Train(*c, step, data, {.epochs = epochs}));
  if (result.samples != epochs * 400) return absl::InternalError("not each record once an epoch");
  MU_ASSIGN_OR_RETURN(mu::Tensor kernel, c->Read(model.mlp.layers()[0].kernel()));
  const auto values = kernel.flat<float>();
  return std::vector<float>(values.begin(), values.end());
}

TEST(ClickModelTest, LearnsTheSameTwice) {
  const auto first = WeightsAfter(2), second = WeightsAfter(2), untrained = WeightsAfter(0);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(untrained.ok()) << untrained.status();
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, *untrained);
}
// [/testing]

}  // namespace
}  // namespace guide
