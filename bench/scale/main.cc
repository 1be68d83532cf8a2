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
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/process_times.h"
#include "bench/scale/direct.h"
#include "bench/scale/host.h"
#include "common/base/steady_now.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "common/obs/log.h"
#include "common/process/descriptor_limit.h"
#include "common/process/fast_bins.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/launch/cluster_options.h"

namespace mu::scale {
namespace {

struct Options {
  int workers = 100;
  int hosts = 2;
  int in_flight = 2;
  double step_ms = 0;
  uint32_t steps = 1;
  double seconds = 5;
  double warm_up = 2;
  int rounds = 1;
  double churn = 0;
  bool coordinator_only = false;
  uint32_t member_timeout = 10;
};

// The processes of one kind.
class Hosts {
 public:
  Hosts(std::string directory, std::string kind)
      : directory_(std::move(directory)), kind_(std::move(kind)) {}

  absl::Status Start(int workers, const std::string& coordinator, const Options& options,
                     int hosts) {
    hosts = std::clamp(workers, 1, hosts);
    for (int h = 0; h < hosts; ++h) {
      const std::string log = absl::StrCat(directory_, "/", kind_, "-", processes_.size());
      SubprocessOptions process;
      process.path = FolderOfThisProgram() + "/scale";
      process.args = {"--host=" + kind_, "--log=" + log,
                      absl::StrCat("--workers=", workers / hosts + (h < workers % hosts ? 1 : 0)),
                      absl::StrCat("--step_ms=", options.step_ms),
                      absl::StrCat("--churn=", options.churn / hosts)};
      if (!coordinator.empty()) process.args.push_back("--coordinator=" + coordinator);
      process.output_file = log + ".log";
      process.ready_pipe = process.parent_pipe = true;
      MU_ASSIGN_OR_RETURN(auto started, Subprocess::Start(process));
      processes_.push_back(std::move(started));
      logs_.push_back(log);
    }
    for (const auto& process : processes_) {
      MU_ASSIGN_OR_RETURN(const std::string line, process->ReadReadyLine(absl::Minutes(2)));
      for (absl::string_view address : absl::StrSplit(line, ' ')) addresses_.emplace_back(address);
    }
    return absl::OkStatus();
  }
  absl::Status Register() {
    for (const auto& process : processes_) MU_RETURN_IF_ERROR(process->Kill(SIGUSR1));
    return absl::OkStatus();
  }
  absl::StatusOr<HostLog> Stop() {
    for (const auto& process : processes_) MU_RETURN_IF_ERROR(process->Kill(SIGTERM));
    HostLog log;
    for (size_t i = 0; i < processes_.size(); ++i) {
      const auto exit = processes_[i]->WaitFor(absl::Minutes(1));
      if (!exit.has_value() || !exit->ok()) {
        return absl::InternalError(
            absl::StrCat("a process of workers did not end well: ",
                         exit.has_value() ? exit->ToString() : "it does not end", "\n",
                         ReadFile(logs_[i] + ".log").value_or("")));
      }
      MU_RETURN_IF_ERROR(ReadHostLog(logs_[i], &log));
    }
    return log;
  }
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  const std::string directory_, kind_;
  std::vector<std::unique_ptr<Subprocess>> processes_;
  std::vector<std::string> logs_, addresses_;
};

// What happened in a window of time.
struct Measured {
  uint64_t begin_ns = 0, end_ns = 0;
  double functions_per_second = 0;
  double cpu_seconds = 0;
  std::vector<double> gaps_ms;  // sorted
  double worker_seconds = 0;    // the time that workers were up, of all of them
  double seconds() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
  double GapAt(double share) const {
    if (gaps_ms.empty()) return 0;
    return gaps_ms[std::min(gaps_ms.size() - 1,
                            static_cast<size_t>(share * static_cast<double>(gaps_ms.size())))];
  }
};

void Add(const HostLog& log, Measured* measured) {
  for (const HostLog::Interval& gap : log.gaps) {
    if (gap.until_ns < measured->begin_ns || gap.until_ns >= measured->end_ns) continue;
    measured->gaps_ms.push_back(static_cast<double>(gap.until_ns - gap.from_ns) * 1e-6);
  }
  std::sort(measured->gaps_ms.begin(), measured->gaps_ms.end());
  for (const HostLog::Interval& up : log.up) {
    const uint64_t from = std::max(up.from_ns, measured->begin_ns);
    const uint64_t until = std::min(up.until_ns, measured->end_ns);
    if (until > from) measured->worker_seconds += static_cast<double>(until - from) * 1e-9;
  }
}

double ResidentMb() { return static_cast<double>(ResidentBytes()) / 1e6; }
double PeakMb() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;  // in kilobytes
}

absl::Status Define(Coordinator& c, Function* nothing) {
  MU_ASSIGN_OR_RETURN(*nothing, c.DefineFunction("nothing", [](FunctionBuilder& f) {
    f.Return("one", ConstantTensor(Tensor::Scalar<float>(1)));
  }));
  return absl::OkStatus();
}

absl::Status StartCluster(const Options& options, std::unique_ptr<Coordinator>* coordinator,
                          Hosts* server, Hosts* workers) {
  ClusterOptions cluster;
  cluster.name = "scale";
  cluster.workers = options.workers;
  cluster.listen = "127.0.0.1:0";
  cluster.functions_in_flight = options.in_flight;
  // Enough for every worker to have its next functions at hand.
  cluster.queue_bound = static_cast<size_t>(std::max(1000, options.workers));
  cluster.member_timeout = absl::Seconds(options.member_timeout);
  cluster.start_timeout = absl::Minutes(2);
  MU_ASSIGN_OR_RETURN(*coordinator, CreateCoordinator(cluster, NewGrpcTransport()));
  MU_RETURN_IF_ERROR(server->Start(0, (*coordinator)->address(), options, 1));
  return workers->Start(options.workers, (*coordinator)->address(), options, options.hosts);
}

absl::Status AllRunOnce(Coordinator& c, const Function& nothing, const Options& options) {
  for (int i = 0; i < options.workers * options.in_flight; ++i) c.Schedule(nothing);
  return c.Join();
}

absl::StatusOr<Measured> MeasureCoordinator(const Options& options, const std::string& directory,
                                            pb::FunctionProto* proto) {
  Hosts server(directory, "server"), workers(directory, "join");
  std::unique_ptr<Coordinator> c;
  MU_RETURN_IF_ERROR(StartCluster(options, &c, &server, &workers));
  Function nothing;
  MU_RETURN_IF_ERROR(Define(*c, &nothing));
  *proto = nothing.proto();
  const absl::Time begin = SteadyNow();
  MU_RETURN_IF_ERROR(workers.Register());
  MU_RETURN_IF_ERROR(c->WaitForCluster(options.workers));
  const absl::Time registered = SteadyNow();
  MU_RETURN_IF_ERROR(AllRunOnce(*c, nothing, options));
  const absl::Time ran = SteadyNow();

  Measured measured;
  const absl::Time window_begin = SteadyNow() + absl::Seconds(options.warm_up);
  const absl::Time window_end = window_begin + absl::Seconds(options.seconds);
  uint64_t functions = 0;
  double resident = 0;
  for (absl::Time now = SteadyNow(); now < window_end; now = SteadyNow()) {
    if (measured.begin_ns == 0 && now >= window_begin) {
      functions = c->Stats().functions;
      measured.begin_ns = NowNs();
      measured.cpu_seconds = -OwnCpuSeconds();
      resident = ResidentMb();
    }
    c->Schedule(nothing, {.steps = options.steps});
  }
  measured.end_ns = NowNs();
  const RuntimeStats stats = c->Stats();
  measured.cpu_seconds += OwnCpuSeconds();
  measured.functions_per_second =
      static_cast<double>(stats.functions - functions) / measured.seconds();
  MU_RETURN_IF_ERROR(c->runtime().ended());
  std::printf(
      "coordinator: all %d workers registered %.2f s after the start, had ended their first "
      "functions after %.2f s\n"
      "  %.0f functions/s, %.1f us of processor each; %llu in all, %llu losses of workers; "
      "memory %.0f MB at the beginning of the window, %.0f MB at its end, %.0f MB at most\n",
      options.workers, absl::ToDoubleSeconds(registered - begin),
      absl::ToDoubleSeconds(ran - begin), measured.functions_per_second,
      1e6 * measured.cpu_seconds / (measured.functions_per_second * measured.seconds()),
      static_cast<unsigned long long>(stats.functions),
      static_cast<unsigned long long>(stats.failures.size() + stats.unlisted_failures.failures),
      resident, ResidentMb(), PeakMb());
  c->Cancel();
  MU_ASSIGN_OR_RETURN(const HostLog log, workers.Stop());
  Add(log, &measured);
  return measured;
}

absl::StatusOr<Measured> MeasureDirect(const Options& options, const std::string& directory,
                                       const pb::FunctionProto& function, bool echo) {
  Hosts hosts(directory, echo ? "echo" : "serve");
  MU_RETURN_IF_ERROR(hosts.Start(options.workers, "", options, options.hosts));
  const DirectOptions direct = {.addresses = hosts.addresses(),
                                .in_flight = options.in_flight,
                                .warm_up = absl::Seconds(options.warm_up),
                                .window = absl::Seconds(options.seconds)};
  MU_ASSIGN_OR_RETURN(const DirectResult result,
                      echo ? DriveEcho(direct) : DriveWorkers(direct, function, options.steps));
  Measured measured = {.begin_ns = result.begin_ns,
                       .end_ns = result.end_ns,
                       .functions_per_second = result.calls_per_second,
                       .cpu_seconds = result.cpu_seconds};
  MU_ASSIGN_OR_RETURN(const HostLog log, hosts.Stop());
  Add(log, &measured);
  std::printf("%s: %.0f calls/s, %.1f us of this process's processor each\n",
              echo ? "echo" : "direct", measured.functions_per_second,
              1e6 * measured.cpu_seconds / (measured.functions_per_second * measured.seconds()));
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
    pb::FunctionProto function;
    MU_ASSIGN_OR_RETURN(const Measured fed,
                        MeasureCoordinator(options, directory.path(), &function));
    rates.push_back(fed.functions_per_second);
    PrintGaps("coordinator", fed);
    const double busy = fed.functions_per_second * fed.seconds() *
                        static_cast<double>(options.steps) * options.step_ms * 1e-3;
    if (options.step_ms > 0) {
      efficiencies.push_back(100 * busy / fed.worker_seconds);
      std::printf("  steps ran in %.2f%% of the time in which workers were up\n",
                  efficiencies.back());
    }
    if (options.coordinator_only) continue;
    MU_ASSIGN_OR_RETURN(const Measured direct,
                        MeasureDirect(options, directory.path(), function, /*echo=*/false));
    PrintGaps("direct", direct);
    of_direct.push_back(100 * fed.functions_per_second / direct.functions_per_second);
    if (options.step_ms > 0) continue;  // an echo does not wait
    MU_ASSIGN_OR_RETURN(const Measured echo,
                        MeasureDirect(options, directory.path(), function, /*echo=*/true));
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
