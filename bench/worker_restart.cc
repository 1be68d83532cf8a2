// What the loss of a worker costs. How soon a worker that was killed is of use again: from the
// start of its new process to the result of its first step, which includes registering, installing
// all functions and reading one lease; the supervisor of mu::Local restarts it. And whether the
// other workers notice: their samples per second of their own processor time in the two seconds
// after each kill against the two before.
//
//   build/bin/worker_restart [KILLS]      the daemons are those of build/bin, or of
//   MUSTER_BIN_DIR
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "bench/process_times.h"
#include "common/env/file.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/launch/launch.h"

namespace mu {
namespace {

constexpr int kLines = 200'000;
constexpr int kItems = 50'000;
constexpr int kBatch = 512;
// Also long enough for a worker to count as healthy when killed
constexpr absl::Duration kWindow = absl::Seconds(2);

// What all workers but the first have done, and the processor time that their processes took for
// it.
struct Work {
  double samples = 0;
  double cpu_seconds = 0;
  Work operator-(const Work& o) const { return {samples - o.samples, cpu_seconds - o.cpu_seconds}; }
  Work operator+(const Work& o) const { return {samples + o.samples, cpu_seconds + o.cpu_seconds}; }
  double rate() const { return samples / cpu_seconds; }
};

Work WorkOfOthers(Coordinator& c) {
  Work work;
  const pb::GetStatusReply status = c.runtime().Status();
  for (const auto& member : status.members()) {
    if (member.role() != pb::ROLE_WORKER || member.index() == 0) continue;
    work.samples += static_cast<double>(member.steps()) * kBatch;
    // User, system
    work.cpu_seconds += StatSeconds(member.pid(), 14) + StatSeconds(member.pid(), 15);
  }
  return work;
}

pb::MemberStatus WorkerZero(Coordinator& c) {
  const pb::GetStatusReply status = c.runtime().Status();
  for (const auto& member : status.members()) {
    if (member.role() == pb::ROLE_WORKER && member.index() == 0) return member;
  }
  return {};
}

void Print(const char* what, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("%s: p50 %.0f ms, p90 %.0f ms, most %.0f ms of %zu\n", what,
              1e3 * seconds[seconds.size() / 2], 1e3 * seconds[seconds.size() * 9 / 10],
              1e3 * seconds.back(), seconds.size());
}

absl::Status Measure(int kills) {
  MU_ASSIGN_OR_RETURN(const TempDirectory directory, TempDirectory::Create("muster-restart"));
  const std::string file = directory.path() + "/data.csv";
  {
    std::ofstream out(file);
    for (int i = 0; i < kLines; ++i) out << i * 7919LL % kItems << "\n";
  }
  ClusterOptions options;
  options.workers = 4;
  options.ps = 2;
  options.job_dir = directory.path() + "/job";
  options.default_optimizer = Adagrad{.learning_rate = 0.02f};
  const char* const binaries = std::getenv("MUSTER_BIN_DIR");
  options.binary_dir = binaries != nullptr ? binaries : MUSTER_BIN_DIR;
  MU_ASSIGN_OR_RETURN(const auto c, Local(options));
  MU_ASSIGN_OR_RETURN(const EmbeddingTable items,
                      c->CreateEmbeddingTable({.name = "items", .rows = kItems, .dim = 16}));
  MU_ASSIGN_OR_RETURN(const Variable w, c->CreateVariable({.name = "w", .shape = Shape({16, 64})}));
  MU_ASSIGN_OR_RETURN(
      const Dataset data,
      c->CreateDataset(Csv({file}).Id("id", kItems, 0).Batch(kBatch).Shuffle(100'000)));
  MU_ASSIGN_OR_RETURN(const Function step, c->DefineFunction("step", [&](FunctionBuilder& f) {
    f.Minimize(
        ReduceMean(Square(MatMul(EmbeddingLookup(items, f.NextBatch(data)["id"]), w) - 1.0f)));
  }));
  std::vector<double> since_start, since_kill;
  Work calm, disturbed;
  for (int i = 0; i < kills; ++i) {
    for (int k = 0; k < 8; ++k) c->Schedule(step, {.steps = 100'000});
    const int64_t before = WorkerZero(*c).pid();
    while (WorkerZero(*c).steps() < 50) absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(kWindow);  // first leases are read, caches fill
    const Work begun = WorkOfOthers(*c);
    absl::SleepFor(kWindow);
    const Work at_kill = WorkOfOthers(*c);
    const absl::Time killed = absl::Now();
    kill(static_cast<pid_t>(before), SIGKILL);
    pb::MemberStatus now;
    while (now.pid() == 0 || now.pid() == before || now.steps() == 0) {
      absl::SleepFor(absl::Microseconds(500));
      now = WorkerZero(*c);
    }
    since_start.push_back(SecondsSinceStart(now.pid()));
    since_kill.push_back(absl::ToDoubleSeconds(absl::Now() - killed));
    absl::SleepFor(killed + kWindow - absl::Now());
    disturbed = disturbed + (WorkOfOthers(*c) - at_kill);
    calm = calm + (at_kill - begun);
    c->Cancel();
  }
  Print("first step after the start of its process", since_start);
  Print("first step after the kill of the one before", since_kill);
  std::printf("the others: %.0f samples per CPU-second before a kill, %.0f after it (%+.1f%%)\n",
              calm.rate(), disturbed.rate(), 100 * (disturbed.rate() / calm.rate() - 1));
  return absl::OkStatus();
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  const absl::Status status = mu::Measure(argc > 1 ? std::max(1, std::atoi(argv[1])) : 20);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
