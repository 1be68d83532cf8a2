// soak: jobs again and again while their daemons are taken away.
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/env/file_kind.h"
#include "common/metrics/metric_set.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/job_file.h"
#include "coordinator/cli/output_check.h"
#include "coordinator/cli/soak_prices.h"
#include "coordinator/cli/stop_signals.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/launch/chaos_plan.h"
#include "coordinator/soak/soak.h"
#include "coordinator/soak/soak_process.h"
#include "coordinator/training/exit_code.h"

namespace mu {
namespace {

constexpr char kProgram[] = "/proc/self/exe";  // a user's own program has its own models
constexpr int kFlagged = 1;  // exit code: every run was made, and some are not as they should be
constexpr uint64_t kMostPriceBytes = 1 << 16;

std::vector<std::string> TrainArgs(const CliOptions& cli, const std::string& job_file) {
  std::vector<std::string> args = {"train",
                                   job_file,
                                   absl::StrCat("--workers=", cli.workers),
                                   absl::StrCat("--ps=", cli.ps),
                                   absl::StrCat("--start_timeout=", cli.start_timeout_seconds),
                                   absl::StrCat("--member_timeout=", cli.member_timeout_seconds),
                                   absl::StrCat("--backup_after=", cli.backup_after_seconds)};
  for (const std::string& set : cli.overrides) args.push_back(absl::StrCat("--set=", set));
  for (const auto& [flag, value] :
       {std::pair("--listen", cli.listen), std::pair("--binary_dir", cli.binary_dir),
        std::pair("--log_format", cli.log_format), std::pair("--tls_cert", cli.tls.cert),
        std::pair("--tls_key", cli.tls.key), std::pair("--tls_ca", cli.tls.ca)}) {
    if (!value.empty()) args.push_back(absl::StrCat(flag, "=", value));
  }
  if (cli.local) args.push_back("--local");
  if (cli.insecure) args.push_back("--insecure");
  return args;
}

// By which the job itself goes, if by any.
std::string MetricOf(const CliOptions& cli, const muster::JobProto& job) {
  if (!cli.metric.empty()) return cli.metric;
  if (job.has_early_stopping()) return job.early_stopping().metric();
  if (job.checkpoint().has_keep_best()) return job.checkpoint().keep_best().metric();
  const bool named = job.data().has_eval() && job.evaluation().metrics_size() > 0;
  return named ? job.evaluation().metrics(0) : "";
}

// A job that stops early stops elsewhere each time; without plan of visits, workers that come and
// go read other records. Which batches the first steps of an epoch take depends on who is faster,
// and the last ones of leases are shorter.
bool UsesTheSameRecords(const muster::JobProto& job) {
  const std::string visitation = job.data().train().visitation();
  return !job.has_early_stopping() && job.training().max_steps() == 0 &&
         (visitation.empty() || visitation == "exactly_once");
}

// What is compared: the job, as it was read, with all of its files' names, and its machines.
std::string SetupOf(const CliOptions& cli, const muster::JobProto& job) {
  const std::string text = absl::StrCat(job.ShortDebugString(), cli.listen.empty());
  return absl::StrFormat("%016x, %d workers, %d servers", HashString(text), cli.workers, cli.ps);
}

SoakPrices ReadPrices(const std::string& path, ProblemList* problems) {
  const auto size = FileSize(path);
  if (size.ok() && *size > kMostPriceBytes) {
    problems->Add(Place{path}, "it is too large for a file of prices", "name another file");
    return {};
  }
  if (IsSpecialFile(path)) {
    problems->Add(Place{path}, "prices cannot come from a pipe, a socket or a device",
                  "save them as a file");
    return {};
  }
  const auto text = ReadFile(path);
  if (!text.ok()) {
    problems->Add(Place{path}, text.status());
    return {};
  }
  return ParsePrices(*text, path, problems);
}

absl::Duration DurationOf(const std::string& flag, const std::string& text, ProblemList* problems) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration()) return duration;
  problems->Add(Place{flag}, absl::StrCat("`", text, "` is no time"), "write 90s, 20m or 1h");
  return absl::InfiniteDuration();
}

struct Plan {
  SoakOptions options;
  std::vector<SoakJob> jobs;
};

// The files that the record consists of.
void CheckRecord(const CliOptions& cli, std::vector<InputFile> inputs, ProblemList* problems) {
  if (!cli.prices.empty()) inputs.push_back({cli.prices, "what --prices names"});
  std::vector<PlannedOutput> outputs;
  for (const char* name : {kSoakPageName, kSoakRecordName})
    outputs.push_back({.place = Place{"--record"},
                       .path = JoinPath(cli.record, name),
                       .folder_is_made = true,
                       .remedy = "name another folder"});
  CheckOutputs(outputs, inputs, problems);
}

void AddJob(const CliOptions& cli, const std::string& path, const ModelRegistry& models,
            std::atomic<int>* stop, Plan* plan, std::vector<InputFile>* inputs,
            ProblemList* problems) {
  const size_t before = problems->size();
  const JobFile file = LoadJobFile(path,
                                   {.use = JobUse::kTrain,
                                    .overrides = cli.overrides,
                                    .models = models.Names(),
                                    .files_elsewhere = !cli.listen.empty()},
                                   problems);
  for (InputFile& input : InputsOf(path, file.job)) inputs->push_back(std::move(input));
  if (problems->size() > before) return;
  for (const SoakJob& other : plan->jobs) {
    if (other.name != file.job.name()) continue;
    problems->Add(file.places.Find("name"),
                  absl::StrCat("another job is called ", other.name, ", too"),
                  "give each job a name of its own");
  }
  SoakCommand command;
  command.program = kProgram;
  command.args = TrainArgs(cli, path);
  command.metric = MetricOf(cli, file.job);
  command.exact = UsesTheSameRecords(file.job);
  command.preempt_command = cli.preempt_command;
  command.stop = stop;
  plan->jobs.push_back({file.job.name(), SetupOf(cli, file.job),
                        [command](const SoakRun& run) { return TrainAsProcess(command, run); }});
}

Plan MakePlan(const CliOptions& cli, const ModelRegistry& models, std::atomic<int>* stop,
              ProblemList* problems) {
  Plan plan;
  SoakOptions& options = plan.options;
  options.record = cli.record;
  options.preemption = cli.preemption;
  if (const auto parsed = ChaosPlan::Parse(cli.preemption); !parsed.ok())
    problems->Add(Place{"--preempt"}, std::string(parsed.status().message()));
  if (!cli.listen.empty() && cli.preempt_command.empty()) {
    problems->Add(Place{"--listen"}, "the daemons of a cluster are not this machine's to end",
                  "say with --preempt_command how to end one");
  }
  if (cli.listen.empty() && !cli.preempt_command.empty()) {
    problems->Add(Place{"--preempt_command"}, "is for the daemons of a cluster",
                  "leave it out, or wait for them with --listen");
  }
  if (!cli.metric.empty()) {
    if (const auto better = BetterOf(cli.metric); !better.ok())
      problems->Add(Place{"--metric"}, std::string(better.status().message()));
  }
  if (!cli.soak_for.empty()) options.lasts = DurationOf("--for", cli.soak_for, problems);
  options.rounds = cli.rounds == 0 && cli.soak_for.empty() ? 1
                   : cli.rounds == 0                       ? std::nullopt
                                                           : std::optional(cli.rounds);
  options.limits.quality = cli.quality_limit;
  if (!cli.prices.empty()) options.prices = ReadPrices(cli.prices, problems);
  options.stop = stop;
  options.tell = [](const std::string& line) {
    absl::PrintF("%s\n", line);
    std::fflush(stdout);
  };
  std::vector<InputFile> inputs;
  for (const std::string& path : cli.job_files)
    AddJob(cli, path, models, stop, &plan, &inputs, problems);
  CheckRecord(cli, std::move(inputs), problems);
  return plan;
}

}  // namespace

int RunSoakCommand(const CliOptions& cli, const ModelRegistry& models) {
  StopSignals signals;  // saves nothing: a run that is stopped is thrown away
  ProblemList problems;
  const Plan plan = MakePlan(cli, models, signals.count(), &problems);
  if (!problems.empty()) {
    absl::FPrintF(stderr, "%d problem%s; nothing was started:\n%s", problems.size(),
                  problems.size() == 1 ? "" : "s", problems.ToString());
    return kExitBadJob;
  }
  const absl::StatusOr<SoakResult> result = Soak(plan.options, plan.jobs);
  if (!result.ok()) {
    absl::FPrintF(stderr, "error: %s\n", std::string(result.status().message()));
    return absl::IsInvalidArgument(result.status()) || absl::IsFailedPrecondition(result.status())
               ? kExitBadJob
               : kExitMachines;
  }
  absl::PrintF("%d runs, %d flagged: %s\n", result->runs, result->flagged, result->page);
  std::fflush(stdout);
  if (signals.signal() != 0) return ExitCodeOfSignal(signals.signal());
  return result->flagged == 0 ? kExitDone : kFlagged;
}

}  // namespace mu
