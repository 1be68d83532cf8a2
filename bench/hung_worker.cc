// Whether a worker that hangs holds up the others: steps a second of training with four workers,
// and with one of them stopped but not lost. The steps wait rather than compute, so that the
// processor is free. Also what the coordinator's memory grows by meanwhile. Fails if the others do
// less than nine tenths of what they did.
//
//   build/bin/hung_worker [SECONDS]      how long each of the two is looked at; 10 without it. The
//   daemons are those of build/bin, or of MUSTER_BIN_DIR
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "common/base/steady_now.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/training/trainer.h"
#include "tests/testing/cluster.h"

namespace mu {
namespace {

constexpr int kWorkers = 4;
constexpr int kLines = 100'000;

double ResidentMebibytes() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

absl::Status Measure(absl::Duration window) {
  // Longer than all of it: the worker must not be lost.
  MU_ASSIGN_OR_RETURN(const auto cluster,
                      testing::TestCluster::Start({.workers = kWorkers,
                                                   .ps = 1,
                                                   .member_timeout = absl::Hours(1),
                                                   .worker_flags = {"--slow_down=100"}}));
  Coordinator& c = cluster->coordinator();
  const std::string file = cluster->directory() + "/data.csv";
  {
    std::ofstream out(file);
    for (int i = 0; i < kLines; ++i) out << i << "\n";
  }
  MU_ASSIGN_OR_RETURN(const Dataset data,
                      c.CreateDataset(Csv({file}).Id("id", kLines, 0).Batch(4)));
  MU_ASSIGN_OR_RETURN(const Variable w, c.CreateVariable({.name = "w", .shape = Shape({16})}));
  MU_ASSIGN_OR_RETURN(const Function step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    const Sym id = Cast(f.NextBatch(data)["id"], kFloat32);
    const Sym loss = ReduceMean(Square(w * 0.5f)) + ReduceMean(id) * 0.0f;
    f.Minimize(loss);
    f.Return("loss", loss);
  }));
  std::atomic<int> stop = 0;
  absl::StatusOr<TrainResult> trained;
  std::thread training([&] {
    trained = Train(c, step, data, {.epochs = 1'000'000, .steps_per_function = 4, .stop = &stop});
  });
  const auto steps_per_second = [&] {
    const uint64_t before = c.Stats().steps;
    const absl::Time begin = SteadyNow();
    absl::SleepFor(window);
    return static_cast<double>(c.Stats().steps - before) /
           absl::ToDoubleSeconds(SteadyNow() - begin);
  };
  while (c.Stats().steps < 100) absl::SleepFor(absl::Milliseconds(10));
  const double all = steps_per_second();
  cluster->StopWorker(0);
  absl::SleepFor(absl::Milliseconds(500));  // its last results have been taken
  const double memory = ResidentMebibytes();
  const double others = steps_per_second();
  const double grown = ResidentMebibytes() - memory;
  const uint64_t backups = c.Stats().backup_runs.runs;
  cluster->KillWorker(0);  // its step would wait a hundred times as long as it was stopped
  stop = 1;
  training.join();
  MU_RETURN_IF_ERROR(trained.status());
  const double kept = others / (all * (kWorkers - 1) / kWorkers);
  std::printf(
      "%d workers: %.1f steps/s each; one of them stopped: %.1f each (%.0f%%), %llu functions ran "
      "elsewhere too, the coordinator grew by %.1f MiB\n",
      kWorkers, all / kWorkers, others / (kWorkers - 1), 100 * kept,
      static_cast<unsigned long long>(backups), grown);
  return kept >= 0.9 ? absl::OkStatus() : absl::InternalError("the others were held up");
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  const absl::Status status =
      mu::Measure(absl::Seconds(argc > 1 ? std::max(1, std::atoi(argv[1])) : 10));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
