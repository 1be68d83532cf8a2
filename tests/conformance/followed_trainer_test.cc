// A program that follows the run of another program's trainer.
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/job_epoch.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/follow.h"
#include "coordinator/training/run_status.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::EvaluatedJobTest;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kBatch;
using testing::kRecords;
using testing::kSum;
using ::testing::SizeIs;
using testing::StatusIs;
using testing::WriteFile;

class FollowedTrainerTest : public EvaluatedJobTest {
 protected:
  std::string Run() const { return cluster_->directory(); }
  // One server, where the run has two.
  absl::StatusOr<std::unique_ptr<Coordinator>> Follower() {
    return InProcess({.names_log = false, .member_timeout = absl::Hours(1)});
  }
  // The mean absolute error is how many epochs were trained.
  absl::StatusOr<EvaluationSpec> DefineIn(Coordinator& own) {
    EvaluationSpec spec;
    MU_ASSIGN_OR_RETURN(
        spec.data,
        own.CreateDataset(Csv({Run() + "/numbers.csv"}).Id("id", 0, 0).Batch(kBatch).Epochs(1)));
    MU_ASSIGN_OR_RETURN(const Variable sum, own.CreateVariable({.name = "sum", .dtype = kInt64}));
    MU_ASSIGN_OR_RETURN(spec.function, own.DefineFunction("forward", [&](FunctionBuilder& f) {
      const Sym id = Cast(f.NextBatch(spec.data)["id"], kFloat32);
      f.Return("prediction", id * 0.0f + Cast(Read(sum), kFloat32) / static_cast<float>(kSum));
      f.Return("label", id * 0.0f);
    }));
    spec.outputs = ForwardOf(Task::kRegression);
    spec.metrics = {"mae"};
    return spec;
  }
  // Of other records than the numbers.
  DatasetSpec Some(const std::string& file) const {
    return Csv({JoinPath(Run(), file)}).Id("id", 0, 0).Batch(1).Epochs(1).Name("some");
  }
  // `spec`, but of these records, each of which is its own label.
  static absl::StatusOr<EvaluationSpec> WithRecords(EvaluationSpec spec, const DatasetSpec& records,
                                                    Coordinator& own) {
    MU_ASSIGN_OR_RETURN(spec.data, own.CreateDataset(records));
    MU_ASSIGN_OR_RETURN(spec.function, own.DefineFunction("some", [&](FunctionBuilder& f) {
      const Sym id = Cast(f.NextBatch(spec.data)["id"], kFloat32);
      f.Return("prediction", id);
      f.Return("label", id);
    }));
    return spec;
  }
  absl::StatusOr<std::vector<Evaluation>> FollowAll(const FollowOptions& options = {}) {
    MU_ASSIGN_OR_RETURN(const auto own, Follower());
    return Follow(
        own.get(), Run(), [this](Coordinator& there) { return DefineIn(there); }, options);
  }
};

// The run keeps its newest checkpoint alone. The first follower ends after two evaluations, and
// nobody follows for a while.
TEST_F(FollowedTrainerTest, EachCheckpointOnceAlsoWhenItIsStartedAgain) {
  std::atomic<int> stop = 0;
  absl::Status ended;
  std::thread first([&] {
    const auto own = Follower();
    MU_ASSERT_OK(own.status());
    const auto spec = DefineIn(**own);
    MU_ASSERT_OK(spec.status());
    int evaluated = 0;
    ended = Follow(own->get(), Run() + "/checkpoints", *spec,
                   {.stop = &stop,
                    .on_evaluation =
                        [&](const Evaluation&) {
                          if (++evaluated == 2) stop = 1;
                        }})
                .status();
  });
  testing::WaitWhile([&] { return !FileExists(Run() + "/followed"); });
  std::vector<std::string> saved;
  {
    TrainerOptions options = Options();
    options.checkpoints->keep = 1;
    Trainer trainer(&c(), std::move(options));
    const auto train_an_epoch = [&] {
      MU_ASSERT_OK(trainer.Fit({.epochs = static_cast<uint32_t>(saved.size()) + 1}).status());
      MU_ASSERT_OK_AND_ASSIGN(const std::string checkpoint, trainer.Save());
      saved.push_back(BaseName(checkpoint));
    };
    for (int i = 0; i < 3; ++i) train_an_epoch();
    if (HasFailure()) stop = 1;
    first.join();
    EXPECT_THAT(ended, HasCode(absl::StatusCode::kCancelled));
    for (int i = 0; i < 3; ++i) train_an_epoch();
    MU_ASSERT_OK_AND_ASSIGN(const auto kept, ListCheckpoints(Run() + "/checkpoints"));
    EXPECT_THAT(kept, SizeIs(1)) << "the others wait in RUN/followed";
  }
  std::vector<std::string> names;
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<Evaluation> all,
                          FollowAll({.on_evaluation = [&](const Evaluation& evaluation) {
                            names.push_back(evaluation.checkpoint);
                          }}));
  EXPECT_THAT(names, ElementsAreArray(saved.begin() + 2, saved.end()));
  ASSERT_THAT(all, SizeIs(6));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(all[i].checkpoint, saved[i]);
    EXPECT_EQ(all[i].examples, uint64_t{kRecords});
    EXPECT_NEAR(all[i].metrics.at("mae"), i + 1.0, 1e-5) << "of the values of then";
  }
  EXPECT_FALSE(FileExists(Run() + "/followed"));
  // A third one has nothing to do, and needs no model for that.
  MU_ASSERT_OK_AND_ASSIGN(const auto own, Follower());
  MU_ASSERT_OK_AND_ASSIGN(
      const std::vector<Evaluation> same,
      Follow(own.get(), Run(), [](Coordinator&) -> absl::StatusOr<EvaluationSpec> {
        return absl::InternalError("there is no checkpoint");
      }));
  EXPECT_THAT(same, SizeIs(6));
}

// It ends with the run, not while the trainer may yet save.
TEST_F(FollowedTrainerTest, TheRunIsOverWhenItsTrainerEnds) {
  EXPECT_FALSE(RunIsOver(Run()));
  uint32_t epochs = 0;
  {
    std::atomic<int> stop = 0;
    TrainerOptions options = Options();
    options.callbacks.on_step = [&](const TrainEvent&) { stop = 1; };
    Trainer trainer(&c(), std::move(options));
    MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                            trainer.Fit({.epochs = 100'000, .stop = &stop}));
    ASSERT_TRUE(result.train.stopped);
    epochs = result.train.epochs_begun;
    MU_ASSERT_OK(trainer.Save().status());
  }
  EXPECT_FALSE(RunIsOver(Run())) << "it was stopped";
  Restart();
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = ++epochs}).status());
    MU_ASSERT_OK(trainer.Fit({.epochs = ++epochs}).status());
    EXPECT_FALSE(RunIsOver(Run())) << "a checkpoint of its end may come";
    MU_ASSERT_OK(trainer.Save().status());
  }
  EXPECT_TRUE(RunIsOver(Run()));
  // The program is started again, with more to train.
  Restart();
  bool trained = false, over = false;
  TrainerOptions options = Options();
  options.callbacks.on_step = [&](const TrainEvent&) {
    trained = true;
    over |= RunIsOver(Run());
  };
  Trainer trainer(&c(), std::move(options));
  EXPECT_TRUE(RunIsOver(Run())) << "whoever only evaluates has a trainer, too";
  MU_ASSERT_OK(trainer.Fit({.epochs = ++epochs}).status());
  EXPECT_TRUE(trained);
  EXPECT_FALSE(over);
  MU_ASSERT_OK(trainer.Save().status());
  trainer.EndCheckpoints();
  EXPECT_TRUE(RunIsOver(Run()));
}

TEST_F(FollowedTrainerTest, ARunThatFailsForGoodIsOver) {
  WriteFile(Run() + "/bad.csv", "1\nno number\n");
  TrainerOptions options = Options();
  MU_ASSERT_OK_AND_ASSIGN(
      options.data,
      c().CreateDataset(Csv({Run() + "/bad.csv"}).Id("id", 0, 0).Batch(1).Epochs(1).Name("bad")));
  MU_ASSERT_OK_AND_ASSIGN(options.step, c().DefineFunction("bad", [&](FunctionBuilder& f) {
    f.Return("loss", ReduceMean(Cast(f.NextBatch(options.data)["id"], kFloat32)));
  }));
  {
    Trainer trainer(&c(), std::move(options));
    EXPECT_THAT(trainer.Fit({}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no number")));
    EXPECT_FALSE(RunIsOver(Run())) << "the program may go on without these records";
  }
  EXPECT_TRUE(RunIsOver(Run()));
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<Evaluation> none, FollowAll());
  EXPECT_THAT(none, IsEmpty());
}

TEST_F(FollowedTrainerTest, ARunWhoseMachinesFailIsNot) {
  TrainerOptions options = Options();
  options.callbacks.on_step = [&](const TrainEvent&) {
    c().runtime().Fail(absl::UnavailableError("a server is gone"));
  };
  {
    Trainer trainer(&c(), std::move(options));
    EXPECT_THAT(trainer.Fit({.epochs = 100'000}), HasCode(absl::StatusCode::kUnavailable));
  }
  EXPECT_FALSE(RunIsOver(Run()));
}

// As on a full disk: whoever starts the program again trains what the checkpoints lack.
TEST_F(FollowedTrainerTest, ARunWhoseEndCannotBeSavedIsNotOver) {
  const std::string folder = Run() + "/checkpoints";
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK(RemoveTree(folder));
    WriteFile(folder, "a file where the folder ought to be");
    EXPECT_THAT(trainer.Save().status().message(), HasSubstr(folder));
  }
  EXPECT_TRUE(FileExists(Run() + "/run.json"));
  EXPECT_FALSE(RunIsOver(Run()));
}

TEST_F(FollowedTrainerTest, AnEndThatTheSecondTrySavesIsTheEnd) {
  const std::string folder = Run() + "/checkpoints";
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
  MU_ASSERT_OK(RemoveTree(folder));
  WriteFile(folder, "a file where the folder ought to be");
  EXPECT_FALSE(trainer.Save().ok());
  MU_ASSERT_OK(RemoveFile(folder));
  MU_ASSERT_OK(trainer.Save().status());
  trainer.EndCheckpoints();
  EXPECT_TRUE(RunIsOver(Run()));
}

// It asks the run's folder: this coordinator need not have heard of the other one.
TEST_F(FollowedTrainerTest, WhoeverIsReplacedSaysNothingOfTheRun) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK(ClaimEpoch(Run()).status());
  }
  EXPECT_TRUE(FileExists(Run() + "/run.json"));
  EXPECT_FALSE(RunIsOver(Run()));
}

TEST_F(FollowedTrainerTest, ARunWithoutMarks) {
  TrainerOptions options = Options();
  options.marks_run = false;
  {
    Trainer trainer(&c(), std::move(options));
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
  }
  EXPECT_FALSE(FileExists(Run() + "/run.json"));
}

TEST_F(FollowedTrainerTest, AFolderThatIsNoRun) {
  TrainerOptions options = Options();
  options.checkpoints->directory = Run() + "/elsewhere";
  {
    Trainer trainer(&c(), std::move(options));
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
  }
  EXPECT_FALSE(FileExists(Run() + "/run.json"));
}

// Without that, what is created here would not fit: by default tables have other numbers of them.
TEST_F(FollowedTrainerTest, TablesGetTheirPartitionsFromTheRun) {
  const EmbeddingTableSpec table = {
      .name = "items", .rows = 100, .dim = 2, .optimizer = Sgd{.learning_rate = 0.1f}};
  EmbeddingTableSpec cut = table;
  cut.partitions = 7;
  MU_ASSERT_OK(c().CreateEmbeddingTable(cut).status());
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK(trainer.Save().status());
  }
  MU_ASSERT_OK_AND_ASSIGN(const auto own, Follower());
  MU_ASSERT_OK_AND_ASSIGN(
      const std::vector<Evaluation> all,
      Follow(own.get(), Run(), [&](Coordinator& there) -> absl::StatusOr<EvaluationSpec> {
        MU_RETURN_IF_ERROR(there.CreateEmbeddingTable(table).status());
        return DefineIn(there);
      }));
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_NEAR(all[0].metrics.at("mae"), 1, 1e-5);
}

// An entry without metrics, and the next one is evaluated.
TEST_F(FollowedTrainerTest, ADamagedCheckpointDoesNotEndIt) {
  std::vector<std::string> saved;
  {
    Trainer trainer(&c(), Options());
    for (uint32_t epochs = 1; epochs <= 2; ++epochs) {
      MU_ASSERT_OK(trainer.Fit({.epochs = epochs}).status());
      MU_ASSERT_OK_AND_ASSIGN(saved.emplace_back(), trainer.Save());
    }
  }
  WriteFile(JoinPath(saved[0], kManifestName), "no manifest");
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<Evaluation> all, FollowAll());
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_THAT(all[0].metrics, IsEmpty());
  EXPECT_NEAR(all[1].metrics.at("mae"), 2, 1e-5);
}

// What is wrong is to be put right, and the checkpoint is still to be evaluated.
TEST_F(FollowedTrainerTest, AnEvaluationThatFailsIsDoneByTheNextCall) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK(trainer.Save().status());
  }
  WriteFile(Run() + "/bad.csv", "no number\n");
  MU_ASSERT_OK_AND_ASSIGN(const auto own, Follower());
  EvaluationSpec good;
  const auto nothing = [&](Coordinator& there) -> absl::StatusOr<EvaluationSpec> {
    MU_ASSIGN_OR_RETURN(good, DefineIn(there));
    return WithRecords(good, Some("bad.csv").SkipBadRecords(), there);
  };
  EXPECT_THAT(Follow(own.get(), Run(), nothing),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("some has no good record: 1 were left out")));
  EXPECT_THAT(Follow(own.get(), Run(), nothing), HasCode(absl::StatusCode::kAlreadyExists));
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<Evaluation> all, Follow(own.get(), Run(), good));
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_NEAR(all[0].metrics.at("mae"), 1, 1e-5);
}

TEST_F(FollowedTrainerTest, AnotherCoordinatorContinuesAfterAnError) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK(trainer.Save().status());
  }
  MU_ASSERT_OK_AND_ASSIGN(const auto own, Follower());
  EXPECT_THAT(Follow(own.get(), Run(),
                     [](Coordinator&) -> absl::StatusOr<EvaluationSpec> {
                       return absl::InternalError("no room for the model");
                     }),
              HasCode(absl::StatusCode::kInternal));
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<Evaluation> all, FollowAll());
  EXPECT_THAT(all, SizeIs(1));
}

// Metrics are of what was left.
TEST_F(FollowedTrainerTest, RecordsThatAreLeftOutAreAWarning) {
  {
    Trainer trainer(&c(), Options());
    for (uint32_t epochs = 1; epochs <= 2; ++epochs) {
      MU_ASSERT_OK(trainer.Fit({.epochs = epochs}).status());
      MU_ASSERT_OK(trainer.Save().status());
    }
  }
  WriteFile(Run() + "/some.csv", "1\nno number\n3\n");
  MU_ASSERT_OK_AND_ASSIGN(const auto own, Follower());
  const auto some = [&](Coordinator& there) -> absl::StatusOr<EvaluationSpec> {
    MU_ASSIGN_OR_RETURN(EvaluationSpec spec, DefineIn(there));
    return WithRecords(std::move(spec), Some("some.csv").SkipBadRecords(), there);
  };
  std::vector<std::string> warnings;
  MU_ASSERT_OK_AND_ASSIGN(
      const std::vector<Evaluation> all,
      Follow(own.get(), Run(), some,
             {.on_warning = [&](const std::string& text) { warnings.push_back(text); }}));
  ASSERT_THAT(all, SizeIs(2));
  for (const Evaluation& evaluation : all) EXPECT_EQ(evaluation.examples, 2u);
  ASSERT_THAT(warnings, SizeIs(2)) << "one for each evaluation";
  for (const std::string& warning : warnings)
    EXPECT_THAT(warning, HasSubstr("of the records of some, 1 were left out"));
}

// It would wait for ever. What ends it is what the warning says.
TEST_F(FollowedTrainerTest, AnEndThatCannotBeReadIsAWarning) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK(trainer.Save().status());
  }
  const std::string mark = Run() + "/run.json";
  ASSERT_TRUE(RunIsOver(Run()));
  WriteFile(mark, "");
  std::vector<std::string> warnings;
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<Evaluation> all,
                          FollowAll({.on_warning = [&](const std::string& text) {
                            warnings.push_back(text);
                            WriteFile(mark, R"({"status": "done"})");
                          }}));
  EXPECT_THAT(all, SizeIs(1));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr(mark + " is empty or damaged")));
}

// It gives the code that a damaged checkpoint gives.
TEST_F(FollowedTrainerTest, DamagedDataIsNoDamagedCheckpoint) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK(trainer.Save().status());
  }
  std::ofstream(Run() + "/bad.csv.gz") << "no gzip file\n";
  MU_ASSERT_OK_AND_ASSIGN(const auto own, Follower());
  const auto damaged = [&](Coordinator& there) -> absl::StatusOr<EvaluationSpec> {
    MU_ASSIGN_OR_RETURN(EvaluationSpec spec, DefineIn(there));
    return WithRecords(std::move(spec), Some("bad.csv.gz"), there);
  };
  EXPECT_THAT(Follow(own.get(), Run(), damaged),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bad.csv.gz")));
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<Evaluation> all, FollowAll());
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_NEAR(all[0].metrics.at("mae"), 1, 1e-5);
}

}  // namespace
}  // namespace mu
