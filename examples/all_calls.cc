// Every call of the API, each in a few lines: all_calls in_process|local|HOST:PORT
//
// It makes its own data, trains a small model of ratings, and checks what it reads back.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "coordinator/frontend/layers.h"
#include "examples/cluster.h"

namespace {

constexpr int kUsers = 50;
constexpr int kItems = 40;

std::string WriteRatings() {
  const std::string path = "/tmp/muster-all-calls-" + std::to_string(::getpid()) + ".csv";
  std::ofstream file(path);
  file << "user,item,rating,genres\n";
  for (int i = 0; i < 4000; ++i) {
    file << i % kUsers << ',' << i * 7 % kItems << ',' << 1 + (i % kUsers + i * 7 % kItems) % 5
         << ',' << i % 6 << '|' << i % 11 << '\n';
  }
  return path;
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
  MU_ASSIGN_OR_RETURN(p.genres,
                      c.CreateEmbeddingTable(
                          {.name = "genres", .rows = 16, .dim = 1, .optimizer = mu::Sgd{0.05f}}));
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

absl::Status Run(mu::Coordinator& c, const std::string& file) {
  MU_ASSIGN_OR_RETURN(Parameters p, CreateParameters(c));

  // Data: one file as train and test, an epoch at a time.
  muster::CsvColumnProto genres;
  genres.set_name("genres");
  genres.set_index(-1);
  genres.set_kind(muster::CsvColumnProto::ID);
  genres.set_separator("|");
  auto source = mu::Csv({file})
                    .Header()
                    .Id("user", kUsers)
                    .Id("item", kItems)
                    .Number("rating")
                    .Column(genres)
                    .Batch(32);
  auto train_source = source, test_source = source;
  train_source.Name("train").Records(10, {0, 1, 2, 3, 4, 5, 6, 7, 8}).Shuffle(1000).Epochs(3);
  test_source.Name("test").Records(10, {9}).Epochs(1);
  MU_ASSIGN_OR_RETURN(mu::Dataset train, c.CreateDataset(train_source));
  MU_ASSIGN_OR_RETURN(mu::Dataset test, c.CreateDataset(test_source));
  MU_ASSIGN_OR_RETURN(uint64_t batches, c.BatchesInEpoch(train));
  std::printf("%llu batches in an epoch\n", static_cast<unsigned long long>(batches));

  // Functions: of data with a loss and an argument; of data alone; of neither.
  MU_ASSIGN_OR_RETURN(mu::Function step,
                      c.DefineFunction("train_step", [&](mu::FunctionBuilder& f) {
                        mu::BatchRef batch = f.NextBatch(train);
                        auto loss = mu::MeanSquaredError(Predict(p, batch), batch["rating"]);
                        f.Minimize(loss * f.Arg("weight"));
                        mu::AssignAdd(p.counter, 1);
                        f.Return("loss", loss);
                        f.Return("worker", f.WorkerIndex());
                      }));
  MU_ASSIGN_OR_RETURN(mu::Function forward,
                      c.DefineFunction("forward", [&](mu::FunctionBuilder& f) {
                        mu::BatchRef batch = f.NextBatch(test);
                        f.Return("prediction", Predict(p, batch));
                        f.Return("label", batch["rating"]);
                      }));
  MU_ASSIGN_OR_RETURN(mu::Function count, c.DefineFunction("count", [&](mu::FunctionBuilder& f) {
    f.Return("count", mu::Read(p.counter));
  }));

  // Schedule, Done, Join, Fetch: the first epoch by hand.
  std::vector<mu::RemoteValue> values;
  for (uint64_t done = 0; done < batches; done += 8) {
    values.push_back(c.Schedule(step, {.steps = 8, .args = {{"weight", 1.0f}}}));
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

  // A checkpoint, there and back.
  const std::string checkpoint = file + ".checkpoint";
  MU_ASSIGN_OR_RETURN(muster::CheckpointProto saved, c.Save(checkpoint));
  MU_RETURN_IF_ERROR(c.Assign(p.scale, mu::Tensor::Scalar<float>(5)));
  MU_ASSIGN_OR_RETURN(muster::CheckpointProto restored, c.Restore(checkpoint));
  EXPECT(saved.files_size() == restored.files_size());
  MU_ASSIGN_OR_RETURN(mu::Tensor scale, c.Read(p.scale));
  EXPECT(scale.data<float>()[0] < 4);

  // A user's mistake is told once, with its place; then the coordinator works on.
  const auto wrong = c.DefineFunction(
      "wrong", [&](mu::FunctionBuilder& f) { f.Return("x", f.NextBatch(train)["ratin"]); });
  EXPECT(!wrong.ok());
  std::printf("as it should be: %s\n", std::string(wrong.status().message()).c_str());

  // Cancel: what is queued and running ends, and nothing comes later.
  c.Schedule(step, {.steps = 8, .args = {{"weight", 0.5f}}});
  c.Cancel();
  MU_RETURN_IF_ERROR(c.Join());
  std::printf("cluster at %s, done\n", c.address().c_str());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string file = WriteRatings();
  auto cluster = Cluster(argc > 1 ? argv[1] : "in_process");
  const absl::Status status = cluster.ok() ? Run(**cluster, file) : cluster.status();
  std::error_code ignored;
  for (const std::string& path : {file, file + ".checkpoint"})
    std::filesystem::remove_all(path, ignored);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
