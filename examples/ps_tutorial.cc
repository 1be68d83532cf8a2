// TensorFlow's tutorial "Parameter server training with ParameterServerStrategy" on Muster:
//   ps_tutorial in_process|local|HOST:PORT FOLDER
// docs/from_tensorflow.md has each call of it beside Muster's.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/layers_embedding.h"
#include "coordinator/frontend/memory_data.h"
#include "examples/cluster.h"

namespace {

// --- Training with fit: one dense layer, on noise.

mu::DatasetSpec Noise() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(0, 1);
  return mu::FromGenerator({{"x", mu::kFloat32, {10}}, {"y", mu::kFloat32, {}}},
                           [&, left = 640](mu::GeneratedRecord& record) mutable {
                             for (float& x : record.Floats(0)) x = uniform(random);
                             record.Floats(1)[0] = uniform(random);
                             return left-- > 0;
                           })
      .Name("noise")
      .Shuffle(640)
      .Batch(32);  // 20 steps an epoch
}

absl::Status FitForm(mu::Coordinator& c, const std::string& folder) {
  c.EnableRecovery(folder);  // continues what it finds there
  MU_ASSIGN_OR_RETURN(mu::Dense dense,
                      mu::Dense::Create(c, "dense", 10, 1, {.optimizer = mu::Sgd{0.01f}}));
  MU_ASSIGN_OR_RETURN(mu::Dataset data, c.CreateDataset(Noise()));
  MU_ASSIGN_OR_RETURN(mu::Function step, c.DefineFunction("fit", [&](mu::FunctionBuilder& f) {
    mu::BatchRef batch = f.NextBatch(data);
    auto loss = mu::MeanSquaredError(mu::Reshape(dense(batch["x"]), {-1}), batch["y"]);
    f.Minimize(loss);
    f.Return("loss", loss);
  }));
  mu::Trainer trainer(&c, {.step = step,
                           .data = data,
                           .checkpoints = mu::CheckpointerOptions{.directory = folder},
                           .callbacks = {.on_epoch = [](const mu::EpochLoss& epoch) {
                             std::printf("fit: epoch %u, loss %.3f\n", epoch.epoch, epoch.loss());
                           }}});
  MU_RETURN_IF_ERROR(trainer.Fit({.epochs = 5, .steps_per_function = 10}).status());
  return trainer.Save().status();
}

// --- A loop of its own: is "avenger" among three words?

const std::vector<std::string> kVocabulary = {"avenger",   "ironman",  "batman",      "hulk",
                                              "spiderman", "kingkong", "wonder_woman"};

mu::DatasetSpec Words(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> ids(kVocabulary.size());
  std::iota(ids.begin(), ids.end(), 0);
  return mu::FromGenerator({{"features", mu::kInt64, {3}}, {"label", mu::kFloat32, {}}},
                           [&, left = 200](mu::GeneratedRecord& record) mutable {
                             std::shuffle(ids.begin(), ids.end(), random);
                             std::copy_n(ids.begin(), 3, record.Ints(0).begin());
                             record.Floats(1)[0] = std::count(&ids[0], &ids[3], 0) > 0 ? 1 : 0;
                             return left-- > 0;
                           })
      .Batch(32);
}

struct Model {
  mu::Embedding words;
  mu::Dense dense;

  mu::Sym Logits(const mu::BatchRef& batch) const {
    return mu::Reshape(dense(mu::ReduceMean(words(batch["features"]), {1})), {-1});
  }
};

absl::StatusOr<Model> CreateModel(mu::Coordinator& c) {
  const mu::Rmsprop optimizer{.learning_rate = 0.1f};
  const auto rows = static_cast<int64_t>(kVocabulary.size());
  Model model;
  MU_ASSIGN_OR_RETURN(model.words,
                      mu::Embedding::Create(c, "words", rows, 16, {.optimizer = optimizer}));
  MU_ASSIGN_OR_RETURN(model.dense, mu::Dense::Create(c, "out", 16, 1, {.optimizer = optimizer}));
  return model;
}

absl::StatusOr<double> Accuracy(mu::Coordinator& c, const mu::Function& forward,
                                const mu::Dataset& data) {
  mu::Trainer evaluation(&c, {.evaluation = mu::EvaluationSpec{
                                  .function = forward, .data = data, .metrics = {"accuracy"}}});
  MU_ASSIGN_OR_RETURN(mu::Evaluation result, evaluation.Evaluate());  // each record once
  return result.metrics["accuracy"];
}

absl::StatusOr<double> CustomLoop(mu::Coordinator& c) {
  MU_ASSIGN_OR_RETURN(Model model, CreateModel(c));
  MU_ASSIGN_OR_RETURN(mu::Dataset train,
                      c.CreateDataset(Words(2).Name("train").Shuffle(200).PerWorker()));
  MU_ASSIGN_OR_RETURN(mu::Dataset test, c.CreateDataset(Words(3).Name("test").Epochs(1)));
  MU_ASSIGN_OR_RETURN(mu::Function step, c.DefineFunction("step", [&](mu::FunctionBuilder& f) {
    mu::BatchRef batch = f.NextBatch(train);
    auto loss = mu::ReduceMean(mu::SigmoidCrossEntropy(model.Logits(batch), batch["label"]));
    f.Minimize(loss);
    f.Return("loss", loss);
  }));
  MU_ASSIGN_OR_RETURN(mu::Function forward,
                      c.DefineFunction("forward", [&](mu::FunctionBuilder& f) {
                        mu::BatchRef batch = f.NextBatch(test);
                        f.Return("prediction", mu::Sigmoid(model.Logits(batch)));
                        f.Return("label", batch["label"]);
                      }));
  double accuracy = 0;
  for (int epoch = 1; epoch <= 4; ++epoch) {
    mu::RemoteValue value;
    for (int i = 0; i < 5; ++i) value = c.Schedule(step, {.steps = 4});  // returns at once
    MU_RETURN_IF_ERROR(c.Join());
    MU_ASSIGN_OR_RETURN(mu::FunctionResult result, value.Fetch());
    MU_ASSIGN_OR_RETURN(double loss, result.Mean("loss"));
    MU_ASSIGN_OR_RETURN(accuracy, Accuracy(c, forward, test));
    std::printf("custom loop: epoch %d, loss %.3f, accuracy %.3f\n", epoch, loss, accuracy);
  }
  return accuracy;
}

absl::Status Tutorial(const std::string& where, const std::string& folder) {
  // Each form has a cluster of its own.
  MU_ASSIGN_OR_RETURN(auto fit, Cluster(where));
  MU_RETURN_IF_ERROR(FitForm(*fit, folder + "/fit"));
  fit.reset();
  MU_ASSIGN_OR_RETURN(auto custom, Cluster(where));
  MU_ASSIGN_OR_RETURN(const double accuracy, CustomLoop(*custom));
  return accuracy > 0.95 ? absl::OkStatus() : absl::InternalError("it has not learned the word");
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status =
      Tutorial(argc > 1 ? argv[1] : "in_process", argc > 2 ? argv[2] : "ps_tutorial");
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
