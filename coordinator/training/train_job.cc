#include "coordinator/training/train_job.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/training/dismissal.h"
#include "coordinator/training/exit_code.h"
#include "coordinator/training/followed_run.h"
#include "coordinator/training/job_session.h"
#include "coordinator/training/metric_text.h"
#include "coordinator/training/stop_patience.h"
#include "coordinator/training/trained_model.h"

namespace mu {
namespace {

// Whether a run ended because its user asked for that.
bool Stopped(const absl::Status& error, const RunOptions& options) {
  return absl::IsCancelled(error) && options.stop != nullptr && options.stop->load() > 0;
}

RunReport NewReport(const muster::JobProto& job, const RunOptions& options) {
  RunReport report;
  report.job = job.name();
  report.status = "done";
  report.workers = options.workers;
  report.ps = options.ps;
  report.job_dir = options.job_dir;
  return report;
}

// Nobody continues the job. What is to be tried again, or was stopped, is continued by another
// coordinator with the same daemons.
bool IsOver(const RunReport& report, const absl::Status& error) {
  const int code = ExitCodeOf(error);
  return code == kExitBadJob || code == kExitFunctionFailed ||
         (code == kExitDone && report.status == "done");
}

// What was found out, or went wrong, before there was a cluster.
RunReport RunWithoutSession(const muster::JobProto& job, const RunOptions& options,
                            absl::Status* error) {
  RunReport report = NewReport(job, options);
  if (Stopped(*error, options)) {
    report.status = "stopped";
    *error = absl::OkStatus();
  }
  if (!error->ok()) {
    report.status = "failed";
    report.error = std::string(error->message());
  }
  // Another process follows the run. It may have this job_dir, too, and the daemons may be its.
  report.refused = absl::IsFailedPrecondition(*error);
  if (!report.refused && IsOver(report, *error)) {
    const absl::Status sent = DismissDaemons(job, options, /*owns_job=*/false);
    if (!sent.ok() && options.announce) options.announce(std::string(sent.message()));
  }
  return report;
}

std::string LineOf(const Evaluation& evaluation) {
  std::string line = absl::StrCat("evaluated ", evaluation.checkpoint, " (", evaluation.steps,
                                  " steps):", evaluation.metrics.empty() ? " not readable" : "");
  for (const auto& [name, value] : evaluation.metrics)
    absl::StrAppend(&line, " ", name, " ", MetricText(value));
  return line;
}

// Runs `body` in a session and fills in what every report has, whatever happens.
RunReport RunInSession(const muster::JobProto& job, const ModelRegistry& models,
                       const RunOptions& options, absl::Status* error,
                       const std::function<absl::Status(JobSession&, RunReport*)>& body,
                       const std::function<absl::Status(JobSession&)>& before = nullptr) {
  RunReport report = NewReport(job, options);
  JobSession session(job, models, options);
  if (before != nullptr) *error = before(session);
  // Stopped before it had a folder of its own, too.
  report.refused = absl::IsInvalidArgument(*error) || absl::IsCancelled(*error);
  if (session.done()) {
    session.TellDone(&report);
    return report;
  }
  if (ExitCodeOf(*error) == kExitBadJob) session.Refuse(*error);
  // For a stop that has come by now nothing is launched.
  if (error->ok())
    *error = AskedToStop(options.stop) ? absl::CancelledError("stopped") : session.Start();
  if (error->ok()) *error = body(session, &report);
  // While it trains and saves, a stop makes no error: what comes then is one of its own.
  if (Stopped(*error, options) && !session.unsaved()) {
    report.status = "stopped";
    *error = absl::OkStatus();
  }
  const bool over = IsOver(report, *error);
  if (over && !error->ok()) session.RecordFailure();
  const absl::Status finished = session.Finish(&report, over);
  if (error->ok()) *error = finished;
  report.refused = report.refused || session.replaced();
  report.earlier_stays_done = session.EarlierStaysDone();
  report.begun = session.HasBegun();
  if (!error->ok()) {
    report.status = "failed";
    report.error = std::string(error->message());
  }
  return report;
}

}  // namespace

RunReport TrainJob(const muster::JobProto& job, const ModelRegistry& models,
                   const RunOptions& options, absl::Status* error) {
  return RunInSession(
      job, models, options, error,
      [&](JobSession& session, RunReport* report) -> absl::Status {
        MU_RETURN_IF_ERROR(session.Train(report));
        MU_RETURN_IF_ERROR(session.Save(report));
        // What was asked to stop is saved, not measured.
        if (job.data().has_eval() && report->status == "done") {
          const absl::Status evaluated = session.Evaluate(report);
          // Whoever starts it again continues with what is saved, and has it evaluated.
          if (Stopped(evaluated, options)) {
            report->status = "stopped";
          } else {
            MU_RETURN_IF_ERROR(evaluated);
          }
        }
        return session.Record(report->status);
      },
      [](JobSession& session) { return session.LookForEarlierRun(); });
}

RunReport EvalJob(const muster::JobProto& job, const ModelRegistry& models,
                  const RunOptions& options, absl::Status* error) {
  return RunInSession(job, models, options, error,
                      [&](JobSession& session, RunReport* report) -> absl::Status {
                        MU_RETURN_IF_ERROR(session.Restore(options.checkpoint));
                        return session.Evaluate(report);
                      });
}

RunReport FollowJob(const muster::JobProto& job, const ModelRegistry& models,
                    const RunOptions& options, absl::Status* error) {
  std::vector<std::string> warnings;
  const auto announce = [&](const std::string& text) {
    MU_LOG(WARN, "{}", text);
    if (options.announce) options.announce(text);
  };
  const auto warn = [&](const std::string& text) {
    announce(text);
    warnings.push_back(text);
  };
  FollowedRun run(options.follow, warn, announce);
  // The cluster starts when there is something to do.
  absl::StatusOr<std::string> next = run.Open();
  if (next.ok()) next = run.Next(options.stop);
  const auto add = [&](absl::StatusOr<Evaluation> evaluated) -> absl::Status {
    MU_RETURN_IF_ERROR(run.Add(*next, std::move(evaluated)));
    if (options.tell) options.tell(LineOf(run.evaluations().back()));
    MU_ASSIGN_OR_RETURN(next, run.Next(options.stop));
    return absl::OkStatus();
  };
  absl::Status begun = next.status();
  // What is created goes by the first manifest: a damaged one does not say how tables are cut.
  while (begun.ok() && !next->empty()) {
    const absl::Status readable = ReadManifest(*next).status();
    if (!IsDamage(readable)) break;
    begun = add(readable);
  }
  // The run may not have been there yet when the job was checked.
  if (begun.ok() && !next->empty()) {
    std::vector<std::string> notes;
    begun = CheckEvaluatesWhatWasTrained(job, models, *next, &notes);
    for (const std::string& note : notes) warn(note);
  }
  const auto follow = [&](JobSession& session, RunReport* report) -> absl::Status {
    while (!next->empty()) MU_RETURN_IF_ERROR(add(session.EvaluateCheckpoint(*next, report)));
    return absl::OkStatus();
  };
  RunReport report;
  if (begun.ok() && !next->empty()) {
    RunOptions own = options;
    own.checkpoint = *next;
    report = RunInSession(job, models, own, error, follow);
  } else {
    *error = begun;
    report = RunWithoutSession(job, options, error);
  }
  report.evaluations = run.evaluations();
  report.warnings.insert(report.warnings.end(), warnings.begin(), warnings.end());
  return report;
}

RunReport PredictJob(const muster::JobProto& job, const ModelRegistry& models,
                     const RunOptions& options, absl::Status* error) {
  return RunInSession(job, models, options, error,
                      [&](JobSession& session, RunReport* report) -> absl::Status {
                        MU_RETURN_IF_ERROR(session.Restore(options.checkpoint));
                        return session.Predict(report);
                      });
}

}  // namespace mu
