#include "coordinator/cli/run_setup.h"

#include <unistd.h>

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/text.h"
#include "common/env/file.h"
#include "common/env/file_identity.h"
#include "common/env/subprocess.h"
#include "common/process/observe_flags.h"
#include "coordinator/cli/checkpoint_choice.h"
#include "coordinator/cli/continue_command.h"
#include "coordinator/cli/data_and_model_check.h"
#include "coordinator/cli/job_file.h"
#include "coordinator/cli/placement_flag.h"
#include "coordinator/cli/run_outputs.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/launch/chaos_plan.h"
#include "coordinator/training/job_record.h"

namespace mu {
namespace {

// ./runs/NAME-TIME; several that begin in one second differ by their process.
std::string NewRunDirectory(const std::string& name) {
  const std::string time = absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone());
  std::string path = absl::StrCat(kRunsFolder, "/", name, "-", time);
  if (FileExists(path)) absl::StrAppend(&path, "-", ::getpid());
  return path;
}

std::string Absolute(const std::string& path) {
  const absl::StatusOr<std::string> absolute = AbsolutePath(path);
  return absolute.ok() ? *absolute : path;
}

// Of the checkpoint that a run is to begin with. No other one is taken in its place: the run's
// record names it, so that the command that is given again continues the run.
void CheckBeginning(const RunSetup& setup, ProblemList* problems) {
  const Place place{"--checkpoint"};
  const std::string& checkpoint = setup.options.checkpoint;
  const absl::Status good = CheckManifestAndSizes(checkpoint);
  if (!IsDamage(good)) return problems->Add(place, good);
  const auto record = ReadJobRecord(setup.options.job_dir);
  const bool continues =
      record.ok() && record->status != "done" &&
      FileIdentity(DirectoryOf(DirectoryOf(checkpoint))) == FileIdentity(setup.options.job_dir);
  problems->Add(place, std::string(good.message()),
                continues ? "without --checkpoint the run continues from its newest good one"
                          : InsteadOf(checkpoint, place));
}

// With which values training begins. The command that is given again means those of before,
// whatever the run that it names has got since.
void SettleBeginning(const CliOptions& cli, RunSetup* setup, ProblemList* problems) {
  RunOptions& options = setup->options;
  options.named_checkpoint = Absolute(cli.checkpoint);
  const auto record = ReadJobRecord(options.job_dir);
  const bool again = record.ok() && BeganWith(*record, options.named_checkpoint);
  const bool done = again && record->status == "done";
  // What is done, or has checkpoints of its own, needs nothing of the other run any more.
  const bool needs_none =
      again && (done ? !options.train_again : HasOwnCheckpoint(*record, options.job_dir));
  if (needs_none) {
    options.checkpoint = record->checkpoint;
    return;
  }
  if (again && !done && CandidatesAt(record->checkpoint).ok()) {
    options.checkpoint = record->checkpoint;
  } else if (const auto found = CandidatesAt(cli.checkpoint); found.ok()) {
    options.checkpoint = Absolute(found->paths.front());
  } else {
    return problems->Add(Place{"--checkpoint"}, std::string(found.status().message()),
                         "name a checkpoint, or the folder of a run that has one");
  }
  CheckBeginning(*setup, problems);
}

void SettleCheckpoint(const CliOptions& cli, JobUse use, const ModelRegistry& models,
                      RunSetup* setup, ProblemList* problems) {
  if (use == JobUse::kCheck) return;
  if (!cli.follow.empty()) return;  // they come one by one
  if (use == JobUse::kTrain) {
    if (!cli.checkpoint.empty()) SettleBeginning(cli, setup, problems);
    return;
  }
  const auto found = CandidatesOf(cli, setup->job);
  if (!found.ok()) {
    problems->Add(Place{"--checkpoint"}, std::string(found.status().message()),
                  !cli.checkpoint.empty() ? "name a checkpoint, or the folder of a run that has one"
                                          : "train first, or name a checkpoint");
    return;
  }
  const auto fits = [&](const std::string& checkpoint) {
    return CheckCheckpointFits(setup->job, models, checkpoint, /*loads=*/true);
  };
  const std::string chosen =
      ChooseCheckpoint(*found, Place{"--checkpoint"}, fits, &setup->notes, problems);
  if (!chosen.empty()) setup->options.checkpoint = Absolute(chosen);
}

void SettleChaos(const CliOptions& cli, RunOptions* options, ProblemList* problems) {
  if (cli.chaos.empty()) return;
  options->chaos = cli.chaos;
  if (!options->local) {
    problems->Add(Place{"--chaos"}, "works on the daemons of this machine only",
                  "use it with --local");
  }
  if (const auto plan = ChaosPlan::Parse(cli.chaos); !plan.ok()) {
    problems->Add(Place{"--chaos"}, std::string(plan.status().message()), "");
  }
}

// Each name once; what is wrong with them is told.
std::vector<std::string> PredictColumns(const std::vector<std::string>& given,
                                        ProblemList* problems) {
  std::vector<std::string> names;
  std::set<std::string> told;
  for (const std::string& name : given) {
    if (name.empty()) {
      if (told.insert(name).second)
        problems->Add(Place{"--columns"}, "there is an empty name", "leave out a comma");
    } else if (!absl::c_linear_search(names, name)) {
      names.push_back(name);
    } else if (told.insert(name).second) {
      problems->Add(Place{"--columns"}, absl::StrCat("names ", name, " twice"), "name it once");
    }
  }
  return names;
}

// Where the run's directory was named; nobody did: where another one can be.
Place PlaceOfJobDir(const CliOptions& cli, const JobFile& file) {
  const bool by_job = cli.job_dir.empty() && !file.job.job_dir().empty();
  return by_job ? file.places.Find("job_dir") : Place{"--job_dir"};
}

}  // namespace

RunSetup SetUpRun(const CliOptions& cli, JobUse use, const ModelRegistry& models,
                  ProblemList* problems) {
  RunSetup setup;
  RunOptions& options = setup.options;
  options.local = cli.local || cli.listen.empty();
  const JobFile file = LoadJobFile(cli.job_file,
                                   {.use = use,
                                    .overrides = cli.overrides,
                                    .models = models.Names(),
                                    .files_elsewhere = !options.local},
                                   problems);
  setup.job = file.job;
  options.workers = cli.workers;
  options.ps = cli.ps;
  options.listen = cli.listen;
  options.tls = cli.tls;
  options.insecure = cli.insecure;
  options.http = cli.http;
  options.log_format = cli.log_format;
  if (!cli.http.empty()) {
    const auto http = HttpAddress(cli.http, cli.tls, cli.insecure);
    if (!http.ok()) problems->Add(Place{"command line"}, std::string(http.status().message()), "");
  }
  options.start_timeout = absl::Seconds(cli.start_timeout_seconds);
  options.member_timeout = absl::Seconds(cli.member_timeout_seconds);
  options.backup_after = absl::Seconds(cli.backup_after_seconds);
  options.binary_dir = cli.binary_dir.empty() ? FolderOfThisProgram() : cli.binary_dir;
  options.job_dir = Absolute(!cli.job_dir.empty()           ? cli.job_dir
                             : !setup.job.job_dir().empty() ? setup.job.job_dir()
                                                            : NewRunDirectory(setup.job.name()));
  if (use == JobUse::kTrain && cli.job_dir.empty() && setup.job.job_dir().empty()) {
    if (const std::string run = UnfinishedRun(kRunsFolder, setup.job); !run.empty()) {
      setup.notes.push_back(absl::StrCat("a new run begins; ", run,
                                         " holds one of this job that has not come to its end: ",
                                         "--job_dir=", run, " continues it"));
    }
  }
  options.take_over = cli.take_over;
  options.train_again = cli.train_again;
  options.trace_file = cli.trace;
  if (!cli.follow.empty()) options.follow = Absolute(cli.follow);
  const Place job_dir_place = PlaceOfJobDir(cli, file);
  for (const auto& [place, path] :
       {std::pair(job_dir_place, options.job_dir), std::pair(Place{"--checkpoint"}, cli.checkpoint),
        std::pair(Place{"--binary_dir"}, options.binary_dir)}) {
    // What daemons are told travels as protobuf's text, which takes nothing else.
    if (const std::string valid = ValidUtf8(path); valid != path) {
      problems->Add(place, absl::StrCat(valid, " is not UTF-8"),
                    "rename the folder, or name another");
    }
  }
  SettleChaos(cli, &options, problems);
  SettlePlacement(cli, &options, problems);
  const bool new_directory = !FileExists(options.job_dir);
  SettleCheckpoint(cli, use, models, &setup, problems);
  if (use == JobUse::kPredict) {
    options.predict_out =
        cli.out.empty() ? JoinPath(options.job_dir, "predictions.csv") : Absolute(cli.out);
    options.predict_columns = PredictColumns(cli.columns, problems);
  }
  if (const absl::Status made = MakeJobDirectory(options.job_dir); !made.ok()) {
    problems->Add(job_dir_place, std::string(made.message()),
                  "name a folder that can be made and written to");
  }
  if (use != JobUse::kCheck) setup.report = CheckRunOutputs(cli, setup, job_dir_place, problems);
  for (const std::string& problem : CheckEnvironment(options, &setup.gathers))
    problems->Add(Place{"command line"}, problem);
  CheckDataAndModel(cli.job_file, file, use, models, options, &setup.notes, problems);
  // To find out whether the directory can be made, it was made.
  if (new_directory && (use == JobUse::kCheck || !problems->empty())) {
    ::rmdir(options.job_dir.c_str());
    if (DirectoryOf(options.job_dir) == Absolute(kRunsFolder)) ::rmdir(kRunsFolder);
  }
  return setup;
}

}  // namespace mu
