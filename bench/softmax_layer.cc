// A softmax layer over many classes, trained with the variable read by the worker, and with its
// products computed by the servers: time of a step, and bytes that the worker sends and receives.
// The worker and the servers are processes of this machine and share its cores.
//
//   build/bin/softmax_layer --classes=200000 --dim=256 --batch=32 --ps=2
#include <httplib.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/env/file.h"
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

absl::StatusOr<std::string> Page(const std::string& url, const char* path) {
  const auto reply = httplib::Client(url).Get(path);
  if (!reply || reply->status != 200)
    return absl::UnavailableError(absl::StrCat("no page ", path, " of ", url));
  return reply->body;
}

// Bytes of pulls and pushes that the worker has sent and received, by its metrics.
absl::StatusOr<double> MovedBytes(const std::string& coordinator) {
  MU_ASSIGN_OR_RETURN(const std::string targets, Page(coordinator, "/targets"));
  double bytes = 0;
  for (const auto& target : nlohmann::json::parse(targets, nullptr, /*allow_exceptions=*/false)) {
    if (target["labels"]["muster_role"] != "worker") continue;
    const std::string url = absl::StrCat("http://", target["targets"][0].get<std::string>());
    MU_ASSIGN_OR_RETURN(const std::string page, Page(url, "/metrics"));
    for (const absl::string_view line : absl::StrSplit(page, '\n')) {
      const bool moved = absl::StartsWith(line, "muster_rpc_client_sent_bytes_total{") ||
                         absl::StartsWith(line, "muster_rpc_client_received_bytes_total{");
      double value = 0;
      if (moved &&
          (absl::StrContains(line, "PsServer/Pull") || absl::StrContains(line, "PsServer/Push")) &&
          absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value))
        bytes += value;
    }
  }
  if (bytes == 0) return absl::InternalError("the worker has counted no bytes");
  return bytes;
}

absl::StatusOr<Measured> Measure(const Flags& flags, mu::ProductPlace place) {
  MU_ASSIGN_OR_RETURN(const mu::TempDirectory directory,
                      mu::TempDirectory::Create("softmax_layer"));
  MU_ASSIGN_OR_RETURN(auto c, mu::Local({.workers = 1,
                                         .ps = flags.ps,
                                         .job_dir = mu::JoinPath(directory.path(), "run"),
                                         .default_optimizer = mu::Sgd{.learning_rate = 0.1f},
                                         .functions_in_flight = 1,
                                         .http = "127.0.0.1:0"}));
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
  MU_ASSIGN_OR_RETURN(const double before, MovedBytes(c->http()));
  const absl::Time begin = absl::Now();
  const mu::RemoteValue value = c->Schedule(step, {.steps = flags.steps});
  MU_RETURN_IF_ERROR(c->Join());
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  MU_ASSIGN_OR_RETURN(const double after, MovedBytes(c->http()));
  MU_ASSIGN_OR_RETURN(const mu::FunctionResult result, c->Fetch(value));
  MU_ASSIGN_OR_RETURN(const mu::Tensor loss, result.Get(flags.steps - 1, "loss"));
  return Measured{seconds / flags.steps, (after - before) / 1e6 / flags.steps,
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
  std::vector<double> losses;
  for (const auto& [place, name] : {std::pair{mu::ProductPlace::kWorker, "read by the worker"},
                                    std::pair{mu::ProductPlace::kServers, "on the servers"}}) {
    const auto measured = Measure(flags, place);
    if (!measured.ok()) {
      std::fprintf(stderr, "%s\n", std::string(measured.status().message()).c_str());
      return 1;
    }
    std::printf("%-20s %8.1f ms a step, %8.1f MB a step, loss %.4f\n", name,
                1e3 * measured->seconds, measured->megabytes, measured->loss);
    losses.push_back(measured->loss);
  }
  if (std::abs(losses[0] - losses[1]) < 1e-3 * losses[0]) return 0;
  std::fprintf(stderr, "the losses differ: one of the two computes something else\n");
  return 1;
}
