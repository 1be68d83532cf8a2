// train, eval, predict and check.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "common/obs/log.h"
#include "coordinator/cli/checkpoint_signal.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/continue_command.h"
#include "coordinator/cli/notices.h"
#include "coordinator/cli/progress_line.h"
#include "coordinator/cli/report.h"
#include "coordinator/cli/run_outputs.h"
#include "coordinator/cli/run_setup.h"
#include "coordinator/cli/stop_signals.h"
#include "coordinator/training/dismissal.h"
#include "coordinator/training/exit_code.h"

namespace mu {
namespace {

JobUse UseOf(CliOptions::Command command) {
  switch (command) {
    case CliOptions::kEval:
      return JobUse::kEval;
    case CliOptions::kPredict:
      return JobUse::kPredict;
    case CliOptions::kCheck:
      return JobUse::kCheck;
    default:
      return JobUse::kTrain;
  }
}

void PrintProblems(const ProblemList& problems, const Notices& notices) {
  notices.Problems(absl::StrFormat("%d problem%s; nothing was started:\n%s", problems.size(),
                                   problems.size() == 1 ? "" : "s", problems.ToString()));
}

RunReport RunJob(CliOptions::Command command, const RunSetup& setup, const ModelRegistry& models,
                 absl::Status* error) {
  switch (command) {
    case CliOptions::kEval:
      return !setup.options.follow.empty() ? FollowJob(setup.job, models, setup.options, error)
                                           : EvalJob(setup.job, models, setup.options, error);
    case CliOptions::kPredict:
      return PredictJob(setup.job, models, setup.options, error);
    default:
      return TrainJob(setup.job, models, setup.options, error);
  }
}

// `written`: what came of it.
void TellOfReport(const absl::Status& written, const std::string& path, bool tell,
                  const Notices& notices) {
  if (!written.ok()) {
    notices.Problems(absl::StrCat("the report was not written: ", written.message(), "\n"));
  } else if (tell) {
    absl::PrintF("report: %s\n", path);
  }
}

void WriteOneReport(const RunReport& report, const std::string& path, bool tell,
                    const Notices& notices) {
  TellOfReport(WriteReport(report, path), path, tell, notices);
}

// Whether it is of a run that has ended well.
bool IsOfDoneRun(absl::string_view report) {
  const auto json = nlohmann::json::parse(report.begin(), report.end(), nullptr, false);
  const auto status = json.is_object() ? json.find("status") : json.end();
  return status != json.end() && *status == "done";
}

// Of a job that was done: the report of the run that trained it. One that is lost, or is of a run
// before that one, is replaced by none, since that of a run that has trained nothing would say 0
// steps.
void CopyReportOfDoneJob(const RunReport& report, const std::string& own, const std::string& to,
                         const Notices& notices) {
  const absl::StatusOr<std::string> text = ReadFile(own);
  if (text.ok() && IsOfDoneRun(*text)) {
    absl::Status written = MakeDirectories(DirectoryOf(to));
    if (written.ok()) written = WriteFileAtomic(to, *text);
    TellOfReport(written, to, true, notices);
  } else if (!FileExists(to)) {
    WriteOneReport(report, to, true, notices);
  }
}

// To `own`, in the run's directory, unless that is another's, and where --report says. An error of
// these is told but does not undo the run.
void WriteReports(const RunReport& report, const std::string& own, const std::string& asked,
                  const Notices& notices) {
  const std::string other = asked.empty() ? own : AbsolutePath(asked).value_or(asked);
  if (!report.refused && !report.earlier_stays_done)
    WriteOneReport(report, own, other == own, notices);
  if (other == own) return;
  report.was_done ? CopyReportOfDoneJob(report, own, other, notices)
                  : WriteOneReport(report, other, true, notices);
}

LogOptions LogOf(const CliOptions& cli) {
  LogOptions log;
  log.role = "coordinator";
  log.to_stderr = cli.verbose;
  log.format = ParseLogFormat(cli.log_format).value_or(LogFormat::kText);
  return log;
}

// When the program that started this one is gone, however it ended. As after a second Ctrl-C,
// nothing more is saved, and local daemons notice that their coordinator is gone and end too. A
// clean stop may take long, and another run may have this one's folder by then.
void EndWithParent(int parent_pipe_fd, bool json) {
  WatchParent(parent_pipe_fd, [json] {
    constexpr absl::string_view kText =
        "\nstopped at once: the program that started this one has ended\n";
    constexpr absl::string_view kJson =
        R"({"level":"error","role":"coordinator","message":"stopped at once: )"
        "the program that started this one has ended\"}\n";
    // Past the log, which may wait for a disk.
    const absl::string_view text = json ? kJson : kText;
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(kExitMachines);
  });
}

// The end of a job that was not begun.
int EndWithProblems(const CliOptions& cli, const RunSetup& setup, const ProblemList& problems,
                    const Notices& notices, StopSignals* signals) {
  InitLogging(LogOf(cli)).IgnoreError();  // no file: there may be no folder
  PrintProblems(problems, notices);
  for (const std::string& note : setup.notes) notices.Note(note);
  RunReport report;
  report.job = setup.job.name();
  report.status = "failed";
  report.error = problems.ToString();
  report.workers = cli.workers;
  report.ps = cli.ps;
  if (!setup.report.empty()) WriteOneReport(report, setup.report, true, notices);
  if (setup.options.local || !setup.gathers) return kExitBadJob;
  notices.Note(absl::StrCat("daemons that register at ", setup.options.listen, " are sent home"));
  std::fflush(stdout);
  RunOptions options = setup.options;
  options.stop = signals->count();
  const absl::Status sent = cli.command == CliOptions::kTrain
                                ? DismissDaemonsIfFree(setup.job, options)
                                : DismissDaemons(setup.job, options, /*owns_job=*/false);
  if (!sent.ok()) notices.Note(std::string(sent.message()));
  return kExitBadJob;
}

}  // namespace

int RunCheckCommand(const CliOptions& options, const ModelRegistry& models) {
  ProblemList problems;
  const RunSetup setup = SetUpRun(options, JobUse::kCheck, models, &problems);
  const Notices notices(/*json=*/false);
  if (!problems.empty()) PrintProblems(problems, notices);
  for (const std::string& note : setup.notes) notices.Note(note);
  if (!problems.empty()) return kExitBadJob;
  absl::PrintF("%s: no problem found in job %s\n", options.job_file, setup.job.name());
  return kExitDone;
}

int RunJobCommand(const CliOptions& cli, const ModelRegistry& models) {
  LogOptions log = LogOf(cli);
  const Notices notices(log.to_stderr && log.format == LogFormat::kJson);
  if (notices.json()) InitLogging(log).IgnoreError();  // for what is said from here on
  EndWithParent(cli.parent_pipe_fd, notices.json());
  // To read a job may take long: of a signal that comes meanwhile the run hears when it begins.
  StopSignals signals(notices.json());
  const CheckpointSignal checkpoint_signal;
  ProblemList problems;
  RunSetup setup = SetUpRun(cli, UseOf(cli.command), models, &problems);
  if (!problems.empty()) return EndWithProblems(cli, setup, problems, notices, &signals);

  log.file = JoinPath(setup.options.job_dir, "logs/coordinator.log");
  absl::Status logging = MakeDirectories(DirectoryOf(log.file));
  logging.Update(InitLogging(log));
  if (!logging.ok()) notices.Problems(absl::StrCat("no log is kept: ", logging.message(), "\n"));
  // Before anybody hears that the job runs.
  if (cli.command == CliOptions::kTrain) signals.SetSaves();
  absl::PrintF("job %s: %d workers, %d parameter servers, everything of this run is in %s\n",
               setup.job.name(), setup.options.workers, setup.options.ps, setup.options.job_dir);
  std::fflush(stdout);
  for (const std::string& note : setup.notes) notices.Note(note);

  ProgressPrinter printer(ProgressPrinter::ForStdout());
  setup.options.stop = signals.count();
  setup.options.checkpoint_requests = checkpoint_signal.count();
  setup.options.tell = [&printer](const std::string& line) { printer.Tell(line); };
  // What is announced is in the log as well.
  setup.options.announce = [&notices](const std::string& text) {
    if (!notices.json()) notices.Note(text);
  };
  setup.options.progress = [&printer](const Progress& progress) {
    printer.Show(progress, SteadyNow());
  };
  absl::Status error;
  const RunReport report = RunJob(cli.command, setup, models, &error);
  printer.Finish();

  absl::PrintF("%s", SummaryOf(report));
  const bool again = report.status == "stopped" || report.ended_by_evaluation ||
                     ExitCodeOf(error) == kExitMachines;
  if (cli.command == CliOptions::kTrain && again && !report.refused) {
    absl::PrintF("to continue: %s\n", ContinueCommand(cli, setup.job, setup.options.job_dir,
                                                      /*again=*/!report.begun));
  }
  if (report.status == "done" && cli.command == CliOptions::kPredict)
    absl::PrintF("predictions: %s\n", setup.options.predict_out);
  if (error.ok() && !cli.trace.empty()) absl::PrintF("trace: %s\n", cli.trace);
  WriteReports(report, OwnReport(cli, setup.options.job_dir), cli.report, notices);
  std::fflush(stdout);
  if (!error.ok()) {
    notices.Error(std::string(error.message()));
    const int code = ExitCodeOf(error);
    // Where the model is Muster's own, what failed in it is the job's values or its data.
    return code == kExitFunctionFailed && !setup.job.model().has_custom() ? kExitBadJob : code;
  }
  if (report.status == "stopped" && signals.signal() != 0)
    return ExitCodeOfSignal(signals.signal());
  return kExitDone;
}

}  // namespace mu
