// Every call of the API, each in a few lines: all_calls in_process|local|HOST:PORT
//
// It makes its own data, trains a small model of ratings, and checks what it reads back; then other
// coordinators evaluate the first one's checkpoint, and continue the job from it.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "coordinator/frontend/layers.h"
#include "examples/cluster.h"

namespace {

constexpr int kUsers = 50;
constexpr int kItems = 40;

constexpr int kRatings = 4000;  // nine of ten to train on
constexpr int kClicks = 100;
constexpr uint32_t kEpochs = 3;

void WriteRatings(const std::string& path) {
  std::ofstream file(path);
  file << "user,item,rating,genres\n";
  for (int i = 0; i < kRatings; ++i) {
    file << i % kUsers << ',' << i * 7 % kItems << ',' << 1 + (i % kUsers + i * 7 % kItems) % 5
         << ',' << i % 6 << '|' << i % 11 << '\n';
  }
}

// Label, 13 integers, 26 categoricals.
void WriteClicks(const std::string& path) {
  std::ofstream file(path);
  for (int i = 0; i < kClicks; ++i) {
    file << i % 2;
    for (int k = 0; k < 13; ++k) file << '\t' << k;
    for (int k = 0; k < 26; ++k) file << '\t' << std::hex << i * k << std::dec;
    file << '\n';
  }
}

#define EXPECT(condition) \
  if (!(condition))       \
  return absl::InternalError(std::string(__FILE__ ": does not hold: ") + #condition)

// Variables and tables: initial values, optimizers (of their own or the coordinator's default),
// partitioners.
struct Parameters {
  mu::EmbeddingTable users, items, genres;
  mu::Variable scale, counter;
  mu::Dense dense;
};

absl::StatusOr<Parameters> CreateParameters(mu::Coordinator& c) {
  Parameters p;
  MU_ASSIGN_OR_RETURN(p.users,
                      c.CreateEmbeddingTable({.name = "users",
                                              .rows = kUsers,
                                              .dim = 8,
                                              .initializer = mu::Normal{0.0f, 0.05f},
                                              .optimizer = mu::Adagrad{.learning_rate = 0.1f}}));
  MU_ASSIGN_OR_RETURN(p.items,
                      c.CreateEmbeddingTable({.name = "items",
                                              .rows = kItems,
                                              .dim = 8,
                                              .initializer = mu::Uniform{-0.05f, 0.05f},
                                              .optimizer = mu::Adagrad{.learning_rate = 0.1f},
                                              .partitions = 8}));
  // Without an optimizer of its own: the coordinator's default, here Sgd.
  MU_ASSIGN_OR_RETURN(p.genres, c.CreateEmbeddingTable({.name = "genres", .rows = 16, .dim = 1}));
  MU_ASSIGN_OR_RETURN(p.scale, c.CreateVariable({.name = "scale",
                                                 .shape = {},
                                                 .initializer = mu::Constant{1.0f},
                                                 .optimizer = mu::Sgd{.learning_rate = 0.01f}}));
  MU_ASSIGN_OR_RETURN(
      p.counter, c.CreateVariable({.name = "counter", .dtype = mu::kInt64, .trainable = false}));
  MU_ASSIGN_OR_RETURN(p.dense, mu::Dense::Create(c, "dense", 16, 1, {.optimizer = mu::Sgd{0.05f}}));
  return p;
}

mu::Sym Predict(const Parameters& p, const mu::BatchRef& batch) {
  auto user = mu::EmbeddingLookup(p.users, batch["user"]);
  auto item = mu::EmbeddingLookup(p.items, batch["item"]);
  auto bag = mu::EmbeddingBag(p.genres, batch["genres.values"], batch["genres.splits"],
                              mu::Combiner::kMean);
  auto mixed = p.dense(mu::Concat({user, item}, 1));
  return mu::Reshape(mixed + bag, {-1}) * mu::Read(p.scale) + mu::ReduceSum(user * item, {1});
}

// One file as train and test, by the index of each record.
mu::DatasetSpec Ratings(const std::string& folder) {
  muster::CsvColumnProto genres;
  genres.set_name("genres");
  genres.set_index(-1);
  genres.set_kind(muster::CsvColumnProto::ID);
  genres.set_separator("|");
  return mu::Csv({folder + "/ratings.csv"})
      .Header()
      .Id("user", kUsers)
      .Id("item", kItems)
      .Number("rating")
      .Column(genres)
      .Batch(32);
}

absl::StatusOr<mu::Dataset> TrainingData(mu::Coordinator& c, const std::string& folder) {
  return c.CreateDataset(Ratings(folder)
                             .Name("train")
                             .Records(10, {0, 1, 2, 3, 4, 5, 6, 7, 8})
                             .Shuffle(1000)
                             .Epochs(kEpochs));
}

absl::StatusOr<mu::Dataset> TestData(mu::Coordinator& c, const std::string& folder) {
  return c.CreateDataset(Ratings(folder).Name("test").Records(10, {9}).Epochs(1));
}

absl::StatusOr<mu::Function> DefineForward(mu::Coordinator& c, const Parameters& p,
                                           const mu::Dataset& test) {
  return c.DefineFunction("forward", [&](mu::FunctionBuilder& f) {
    mu::BatchRef batch = f.NextBatch(test);
    f.Return("prediction", Predict(p, batch));
    f.Return("label", batch["rating"]);
  });
}

absl::Status Run(mu::Coordinator& c, const std::string& folder) {
  // From now on the loss of a server does not end the job.
  c.EnableRecovery(folder + "/checkpoints", mu::RecoveryMode::kAll);
  // No step starts far ahead of the oldest one that has not been applied.
  c.BoundStaleness(1000);
  MU_ASSIGN_OR_RETURN(Parameters p, CreateParameters(c));
  MU_ASSIGN_OR_RETURN(mu::Dataset train, TrainingData(c, folder));
  MU_ASSIGN_OR_RETURN(mu::Dataset test, TestData(c, folder));
  MU_ASSIGN_OR_RETURN(uint64_t batches, c.BatchesInEpoch(train));
  std::printf("%llu batches in an epoch\n", static_cast<unsigned long long>(batches));

  // Functions: of data with a loss and an argument; of data alone; of neither.
  MU_ASSIGN_OR_RETURN(
      mu::Function step, c.DefineFunction("train_step", [&](mu::FunctionBuilder& f) {
        mu::BatchRef batch = f.NextBatch(train);
        auto loss = mu::MeanSquaredError(Predict(p, batch), batch["rating"]);
        f.Minimize(
            loss * f.Arg("weight"),
            {.staleness = mu::Staleness{.discount = mu::StalenessDiscount::kInverse, .max = 500}});
        mu::AssignAdd(p.counter, 1);
        f.Return("loss", loss);
        f.Return("worker", f.WorkerIndex());
      }));
  MU_ASSIGN_OR_RETURN(mu::Function forward, DefineForward(c, p, test));
  MU_ASSIGN_OR_RETURN(mu::Function count, c.DefineFunction("count", [&](mu::FunctionBuilder& f) {
    f.Return("count", mu::Read(p.counter));
  }));

  // Schedule, Done, Join, Fetch: the first epoch by hand.
  std::vector<mu::RemoteValue> values;
  for (uint64_t done = 0; done < batches; done += 8) {
    values.push_back(c.Schedule(
        step, {.steps = 8, .args = {{"weight", 1.0f}}, .user_state = "what I need to go on"}));
  }
  MU_ASSIGN_OR_RETURN(bool all_done, c.Done());
  std::printf("all done at once: %s\n", all_done ? "yes" : "no");
  MU_RETURN_IF_ERROR(c.Join());
  MU_ASSIGN_OR_RETURN(mu::FunctionResult first, c.Fetch(values.front()));
  MU_ASSIGN_OR_RETURN(double first_loss, first.Mean("loss"));
  MU_ASSIGN_OR_RETURN(mu::Tensor worker, first.Get(0, "worker"));
  std::printf("first function: %zu steps on worker %lld, loss %.3f\n", first.steps(),
              static_cast<long long>(worker.data<int64_t>()[0]), first_loss);

  // Values on the servers.
  MU_ASSIGN_OR_RETURN(mu::Tensor counter, c.Read(p.counter));
  EXPECT(counter.data<int64_t>()[0] >= static_cast<int64_t>(batches));
  MU_ASSIGN_OR_RETURN(mu::Tensor rows, c.ReadRows(p.users, {0, 1, 2}));
  EXPECT(rows.shape() == mu::Shape({3, 8}));
  MU_RETURN_IF_ERROR(c.Assign(p.counter, mu::Tensor::Scalar<int64_t>(0)));
  mu::RemoteValue counted = c.Schedule(count);
  MU_ASSIGN_OR_RETURN(mu::FunctionResult count_result, counted.Fetch());
  MU_ASSIGN_OR_RETURN(mu::Tensor zero, count_result.Get(0, "count"));
  EXPECT(zero.data<int64_t>()[0] == 0);
  std::printf("%llu parameters\n", static_cast<unsigned long long>(c.parameters()));

  // Evaluation: every record once, on all workers.
  double squares = 0;
  MU_ASSIGN_OR_RETURN(uint64_t examples,
                      mu::ForEachPrediction(
                          c, forward, test, {},
                          [&](absl::Span<const float> predictions, absl::Span<const float> labels) {
                            for (size_t i = 0; i < labels.size(); ++i) {
                              const double error = predictions[i] - labels[i];
                              squares += error * error;
                            }
                            return absl::OkStatus();
                          }));
  EXPECT(examples == 400);
  std::printf("mean squared error %.3f on %llu ratings\n", squares / static_cast<double>(examples),
              static_cast<unsigned long long>(examples));

  // A model's values, there and back.
  MU_ASSIGN_OR_RETURN(muster::CheckpointProto saved, c.Save(folder + "/model"));
  MU_RETURN_IF_ERROR(c.Assign(p.scale, mu::Tensor::Scalar<float>(5)));
  MU_ASSIGN_OR_RETURN(muster::CheckpointProto restored, c.Restore(folder + "/model"));
  EXPECT(saved.files_size() == restored.files_size());
  MU_ASSIGN_OR_RETURN(mu::Tensor scale, c.Read(p.scale));
  EXPECT(scale.data<float>()[0] < 4);

  // Checkpoints of the job, the newest of which is kept: how far it is, and a text of one's own.
  MU_RETURN_IF_ERROR(c.Checkpoint().status());
  c.SetUserState("one epoch by hand");
  MU_RETURN_IF_ERROR(c.Checkpoint().status());
  MU_RETURN_IF_ERROR(c.PruneCheckpoints(1));
  MU_ASSIGN_OR_RETURN(mu::DataProgress at, c.ProgressOf(train));
  const mu::RuntimeStats stats = c.Stats();
  std::printf("epoch %llu, %llu batches left; %llu functions on %zu workers\n",
              static_cast<unsigned long long>(at.epoch), static_cast<unsigned long long>(at.left),
              static_cast<unsigned long long>(stats.functions), stats.workers_ready);

  // A user's mistake is told once, with its place; then the coordinator works on.
  const auto wrong = c.DefineFunction(
      "wrong", [&](mu::FunctionBuilder& f) { f.Return("x", f.NextBatch(train)["ratin"]); });
  EXPECT(!wrong.ok());
  std::printf("as it should be: %s\n", std::string(wrong.status().message()).c_str());

  // Cancel: what is queued and running ends, and nothing comes later.
  c.Schedule(step, {.steps = 8, .args = {{"weight", 0.5f}}});
  c.Cancel();
  return c.Join();
}

// The job of Run, by a coordinator that was started after it: the two epochs that are left, by the
// training loop.
absl::Status Continue(mu::Coordinator& c, const std::string& folder) {
  c.EnableRecovery(folder + "/checkpoints");
  MU_ASSIGN_OR_RETURN(Parameters p, CreateParameters(c));
  MU_ASSIGN_OR_RETURN(mu::Dataset train, TrainingData(c, folder));
  MU_ASSIGN_OR_RETURN(mu::Function step,
                      c.DefineFunction("train_step", [&](mu::FunctionBuilder& f) {
                        mu::BatchRef batch = f.NextBatch(train);
                        auto loss = mu::MeanSquaredError(Predict(p, batch), batch["rating"]);
                        f.Minimize(loss, {.schedule = mu::StepDecay{.every = 500}});
                        f.Return("loss", loss);
                      }));
  // In rounds from now on: the mean of two steps is applied once.
  MU_RETURN_IF_ERROR(c.SynchronousRounds({.replicas = 2, .backups = 1}));
  MU_ASSIGN_OR_RETURN(mu::RestoredJob job, c.Restore());
  EXPECT(job.user_state == "one epoch by hand");
  MU_ASSIGN_OR_RETURN(mu::TrainResult result,
                      mu::Train(c, step, train, {.epochs = kEpochs, .restored = &job}));
  EXPECT(result.samples == kEpochs * kRatings / 10 * 9);
  EXPECT(c.Stats().rounds.contributions > c.Stats().rounds.committed);
  std::printf("continued from %llu samples to %llu, loss %.4f\n",
              static_cast<unsigned long long>(job.manifest.position().samples()),
              static_cast<unsigned long long>(result.samples), result.last_epoch_loss);
  return absl::OkStatus();
}

// Click logs as Criteo publishes them need no description of their columns.
absl::Status ReadClicks(mu::Coordinator& c, const std::string& folder) {
  MU_ASSIGN_OR_RETURN(
      mu::Dataset clicks,
      c.CreateDataset(mu::CriteoTsv({folder + "/clicks.tsv"}, 1000).Batch(kClicks).Epochs(1)));
  MU_ASSIGN_OR_RETURN(mu::Function rate,
                      c.DefineFunction("click_rate", [&](mu::FunctionBuilder& f) {
                        f.Return("rate", mu::ReduceMean(f.NextBatch(clicks)["label"]));
                      }));
  MU_ASSIGN_OR_RETURN(mu::FunctionResult result, c.Schedule(rate).Fetch());
  MU_ASSIGN_OR_RETURN(double mean, result.Mean("rate"));
  EXPECT(mean == 0.5);
  return absl::OkStatus();
}

// Another model, which begins with what the first has learnt of its users.
absl::Status BeginWarm(mu::Coordinator& c, const std::string& folder) {
  const mu::WarmStartSpec spec = {.map = {{"users", "readers"}}};
  EXPECT(c.UsePartitionCountsOf(folder + "/model", spec));
  EXPECT(c.UseInitializersOf(folder + "/model"));  // of what both call the same
  MU_RETURN_IF_ERROR(
      c.CreateEmbeddingTable({.name = "readers", .rows = kUsers, .dim = 8}).status());
  MU_ASSIGN_OR_RETURN(muster::TakenValuesProto taken, c.WarmStart(folder + "/model", spec));
  EXPECT(taken.names_size() == 1);
  return absl::OkStatus();
}

// The checkpoints of Run, each evaluated once, as from another program while it trains.
absl::Status FollowRun(mu::Coordinator& c, const std::string& folder) {
  // Else it would wait for more of them. A mu::Trainer says so itself.
  MU_RETURN_IF_ERROR(mu::MarkRun(folder, mu::RunStatus::kDone));
  const auto define = [&](mu::Coordinator& own) -> absl::StatusOr<mu::EvaluationSpec> {
    mu::EvaluationSpec spec;
    MU_ASSIGN_OR_RETURN(const Parameters p, CreateParameters(own));
    MU_ASSIGN_OR_RETURN(spec.data, TestData(own, folder));
    MU_ASSIGN_OR_RETURN(spec.function, DefineForward(own, p, spec.data));
    spec.outputs = mu::ForwardOf(mu::Task::kRegression);
    spec.metrics = {"rmse"};
    return spec;
  };
  MU_ASSIGN_OR_RETURN(const std::vector<mu::Evaluation> evaluations,
                      mu::Follow(&c, folder, define));
  EXPECT(!evaluations.empty() && evaluations.back().examples == 400);
  return mu::MarkRun(folder, mu::RunStatus::kRunning);  // Continue goes on with it
}

absl::Status RunAll(const std::string& where, const std::string& folder) {
  WriteRatings(folder + "/ratings.csv");
  WriteClicks(folder + "/clicks.tsv");
  // By its directory a second coordinator knows that it comes after the first.
  const mu::ClusterOptions options = {.job_dir = folder + "/job",
                                      .default_optimizer = mu::Sgd{.learning_rate = 0.05f}};
  {
    MU_ASSIGN_OR_RETURN(auto c, Cluster(where, options));
    MU_RETURN_IF_ERROR(Run(*c, folder));
  }
  // Daemons that run by themselves serve one job.
  if (where == "in_process" || where == "local") {
    mu::ClusterOptions another = options;
    another.job_dir = folder + "/another";
    {
      MU_ASSIGN_OR_RETURN(auto c, Cluster(where, another));
      MU_RETURN_IF_ERROR(BeginWarm(*c, folder));
    }
    another.job_dir = folder + "/follower";
    MU_ASSIGN_OR_RETURN(auto c, Cluster(where, another));
    MU_RETURN_IF_ERROR(FollowRun(*c, folder));
  }
  MU_ASSIGN_OR_RETURN(auto c, Cluster(where, options));
  MU_RETURN_IF_ERROR(Continue(*c, folder));
  MU_RETURN_IF_ERROR(ReadClicks(*c, folder));
  std::printf("cluster at %s, done\n", c->address().c_str());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = "/tmp/muster-all-calls-" + std::to_string(::getpid());
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const absl::Status status = RunAll(argc > 1 ? argv[1] : "in_process", folder);
  std::filesystem::remove_all(folder, ignored);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
