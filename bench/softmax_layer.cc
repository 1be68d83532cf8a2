// A softmax layer over many classes, trained with the variable read by the worker, and with its
// products computed by the servers: time of a step, and bytes that the worker sends and receives.
// One worker and the servers are in this process, over gRPC on loopback, so all of them share its
// cores.
//
//   build/bin/softmax_layer --classes=200000 --dim=256 --batch=32 --ps=2
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/obs/telemetry.h"
#include "coordinator/frontend/neural_ops.h"
#include "coordinator/frontend/variable_ops.h"
#include "coordinator/launch/launch.h"

namespace {

struct Flags {
  int64_t classes = 200'000;
  int64_t dim = 256;
  int64_t batch = 32;
  int ps = 2;
  uint32_t steps = 10;
};

struct Measured {
  double seconds = 0;  // of a step
  double megabytes = 0;
  double loss = 0;  // after the last one
};

// Bytes of pulls and pushes that callers in this process sent and received.
double MovedBytes() {
  double bytes = 0;
  for (const char* method : {"Pull", "Push"}) {
    const std::string name = std::string("/muster.PsServer/") + method;
    for (const char* counter : {"rpc.client.sent_bytes", "rpc.client.received_bytes"})
      bytes += static_cast<double>(
          mu::Telemetry::Process().counter(counter, "", {{"method", name}})->value());
  }
  return bytes;
}

absl::StatusOr<Measured> Measure(const Flags& flags, mu::ProductPlace place) {
  MU_ASSIGN_OR_RETURN(auto c, mu::InProcess({.workers = 1,
                                             .ps = flags.ps,
                                             .default_optimizer = mu::Sgd{.learning_rate = 0.1f},
                                             .functions_in_flight = 1}));
  MU_ASSIGN_OR_RETURN(mu::Variable features,
                      c->CreateVariable({.name = "features",
                                         .shape = {flags.batch, flags.dim},
                                         .initializer = mu::Normal{.stddev = 1.0f}}));
  MU_ASSIGN_OR_RETURN(mu::Variable classes,
                      c->CreateVariable({.name = "classes",
                                         .shape = {flags.classes, flags.dim},
                                         .initializer = mu::Normal{.stddev = 0.05f}}));
  mu::Tensor labels(mu::kInt64, mu::Shape({flags.batch}));
  for (int64_t i = 0; i < flags.batch; ++i) labels.data<int64_t>()[i] = i * 7919 % flags.classes;
  MU_ASSIGN_OR_RETURN(mu::Function step, c->DefineFunction("step", [&](mu::FunctionBuilder& f) {
    f.Train();
    auto logits = mu::ShardedMatMul(features, classes, {.place = place});
    auto loss = mu::ReduceMean(mu::SparseSoftmaxCrossEntropy(logits, mu::ConstantTensor(labels)));
    f.Minimize(loss);
    f.Return("loss", loss);
  }));
  c->Schedule(step, {.steps = 2});  // memory is taken
  MU_RETURN_IF_ERROR(c->Join());
  const double bytes = MovedBytes();
  const absl::Time begin = absl::Now();
  const mu::RemoteValue value = c->Schedule(step, {.steps = flags.steps});
  MU_RETURN_IF_ERROR(c->Join());
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  MU_ASSIGN_OR_RETURN(const mu::FunctionResult result, c->Fetch(value));
  MU_ASSIGN_OR_RETURN(const mu::Tensor loss, result.Get(flags.steps - 1, "loss"));
  return Measured{seconds / flags.steps, (MovedBytes() - bytes) / 1e6 / flags.steps,
                  loss.data<float>()[0]};
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("A softmax layer over many classes, by who computes the product");
  app.add_option("--classes", flags.classes);
  app.add_option("--dim", flags.dim);
  app.add_option("--batch", flags.batch);
  app.add_option("--ps", flags.ps);
  app.add_option("--steps", flags.steps);
  CLI11_PARSE(app, argc, argv);
  for (const auto& [place, name] : {std::pair{mu::ProductPlace::kWorker, "read by the worker"},
                                    std::pair{mu::ProductPlace::kServers, "on the servers"}}) {
    const auto measured = Measure(flags, place);
    if (!measured.ok()) {
      std::fprintf(stderr, "%s\n", std::string(measured.status().message()).c_str());
      return 1;
    }
    std::printf("%-20s %8.1f ms a step, %8.1f MB a step, loss %.4f\n", name,
                1e3 * measured->seconds, measured->megabytes, measured->loss);
  }
  return 0;
}
