// How soon a worker that was killed is of use again: from the start of its new process to the result of its first step,
// which includes registering, installing all functions and reading one lease. The supervisor of mu::Local restarts it.
//
//   build/bench/worker_restart [KILLS]      the daemons are those of build/bin, or of MUSTER_BIN_DIR
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "absl/time/clock.h"
#include "common/env/file.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/launch/launch.h"

namespace mu {
namespace {

constexpr int kLines = 200'000;
constexpr int kItems = 50'000;
constexpr double kHealthy = 1.1;  // seconds: see coordinator/launch/restart_policy.h

// Seconds since the process was started; the kernel counts in hundredths.
double SecondsSinceStart(int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;  // the 22nd of the line: start time in ticks since boot
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double started = std::atof(field.c_str()) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - started;
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
  std::printf("%s: p50 %.0f ms, p90 %.0f ms, most %.0f ms of %zu\n", what, 1e3 * seconds[seconds.size() / 2],
              1e3 * seconds[seconds.size() * 9 / 10], 1e3 * seconds.back(), seconds.size());
}

absl::Status Measure(int kills) {
  MU_ASSIGN_OR_RETURN(const TempDirectory directory, TempDirectory::Create("muster-restart"));
  const std::string file = directory.path() + "/data.csv";
  {
    std::ofstream out(file);
    for (int i = 0; i < kLines; ++i) out << i * 7919LL % kItems << "\n";
  }
  ClusterOptions options;
  options.workers = 2;
  options.ps = 2;
  options.job_dir = directory.path() + "/job";
  options.default_optimizer = Adagrad{.learning_rate = 0.02f};
  const char* const binaries = std::getenv("MUSTER_BIN_DIR");
  options.binary_dir = binaries != nullptr ? binaries : MUSTER_BIN_DIR;
  MU_ASSIGN_OR_RETURN(const auto c, Local(options));
  MU_ASSIGN_OR_RETURN(const EmbeddingTable items, c->CreateEmbeddingTable({.name = "items", .rows = kItems, .dim = 16}));
  MU_ASSIGN_OR_RETURN(const Variable w, c->CreateVariable({.name = "w", .shape = Shape({16, 64})}));
  MU_ASSIGN_OR_RETURN(const Dataset data,
                      c->CreateDataset(Csv({file}).Id("id", kItems, 0).Batch(512).Shuffle(100'000)));
  MU_ASSIGN_OR_RETURN(const Function step, c->DefineFunction("step", [&](FunctionBuilder& f) {
    f.Minimize(ReduceMean(Square(MatMul(EmbeddingLookup(items, f.NextBatch(data)["id"]), w) - 1.0f)));
  }));
  std::vector<double> since_start, since_kill;
  for (int i = 0; i < kills; ++i) {
    for (int k = 0; k < 4; ++k) c->Schedule(step, {.steps = 100'000});
    const int64_t before = WorkerZero(*c).pid();
    // One that dies soon after its start is restarted with a growing delay, which is not what is measured.
    while (WorkerZero(*c).steps() < 50 || SecondsSinceStart(before) < kHealthy) absl::SleepFor(absl::Milliseconds(1));
    const absl::Time killed = absl::Now();
    kill(static_cast<pid_t>(before), SIGKILL);
    pb::MemberStatus now;
    while (now.pid() == 0 || now.pid() == before || now.steps() == 0) {
      absl::SleepFor(absl::Microseconds(500));
      now = WorkerZero(*c);
    }
    since_start.push_back(SecondsSinceStart(now.pid()));
    since_kill.push_back(absl::ToDoubleSeconds(absl::Now() - killed));
    c->Cancel();
  }
  Print("first step after the start of its process", since_start);
  Print("first step after the kill of the one before", since_kill);
  return absl::OkStatus();
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  const absl::Status status = mu::Measure(argc > 1 ? std::max(1, std::atoi(argv[1])) : 20);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
