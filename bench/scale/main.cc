// How fast a coordinator feeds many workers. Hundreds or thousands of real worker services in a few
// processes, over real gRPC on loopback, whose steps wait a given time and do nothing else; a real
// coordinator in this process. Printed: functions a second, the gap on the worker between the end
// of a function and the start of the next, the efficiency, the coordinator's processor time and
// memory, and how long it takes until all workers have registered and ended their first function.
// With --rounds the medians of all of it, the lowest and the highest.
//
// Beside it, in the same run: the same services driven by a loop that needs no coordinator
// ("direct"), and an echo over calls of the same kind with as many in flight. On a busy machine the
// ratios to these two are what counts.
//
//   build/bin/scale --workers=300                             steps that do nothing: saturation
//   build/bin/scale --workers=40 --step_ms=20                 2,000 functions a second
//   build/bin/scale --workers=1000 --step_ms=50 --steps=5     packed
//   build/bin/scale --workers=1000 --step_ms=200 --churn=10   10 workers end and come back a second
//   build/bin/scale --workers=100 --queue=100000              100,000 functions wait
//   build/bin/scale --workers=100 --servers=100               each step's result names 100 servers
//   build/bin/scale --workers=100 --dataset_leases=100000     steps read data that has so many
//   leases
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "bench/scale/coordinated.h"
#include "bench/scale/direct.h"
#include "bench/scale/direct_workers.h"
#include "bench/scale/figures.h"
#include "bench/scale/host.h"
#include "bench/scale/hosts.h"
#include "bench/scale/options.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "common/process/descriptor_limit.h"
#include "common/process/fast_bins.h"

namespace mu::scale {
namespace {

constexpr char kOfDirect[] = "of direct, %", kOfEcho[] = "of the echo, %";

DirectOptions DirectOptionsOf(const Options& options) {
  return {.in_flight = options.in_flight,
          .warm_up = absl::Seconds(options.warm_up),
          .window = absl::Seconds(options.seconds)};
}

void Print(const char* who, const Measured& measured) {
  std::printf("%s: %.0f calls/s, %.1f us of this process's processor each\n", who,
              measured.functions_per_second, measured.cpu_us_each());
}

absl::StatusOr<Measured> MeasureDirect(const Options& options, const std::string& directory,
                                       const pb::FunctionProto& function) {
  Hosts hosts(directory, "serve");
  DirectWorkers loop(DirectOptionsOf(options), function, options.steps);
  std::string address;
  if (options.churn > 0) {
    MU_ASSIGN_OR_RETURN(address, loop.Listen());
  }
  MU_RETURN_IF_ERROR(hosts.Start(options.workers, address, options, options.hosts));
  MU_RETURN_IF_ERROR(loop.Begin(hosts.addresses()));
  if (options.churn > 0) MU_RETURN_IF_ERROR(hosts.Go());
  MU_ASSIGN_OR_RETURN(Measured measured, loop.Measure());
  const uint64_t lost = loop.lost();
  MU_ASSIGN_OR_RETURN(const HostLog log, hosts.Stop());
  measured.Add(log);
  Print("direct", measured);
  if (options.churn > 0)
    std::printf("  %llu losses of workers\n", static_cast<unsigned long long>(lost));
  return measured;
}

absl::StatusOr<Measured> MeasureEcho(const Options& options, const std::string& directory) {
  Hosts hosts(directory, "echo");
  MU_RETURN_IF_ERROR(hosts.Start(options.workers, "", options, options.hosts));
  MU_ASSIGN_OR_RETURN(Measured measured, DriveEcho(DirectOptionsOf(options), hosts.addresses()));
  MU_RETURN_IF_ERROR(hosts.Stop().status());
  Print("echo", measured);
  return measured;
}

void PrintEfficiency(const Measured& measured, const Options& options) {
  std::printf("  steps ran in %.2f%% of the time in which workers were up\n",
              measured.Efficiency(options.steps, options.step_ms));
}

void PrintGaps(const char* who, const Measured& measured) {
  std::printf("%s: gap on the worker p50 %.3f ms, p99 %.3f ms of %zu\n", who, measured.GapAt(0.5),
              measured.GapAt(0.99), measured.gaps_ms.size());
}

// Of the coordinator's part, all that docs/scaling.md quotes.
void Note(const Coordinated& fed, const Options& options, Figures* figures) {
  figures->Add("functions/s", fed.functions_per_second);
  figures->Add("coordinator's processor time, us a function", fed.cpu_us_each());
  figures->Add("gap on the worker, p50 ms", fed.GapAt(0.5));
  figures->Add("gap on the worker, p99 ms", fed.GapAt(0.99));
  if (options.step_ms > 0)
    figures->Add("efficiency, %", fed.Efficiency(options.steps, options.step_ms));
  figures->Add("coordinator's memory at the beginning, MB", fed.begin_mb);
  figures->Add("coordinator's memory at the end, MB", fed.end_mb);
  figures->Add("coordinator's memory, growth in the window, MB", fed.end_mb - fed.begin_mb);
  figures->Add("all workers registered, s", fed.registered_seconds);
  figures->Add("all workers ended their first functions, s", fed.first_seconds);
  if (options.churn == 0) return;
  figures->Add("workers lost", static_cast<double>(fed.lost_workers));
  figures->Add("functions that ran again", static_cast<double>(fed.runs_again));
  figures->Add("steps repeated", static_cast<double>(fed.steps_repeated));
}

absl::Status MeasureOnce(const Options& options, Figures* figures) {
  MU_ASSIGN_OR_RETURN(const TempDirectory directory, TempDirectory::Create("muster-scale"));
  MU_ASSIGN_OR_RETURN(const Coordinated fed, MeasureCoordinator(options, directory.path()));
  Print(fed, options);
  MU_RETURN_IF_ERROR(CheckRepeated(fed, options));
  Note(fed, options, figures);
  PrintGaps("coordinator", fed);
  if (options.step_ms > 0) PrintEfficiency(fed, options);
  if (WithoutDirect(options)) return absl::OkStatus();
  MU_ASSIGN_OR_RETURN(const Measured direct,
                      MeasureDirect(options, directory.path(), fed.function));
  PrintGaps("direct", direct);
  figures->Add("direct, functions/s", direct.functions_per_second);
  figures->Add("direct, gap on the worker, p50 ms", direct.GapAt(0.5));
  figures->Add("direct, gap on the worker, p99 ms", direct.GapAt(0.99));
  figures->Add(kOfDirect, 100 * fed.functions_per_second / direct.functions_per_second);
  if (options.step_ms > 0) {  // an echo does not wait
    PrintEfficiency(direct, options);
    figures->Add("direct, efficiency, %", direct.Efficiency(options.steps, options.step_ms));
    return absl::OkStatus();
  }
  MU_ASSIGN_OR_RETURN(const Measured echo, MeasureEcho(options, directory.path()));
  figures->Add("echo, calls/s", echo.functions_per_second);
  figures->Add(kOfEcho, 100 * fed.functions_per_second / echo.functions_per_second);
  return absl::OkStatus();
}

absl::Status Measure(const Options& options) {
  Figures figures;
  for (int round = 0; round < options.rounds; ++round)
    MU_RETURN_IF_ERROR(MeasureOnce(options, &figures));
  std::printf("%d workers, medians of %d: %.0f functions/s; %.1f%% of direct, %.1f%% of the echo\n",
              options.workers, options.rounds, figures.Median("functions/s"),
              figures.Median(kOfDirect), figures.Median(kOfEcho));
  figures.Print();
  return absl::OkStatus();
}

}  // namespace
}  // namespace mu::scale

int main(int argc, char** argv) {
  mu::scale::Options options;
  mu::scale::HostOptions host;
  CLI::App app("How fast a coordinator feeds many workers");
  app.add_option("--workers", options.workers, "worker services")->check(CLI::Range(0, 20'000));
  app.add_option("--hosts", options.hosts, "processes that they are in")->check(CLI::Range(1, 64));
  app.add_option("--in_flight", options.in_flight, "functions per worker");
  app.add_option("--step_ms", options.step_ms, "that each step waits");
  app.add_option("--steps", options.steps, "of each function");
  app.add_option("--seconds", options.seconds, "of the window that is measured");
  app.add_option("--warm_up", options.warm_up, "seconds before it");
  app.add_option("--rounds", options.rounds, "how often all is measured; then medians")
      ->check(CLI::PositiveNumber);
  app.add_option("--churn", options.churn, "workers that end and come back each second");
  app.add_option("--member_timeout", options.member_timeout, "seconds of silence of a lost worker");
  app.add_option("--servers", options.servers, "each step changes a partition on so many")
      ->check(CLI::Range(0, 2'000));
  app.add_option("--queue", options.queue, "functions that wait all the time")
      ->check(CLI::Range(0, 10'000'000));
  app.add_option("--dataset_leases", options.dataset_leases,
                 "each step reads a record of a data set with so many leases")
      ->check(CLI::Range(0, 1'000'000));
  app.add_flag("--coordinator_only", options.coordinator_only, "no loop without a coordinator");
  // Of the processes that it starts.
  app.add_option("--host", host.kind)->group("");
  app.add_option("--coordinator", host.coordinator)->group("");
  app.add_option("--log", host.log)->group("");
  app.add_option("--ready_fd", host.ready_fd)->group("");
  app.add_option("--parent_pipe_fd", host.parent_fd)->group("");
  CLI11_PARSE(app, argc, argv);
  // As `coordinator` and `worker` do.
  mu::RaiseDescriptorLimit();
  mu::DisableFastBins();
  if (!host.kind.empty()) {
    // Before there are threads: RunHost waits for these.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    host.workers = options.workers;
    host.step_ms = options.step_ms;
    host.churn = options.churn;
    return mu::scale::RunHost(host);
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  mu::SetLogSeverity(mu::LogSeverity::ERROR);  // a line for each worker that comes or goes
  const absl::Status status = mu::scale::Measure(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
