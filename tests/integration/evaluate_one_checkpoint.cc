// Evaluates one checkpoint of a logistic regression on a9a again and again, while training goes on
// and daemons die:
//   evaluate_one_checkpoint DATA JOB_DIR CHAOS COUNT [CHECKPOINT]
// DATA has a9a.gz and a9a.t.gz. Without CHECKPOINT it trains an epoch, takes one and says which.
// Started again with the same JOB_DIR, training goes on after its last checkpoint.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "coordinator/cluster/kept_checkpoint.h"
#include "coordinator/muster.h"
#include "coordinator/training/forward.h"

namespace mu {
namespace {

struct Model {
  Dataset train, test;
  Function step, forward;
};

absl::StatusOr<Model> Define(Coordinator& c, const std::string& data) {
  const auto file = [&](const char* name) {
    return Libsvm({data + "/" + name}, 124, {"+1"}).Batch(128).Name(name);
  };
  Model model;
  MU_ASSIGN_OR_RETURN(model.train, c.CreateDataset(file("a9a.gz").Shuffle(100000)));
  MU_ASSIGN_OR_RETURN(model.test, c.CreateDataset(file("a9a.t.gz").Epochs(1)));
  MU_ASSIGN_OR_RETURN(const EmbeddingBagLayer weights,
                      EmbeddingBagLayer::Create(c, "weights", 124, 1));
  MU_ASSIGN_OR_RETURN(const Variable bias, c.CreateVariable({.name = "bias"}));
  const auto logits = [&](const BatchRef& batch) {
    const Sym sums =
        weights(batch["features.values"], batch["features.splits"], batch["features.weights"]);
    return Reshape(sums, {-1}) + Read(bias);
  };
  MU_ASSIGN_OR_RETURN(model.step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    const BatchRef batch = f.NextBatch(model.train);
    f.Minimize(ReduceMean(SigmoidCrossEntropy(logits(batch), batch["label"])));
  }));
  MU_ASSIGN_OR_RETURN(model.forward, c.DefineFunction("forward", [&](FunctionBuilder& f) {
    const BatchRef batch = f.NextBatch(model.test);
    f.Return("prediction", Sigmoid(logits(batch)));
    f.Return("label", batch["label"]);
  }));
  return model;
}

absl::Status Evaluate(Coordinator& c, const Model& model, const std::string& checkpoint) {
  MU_ASSIGN_OR_RETURN(const FunctionGroup group, c.CreateGroup({.checkpoint = checkpoint}));
  MU_ASSIGN_OR_RETURN(Measurement measurement,
                      Measurement::Create(ForwardOf(Task::kBinaryClassification),
                                          {std::string("auc"), std::string("logloss")}));
  const uint64_t trained = c.Counts().steps;
  std::printf("begun\n");
  std::fflush(stdout);
  MU_ASSIGN_OR_RETURN(
      const uint64_t records,
      ForEachBatch(c, model.forward, model.test, {.returns = measurement.returns(), .group = group},
                   [&](const EvaluatedBatch& batch) { return measurement.Add(batch); }));
  std::printf("evaluated records=%llu", static_cast<unsigned long long>(records));
  for (const MetricValue& metric : measurement.Values())
    std::printf(" %s=%.17g", metric.name.c_str(), metric.value);
  const RuntimeStats stats = c.Stats();
  const auto lost = std::count_if(stats.failures.begin(), stats.failures.end(),
                                  [](const auto& f) { return f.role == pb::ROLE_PSSERVER; });
  std::printf(" meanwhile steps=%llu lost_workers=%llu lost_servers=%llu\n",
              static_cast<unsigned long long>(stats.steps - trained),
              static_cast<unsigned long long>(stats.failures.size() - static_cast<size_t>(lost)),
              static_cast<unsigned long long>(lost));
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run(const std::string& data, const std::string& job_dir, const std::string& chaos,
                 int count, std::string checkpoint) {
  const char* const binaries = std::getenv("MUSTER_BIN_DIR");
  MU_ASSIGN_OR_RETURN(const auto cluster,
                      Local({.workers = 2,
                             .ps = 2,
                             .job_dir = job_dir,
                             .default_optimizer = Adagrad{.learning_rate = 0.1f},
                             .binary_dir = binaries != nullptr ? binaries : "",
                             .chaos = chaos}));
  Coordinator& c = *cluster;
  Checkpointer checkpointer(
      &c, {.directory = job_dir + "/checkpoints", .every = absl::Seconds(2), .keep = 2});
  MU_ASSIGN_OR_RETURN(const Model model, Define(c, data));
  const auto restored = c.Restore();
  const bool begins = chaos.empty() || checkpoint.empty();
  if (!restored.ok() && !(begins && absl::IsNotFound(restored.status()))) return restored.status();
  if (checkpoint.empty()) {
    c.Schedule(model.step, {.steps = 255});
    MU_ASSIGN_OR_RETURN(checkpoint, checkpointer.TakeWhole());
    MU_RETURN_IF_ERROR(MarkKept(checkpoint, true));
    std::printf("checkpoint %s\n", checkpoint.c_str());
    std::fflush(stdout);
  }
  std::atomic<bool> over = false;
  absl::Status trained;
  std::thread training([&] {
    while (!over && trained.ok()) {
      for (int i = 0; i < 8; ++i) c.Schedule(model.step, {.steps = 20});
      trained = c.Join();
    }
  });
  absl::Status status;
  for (int i = 0; i < count && status.ok(); ++i) status = Evaluate(c, model, checkpoint);
  over = true;
  training.join();
  MU_RETURN_IF_ERROR(status);
  MU_RETURN_IF_ERROR(trained);
  return absl::OkStatus();
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6) {
    std::fprintf(stderr, "%s DATA JOB_DIR CHAOS COUNT [CHECKPOINT]\n", argv[0]);
    return 2;
  }
  const absl::Status status =
      mu::Run(argv[1], argv[2], argv[3], std::atoi(argv[4]), argc > 5 ? argv[5] : "");
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
