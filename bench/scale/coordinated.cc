#include "bench/scale/coordinated.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/process_times.h"
#include "bench/scale/hosts.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/obs/telemetry.h"
#include "coordinator/frontend/dataset_spec.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/launch/cluster_options.h"

namespace mu::scale {
namespace {

double ResidentMb() { return static_cast<double>(ResidentBytes()) / 1e6; }
double MostMb() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;  // in kilobytes
}

// The smallest work that the options allow.
absl::StatusOr<Function> DefineNothing(Coordinator& c) {
  return c.DefineFunction("nothing", [](FunctionBuilder& f) {
    f.Return("one", ConstantTensor(Tensor::Scalar<float>(1)));
  });
}

absl::StatusOr<Function> DefineUpdate(Coordinator& c, int servers) {
  const int64_t size = servers;  // a partition of one number for each server
  MU_ASSIGN_OR_RETURN(
      const Variable counts,
      c.CreateVariable({.name = "counts",
                        .shape = Shape({size}),
                        .trainable = false,
                        .partitioner = FixedShards{static_cast<uint32_t>(servers)}}));
  const Tensor ones =
      Tensor::Of<float>(Shape({size}), std::vector<float>(static_cast<size_t>(servers), 1));
  return c.DefineFunction("update",
                          [&](FunctionBuilder&) { AssignAdd(counts, ConstantTensor(ones)); });
}

absl::StatusOr<Function> DefineRead(Coordinator& c, int leases, const std::string& directory) {
  constexpr uint32_t kRecords = 16;  // of a lease, and a batch has one of them
  const std::string file = directory + "/data.csv";
  {
    std::ofstream out(file);
    for (int64_t i = 0; i < int64_t{leases} * kRecords; ++i) out << i % 10 << "\n";
    if (!out.flush()) return absl::UnavailableError("cannot write " + file);
  }
  // Only shuffled data has leases as small as one likes.
  MU_ASSIGN_OR_RETURN(
      const Dataset data,
      c.CreateDataset(
          Csv({file}).Number("x", 0).Batch(1).Shuffle(kRecords).BlockRecords(kRecords)));
  return c.DefineFunction(
      "read", [&](FunctionBuilder& f) { f.Return("x", ReduceSum(f.NextBatch(data)["x"])); });
}

absl::StatusOr<Function> Define(Coordinator& c, const Options& options,
                                const std::string& directory) {
  if (options.dataset_leases > 0) return DefineRead(c, options.dataset_leases, directory);
  if (options.servers > 0) return DefineUpdate(c, options.servers);
  return DefineNothing(c);
}

absl::Status StartCluster(const Options& options, std::unique_ptr<Coordinator>* coordinator,
                          Hosts* servers, Hosts* workers) {
  ClusterOptions cluster;
  cluster.name = "scale";
  cluster.workers = options.workers;
  cluster.listen = "127.0.0.1:0";
  cluster.functions_in_flight = options.in_flight;
  cluster.ps = std::max(1, options.servers);
  // Enough for every worker to have its next functions at hand. The queue is as long as it may be.
  cluster.queue_bound =
      static_cast<size_t>(options.queue > 0 ? options.queue : std::max(1000, options.workers));
  cluster.member_timeout = absl::Seconds(options.member_timeout);
  cluster.start_timeout = absl::Minutes(2);
  MU_ASSIGN_OR_RETURN(*coordinator, CreateCoordinator(cluster, NewGrpcTransport()));
  MU_RETURN_IF_ERROR(servers->Start(cluster.ps, (*coordinator)->address(), options, 1));
  return workers->Start(options.workers, (*coordinator)->address(), options, options.hosts);
}

absl::Status AllRunOnce(Coordinator& c, const Function& function, const Options& options) {
  for (int i = 0; i < options.workers * options.in_flight; ++i) c.Schedule(function);
  return c.Join();
}

// Schedules until the window is over, which begins after the warm-up and when the queue is full.
absl::Status Feed(Coordinator& c, const Function& function, const Options& options,
                  Coordinated* measured) {
  constexpr absl::Duration kFilling = absl::Minutes(2);
  const absl::Time begin = SteadyNow() + absl::Seconds(options.warm_up);
  absl::Time end = absl::InfiniteFuture();
  uint64_t functions = 0;
  for (absl::Time now = SteadyNow(); now < end; now = SteadyNow()) {
    const bool full =
        measured->begin_ns > 0 || c.Counts().unfinished >= static_cast<size_t>(options.queue);
    if (!full && now >= begin + kFilling)
      return absl::DeadlineExceededError(
          "workers are faster than functions can be scheduled, so the queue does not fill; give "
          "steps a --step_ms");
    if (measured->begin_ns == 0 && full && now >= begin) {
      end = now + absl::Seconds(options.seconds);
      functions = c.Counts().functions;
      measured->begin_ns = NowNs();
      measured->cpu_seconds = -OwnCpuSeconds();
      measured->begin_mb = ResidentMb();
    }
    c.Schedule(function, {.steps = options.steps});
  }
  measured->end_ns = NowNs();
  functions = c.Counts().functions - functions;
  measured->cpu_seconds += OwnCpuSeconds();
  measured->end_mb = ResidentMb();
  measured->most_mb = MostMb();
  measured->functions_per_second = static_cast<double>(functions) / measured->seconds();
  return c.runtime().ended();
}

// Once nothing runs any more.
void NoteRepeated(const RuntimeStats& stats, const HostLog& log, Coordinated* measured) {
  measured->runs_again = stats.runs - stats.functions;
  measured->steps_repeated = log.steps - std::min(log.steps, stats.steps);
  measured->results_again =
      stats.unlisted_failures.steps_repeated + stats.backup_runs.steps_repeated;
  measured->lost_workers = stats.unlisted_failures.of_workers.failures;
  for (const MemberFailure& failure : stats.failures) {
    measured->lost_workers += failure.role == pb::ROLE_WORKER ? 1 : 0;
    measured->results_again += failure.steps_repeated;
  }
}

}  // namespace

absl::StatusOr<Coordinated> MeasureCoordinator(const Options& options,
                                               const std::string& directory) {
  Hosts servers(directory, "server"), workers(directory, "join");
  std::unique_ptr<Coordinator> c;
  MU_RETURN_IF_ERROR(StartCluster(options, &c, &servers, &workers));
  MU_ASSIGN_OR_RETURN(const Function function, Define(*c, options, directory));
  Coordinated measured;
  measured.function = function.proto();
  const absl::Time begin = SteadyNow();
  MU_RETURN_IF_ERROR(workers.Go());
  MU_RETURN_IF_ERROR(c->WaitForCluster(options.workers));
  measured.registered_seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  MU_RETURN_IF_ERROR(AllRunOnce(*c, function, options));
  measured.first_seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  MU_RETURN_IF_ERROR(Feed(*c, function, options, &measured));
  // What is still under way would count as repeated.
  if (options.churn > 0) MU_RETURN_IF_ERROR(c->Join());
  const RuntimeStats stats = c->Stats();
  measured.functions = stats.functions;
  c->Cancel();
  MU_ASSIGN_OR_RETURN(const HostLog log, workers.Stop());
  measured.Add(log);
  if (options.churn > 0) NoteRepeated(stats, log, &measured);
  return measured;
}

absl::Status CheckRepeated(const Coordinated& measured, const Options& options) {
  const uint64_t most = measured.lost_workers * static_cast<uint64_t>(options.in_flight);
  if (measured.steps_repeated <= most && measured.runs_again <= most) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      measured.lost_workers, " losses of workers with ", options.in_flight, " functions each made ",
      measured.runs_again, " functions and ", measured.steps_repeated,
      " steps run again: more than the step that each of these functions was at"));
}

void Print(const Coordinated& measured, const Options& options) {
  std::printf(
      "coordinator: all %d workers registered %.2f s after the start, had ended their first "
      "functions after %.2f s\n"
      "  %.0f functions/s, %.1f us of processor each; %llu in all; "
      "memory %.0f MB at the beginning of the window, %.0f MB at its end, %.0f MB at most\n",
      options.workers, measured.registered_seconds, measured.first_seconds,
      measured.functions_per_second, measured.cpu_us_each(),
      static_cast<unsigned long long>(measured.functions), measured.begin_mb, measured.end_mb,
      measured.most_mb);
  if (options.churn == 0) return;
  std::printf(
      "  %llu losses of workers: %llu functions ran again, %llu steps repeated (at most %llu: "
      "%d functions in flight each), of which the coordinator had %llu results\n",
      static_cast<unsigned long long>(measured.lost_workers),
      static_cast<unsigned long long>(measured.runs_again),
      static_cast<unsigned long long>(measured.steps_repeated),
      static_cast<unsigned long long>(measured.lost_workers *
                                      static_cast<uint64_t>(options.in_flight)),
      options.in_flight, static_cast<unsigned long long>(measured.results_again));
}

}  // namespace mu::scale
