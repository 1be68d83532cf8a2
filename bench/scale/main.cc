// How fast a coordinator feeds many workers. Hundreds or thousands of real worker services in a few
// processes, over real gRPC on loopback, whose steps wait a given time and do nothing else; a real
// coordinator in this process. Printed: functions a second, the gap on the worker between the end
// of a function and the start of the next, the efficiency, the coordinator's processor time and
// memory, and how long it takes until all workers have registered and ended their first function.
//
// Beside it, in the same run: the same services driven by a loop that needs no coordinator
// ("direct"), and an echo over calls of the same kind with as many in flight. On a busy machine the
// ratios to these two are what counts.
//
//   build/bin/scale --workers=300                             steps that do nothing: saturation
//   build/bin/scale --workers=40 --step_ms=20                 2,000 functions a second
//   build/bin/scale --workers=1000 --step_ms=50 --steps=5     packed
//   build/bin/scale --workers=1000 --step_ms=200 --churn=10   10 workers end and come back a second
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/scale/coordinated.h"
#include "bench/scale/direct.h"
#include "bench/scale/direct_workers.h"
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

void PrintGaps(const char* who, const Measured& measured) {
  std::printf("%s: gap on the worker p50 %.3f ms, p99 %.3f ms of %zu\n", who, measured.GapAt(0.5),
              measured.GapAt(0.99), measured.gaps_ms.size());
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::Status Measure(const Options& options) {
  std::vector<double> rates, of_direct, of_echo, efficiencies;
  for (int round = 0; round < options.rounds; ++round) {
    MU_ASSIGN_OR_RETURN(const TempDirectory directory, TempDirectory::Create("muster-scale"));
    MU_ASSIGN_OR_RETURN(const Coordinated fed, MeasureCoordinator(options, directory.path()));
    Print(fed, options);
    MU_RETURN_IF_ERROR(CheckRepeated(fed, options));
    rates.push_back(fed.functions_per_second);
    PrintGaps("coordinator", fed);
    if (options.step_ms > 0) {
      efficiencies.push_back(fed.Efficiency(options.steps, options.step_ms));
      std::printf("  steps ran in %.2f%% of the time in which workers were up\n",
                  efficiencies.back());
    }
    if (options.coordinator_only) continue;
    MU_ASSIGN_OR_RETURN(const Measured direct,
                        MeasureDirect(options, directory.path(), fed.function));
    PrintGaps("direct", direct);
    if (options.step_ms > 0) {
      std::printf("  steps ran in %.2f%% of the time in which workers were up\n",
                  direct.Efficiency(options.steps, options.step_ms));
    }
    of_direct.push_back(100 * fed.functions_per_second / direct.functions_per_second);
    if (options.step_ms > 0) continue;  // an echo does not wait
    MU_ASSIGN_OR_RETURN(const Measured echo, MeasureEcho(options, directory.path()));
    of_echo.push_back(100 * fed.functions_per_second / echo.functions_per_second);
  }
  std::printf("%d workers, medians of %d: %.0f functions/s; %.1f%% of direct, %.1f%% of the echo",
              options.workers, options.rounds, Median(rates), Median(of_direct), Median(of_echo));
  if (options.step_ms > 0) std::printf("; efficiency %.2f%%", Median(efficiencies));
  std::printf("\n");
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
  app.add_option("--rounds", options.rounds, "how often all is measured; then medians");
  app.add_option("--churn", options.churn, "workers that end and come back each second");
  app.add_option("--member_timeout", options.member_timeout, "seconds of silence of a lost worker");
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
