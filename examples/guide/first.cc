// The first program of docs/program.md: guide_first examples/guide/visits.csv

// [first-program]
#include <cstdio>

#include "coordinator/muster.h"

absl::Status TrainVisits(mu::Coordinator& c, const std::string& file) {
  // What is trained: a row of 1 number for each user, and one number for all.
  MU_ASSIGN_OR_RETURN(mu::EmbeddingTable users,
                      c.CreateEmbeddingTable({.name = "users", .rows = 1000, .dim = 1}));
  MU_ASSIGN_OR_RETURN(mu::Variable bias, c.CreateVariable({.name = "bias"}));
  // What it is trained on: two columns of a CSV file, 20 records a step.
  MU_ASSIGN_OR_RETURN(
      mu::Dataset visits,
      c.CreateDataset(
          mu::Csv({file}).Header().Id("user", 1000).Label("clicked", {"yes"}).Batch(20)));
  // What a step computes.
  MU_ASSIGN_OR_RETURN(mu::Function step, c.DefineFunction("step", [&](mu::FunctionBuilder& f) {
    mu::BatchRef batch = f.NextBatch(visits);
    auto logits = mu::Reshape(mu::EmbeddingLookup(users, batch["user"]), {-1}) + bias;
    auto loss = mu::ReduceMean(mu::SigmoidCrossEntropy(logits, batch["clicked"]));
    f.Minimize(loss);
    f.Return("loss", loss);
  }));
  MU_ASSIGN_OR_RETURN(mu::TrainResult result, mu::Train(c, step, visits, {.epochs = 5}));
  std::printf("%llu steps, mean loss of the last epoch %.3f\n",
              static_cast<unsigned long long>(result.steps), result.last_epoch_loss);
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  auto c = mu::InProcess(
      {.workers = 2, .ps = 2, .default_optimizer = mu::Adagrad{.learning_rate = 0.3f}});
  const absl::Status status =
      c.ok() ? TrainVisits(**c, argc > 1 ? argv[1] : "visits.csv") : c.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
// [/first-program]
