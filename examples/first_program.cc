// A click model, trained in one process, on local processes or on a cluster.
#include <cstdio>

#include "coordinator/frontend/layers.h"
#include "examples/cluster.h"

// [readme]
absl::Status Train(mu::Coordinator& c, const std::string& files) {
  const mu::Adagrad adagrad{.learning_rate = 0.05f};
  MU_ASSIGN_OR_RETURN(
      mu::EmbeddingTable weights,
      c.CreateEmbeddingTable({.name = "weights", .rows = 100'000, .dim = 1, .optimizer = adagrad}));
  MU_ASSIGN_OR_RETURN(mu::Mlp mlp, mu::Mlp::Create(c, "mlp", 13, {32, 1}, {.optimizer = adagrad}));
  MU_ASSIGN_OR_RETURN(mu::Dataset data,
                      c.CreateDataset(mu::CriteoTsv({files}, 100'000).Batch(256)));
  MU_ASSIGN_OR_RETURN(
      mu::Function step, c.DefineFunction("train_step", [&](mu::FunctionBuilder& f) {
        mu::BatchRef batch = f.NextBatch(data);
        auto sparse = mu::ReduceSum(mu::EmbeddingLookup(weights, batch["ids"]), {1, 2});
        auto dense = mu::Reshape(mlp(batch["dense"]), {-1});
        auto loss = mu::ReduceMean(mu::SigmoidCrossEntropy(sparse + dense, batch["label"]));
        f.Minimize(loss);
        f.Return("loss", loss);
      }));
  mu::RemoteValue value;
  for (int i = 0; i < 20; ++i) value = c.Schedule(step, {.steps = 10});  // returns at once
  MU_RETURN_IF_ERROR(c.Join());  // all are done, or the first error
  MU_ASSIGN_OR_RETURN(mu::FunctionResult result, value.Fetch());
  MU_ASSIGN_OR_RETURN(double loss, result.Mean("loss"));
  std::printf("200 steps, the last ten's mean loss %.4f\n", loss);
  return absl::OkStatus();
}
// [/readme]

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: first_program in_process|local|HOST:PORT 'FILES.tsv.gz'\n");
    return 2;
  }
  auto cluster = Cluster(argv[1]);
  absl::Status status = cluster.ok() ? Train(**cluster, argv[2]) : cluster.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
