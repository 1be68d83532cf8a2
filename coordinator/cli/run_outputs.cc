#include "coordinator/cli/run_outputs.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/env/file_identity.h"
#include "coordinator/cli/output_check.h"
#include "coordinator/cli/placement_flag.h"
#include "coordinator/cli/report.h"
#include "coordinator/training/followed_run.h"
#include "coordinator/training/job_record.h"

namespace mu {
namespace {

// Whether the report of this command has the usual name in the run's directory. Not if that was
// trained, and is read.
bool HasUsualReport(const CliOptions& cli, const std::string& job_dir) {
  return cli.command == CliOptions::kTrain || absl::IsNotFound(ReadJobRecord(job_dir).status());
}

// What the run reads, and what lies where it keeps its own files.
std::vector<InputFile> InputsOfRun(const CliOptions& cli, const RunSetup& setup) {
  std::vector<InputFile> inputs = InputsOf(cli.job_file, setup.job);
  const std::string& job_dir = setup.options.job_dir;
  const auto add = [&inputs](std::vector<InputFile> files) {
    for (InputFile& file : files) inputs.push_back(std::move(file));
  };
  add(HasUsualReport(cli, job_dir) ? RunFilesOf(job_dir) : FilesOfTrainedRun(job_dir));
  // `run`: whose checkpoints are read. Its report may be this run's own, which is replaced.
  const auto add_other = [&](const std::string& run) {
    if (!run.empty() && FileIdentity(run) != FileIdentity(job_dir)) add(FilesOfTrainedRun(run));
  };
  add_other(RunOfCheckpoint(setup.job.warm_start().checkpoint()));
  if (!setup.options.follow.empty()) add_other(DirectoryOfFollowedRun(setup.options.follow));
  if (const std::string& checkpoint = setup.options.checkpoint; !checkpoint.empty()) {
    inputs.push_back({checkpoint, "the checkpoint that is read"});
    add_other(RunOfCheckpoint(checkpoint));
  }
  const std::string load = PlacementFile(cli.placement);
  for (const auto& [path, flag] :
       {std::pair(load, "--placement"), std::pair(cli.tls.cert, "--tls_cert"),
        std::pair(cli.tls.key, "--tls_key"), std::pair(cli.tls.ca, "--tls_ca")}) {
    if (!path.empty()) inputs.push_back({path, absl::StrCat("what ", flag, " names")});
  }
  return inputs;
}

}  // namespace

std::string OwnReport(const CliOptions& cli, const std::string& job_dir) {
  if (HasUsualReport(cli, job_dir)) return JoinPath(job_dir, kReportName);
  const char* const what = cli.command == CliOptions::kPredict ? "predict_" : "eval_";
  return JoinPath(job_dir, absl::StrCat(what, kReportName));
}

std::string CheckRunOutputs(const CliOptions& cli, const RunSetup& setup,
                            const Place& job_dir_place, ProblemList* problems) {
  const std::string& job_dir = setup.options.job_dir;
  const std::vector<InputFile> inputs = InputsOfRun(cli, setup);
  const auto output = [&](const char* flag, const std::string& path) {
    // Whether the run's directory can be made is told by itself.
    const bool in_run = AbsolutePath(DirectoryOf(path)).value_or("") == job_dir;
    return PlannedOutput{.place = Place{flag}, .path = path, .folder_is_made = in_run};
  };
  const PlannedOutput report = output("--report", cli.report);
  ProblemList of_report;
  CheckOutputs({report}, inputs, &of_report);
  std::vector<PlannedOutput> outputs = {report, output("--trace", cli.trace),
                                        output("--out", setup.options.predict_out)};
  const std::string own = OwnReport(cli, job_dir);
  // That the directory cannot be made is told already.
  if (DirectoryExists(job_dir) &&
      (cli.report.empty() || FileIdentity(cli.report) != FileIdentity(own))) {
    outputs.push_back({.place = job_dir_place,
                       .path = own,
                       .folder_is_made = true,
                       .remedy = "name another folder for the run"});
  }
  CheckOutputs(outputs, inputs, problems);
  return of_report.empty() ? cli.report : "";
}

}  // namespace mu
