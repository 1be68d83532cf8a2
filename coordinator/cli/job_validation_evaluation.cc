// The rules of a job's evaluation, of early stopping, and of the checkpoints that are the best.
// Whether the model's tasks have the metrics is found when the model is traced.
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/metrics/metric_set.h"
#include "coordinator/cli/job_validation.h"

namespace mu {
namespace {

constexpr char kNoEvalData[] = "needs data.eval, which is what is evaluated";
constexpr char kAddEvalData[] = "add data.eval, or remove this";

void ValidateMetrics(const muster::EvaluationProto& evaluation, std::vector<JobProblem>* problems) {
  std::set<std::string> seen;
  for (int i = 0; i < evaluation.metrics_size(); ++i) {
    const std::string key = absl::StrCat("evaluation.metrics[", i, "]");
    if (const absl::Status status = CheckMetricName(evaluation.metrics(i)); !status.ok()) {
      problems->push_back({key, absl::StrCat("is wrong: ", std::string(status.message())), ""});
    } else if (!seen.insert(evaluation.metrics(i)).second) {
      problems->push_back(
          {key, absl::StrCat("is `", evaluation.metrics(i), "` once more"), "remove it"});
    }
  }
  if (evaluation.has_group() && evaluation.group().empty())
    problems->push_back({"evaluation.group", "must name a column of the data", "or remove it"});
  if (evaluation.has_weight() && evaluation.weight().empty())
    problems->push_back({"evaluation.weight", "must name a column of the data", "or remove it"});
}

// A metric that something goes by.
void ValidateMetric(const std::string& key, const std::string& metric,
                    std::vector<JobProblem>* problems) {
  if (metric.empty()) {
    problems->push_back({key, "names no metric", "name one, such as auc or rmse", true});
  } else if (const auto better = BetterOf(metric); !better.ok()) {
    problems->push_back({key, absl::StrCat("is wrong: ", better.status().message()), ""});
  }
}

void ValidateEvalEvery(const muster::EvalEveryProto& every, std::vector<JobProblem>* problems) {
  const std::string key = "training.eval_every";
  const int given =
      (every.has_steps() ? 1 : 0) + (every.has_epochs() ? 1 : 0) + (every.has_seconds() ? 1 : 0);
  if (given != 1) {
    problems->push_back({key,
                         absl::StrCat("must have one of steps, epochs and seconds, not ", given),
                         "write for example eval_every: {epochs: 1}"});
  }
  const auto positive = [&](bool written, const char* unit, bool fine) {
    if (written && !fine)
      problems->push_back({absl::StrCat(key, ".", unit), "must be above 0",
                           "leave eval_every out to evaluate at the end only"});
  };
  positive(every.has_steps(), "steps", every.steps() > 0);
  positive(every.has_epochs(), "epochs", every.epochs() > 0);
  positive(every.has_seconds(), "seconds", every.seconds() > 0 && std::isfinite(every.seconds()));
}

void ValidateEarlyStopping(const muster::EarlyStoppingProto& stopping,
                           std::vector<JobProblem>* problems) {
  ValidateMetric("early_stopping.metric", stopping.metric(), problems);
  if (stopping.has_patience() && stopping.patience() == 0) {
    problems->push_back({"early_stopping.patience", "must be at least 1",
                         "1 ends training at the first evaluation that is no better"});
  }
  if (!(stopping.min_delta() >= 0) || !std::isfinite(stopping.min_delta())) {
    problems->push_back({"early_stopping.min_delta", "must not be negative",
                         "it is by how much a better value has to be better"});
  }
}

// Whether the job is evaluated before the end of training.
bool EvaluatesOnTheWay(const muster::JobProto& job) {
  return job.training().has_eval_every() || job.has_early_stopping() ||
         job.checkpoint().has_keep_best();
}

void ValidateOnError(const muster::JobProto& job, std::vector<JobProblem>* problems) {
  if (!job.evaluation().has_on_error()) return;
  const std::string& on_error = job.evaluation().on_error();
  const auto add = [&](std::string message, std::string remedy) {
    problems->push_back({"evaluation.on_error", std::move(message), std::move(remedy)});
  };
  if (on_error == "stop") {
    if (EvaluatesOnTheWay(job)) return;
    add("is for evaluations on the way, and there are none; an error of the one at the end is the "
        "run's in any case",
        "add training.eval_every, such as {epochs: 1}, or remove this");
  } else if (on_error != "warn") {
    add(absl::StrCat("must be warn or stop, not `", on_error, "`"),
        "stop: an error of an evaluation on the way ends training");
  } else if (job.has_early_stopping() || job.checkpoint().has_keep_best()) {
    add(absl::StrCat("is warn, but `",
                     job.has_early_stopping() ? "early_stopping" : "checkpoint.keep_best",
                     "` needs each evaluation, so an error of one ends training"),
        "write stop, or remove this");
  }
}

// The current values are of no moment that a checkpoint holds.
void ValidateValues(const muster::JobProto& job, std::vector<JobProblem>* problems) {
  const muster::EvaluationProto& evaluation = job.evaluation();
  if (!evaluation.has_values()) return;
  const auto add = [&](std::string message, std::string remedy) {
    problems->push_back({"evaluation.values", std::move(message), std::move(remedy)});
  };
  if (evaluation.values() != "current") {
    if (evaluation.values() == "checkpoint") return;
    add(absl::StrCat("must be checkpoint or current, not `", evaluation.values(), "`"),
        "current: without a checkpoint, while training changes the values");
    return;
  }
  if (evaluation.where() == "coordinator") {
    add("is current, but `where: coordinator` evaluates checkpoints", "remove one of the two");
  } else if (!evaluation.beside()) {
    add("is for `evaluation.beside`: without that, training stands still and its current values "
        "are evaluated anyway",
        "add beside: true, or remove this");
  }
  if (job.has_early_stopping() &&
      (!job.early_stopping().has_restore_best() || job.early_stopping().restore_best())) {
    add("is current, but `early_stopping.restore_best` brings back the checkpoint that was "
        "evaluated",
        "set restore_best: false there, or remove this");
  }
  if (job.checkpoint().has_keep_best()) {
    add("is current, but `checkpoint.keep_best` keeps the checkpoints that were evaluated",
        "remove one of the two");
  }
}

}  // namespace

void ValidateEvaluation(const muster::JobProto& job, std::vector<JobProblem>* problems) {
  ValidateMetrics(job.evaluation(), problems);
  ValidateValues(job, problems);
  ValidateOnError(job, problems);
  const std::string& where = job.evaluation().where();
  if (job.evaluation().has_where() && where != "workers" && where != "coordinator") {
    problems->push_back(
        {"evaluation.where", absl::StrCat("must be workers or coordinator, not `", where, "`"),
         "coordinator: in its process, which needs memory for the whole model; beside the "
         "job, on machines of its own, `coordinator eval JOB.yaml --follow=RUN` "
         "evaluates each checkpoint of the run's directory RUN"});
  }
  if (where == "coordinator" && job.evaluation().has_beside() && !job.evaluation().beside()) {
    problems->push_back({"evaluation.beside",
                         "is false, but `where: coordinator` evaluates beside training",
                         "remove one of the two"});
  }
  if (job.evaluation().beside() && !EvaluatesOnTheWay(job)) {
    problems->push_back({"evaluation.beside",
                         "is for evaluations while training goes on, and there are none",
                         "add training.eval_every, such as {epochs: 1}, or remove this"});
  }
  const auto needs_data = [&](bool written, const std::string& key) {
    if (written && !job.data().has_eval()) problems->push_back({key, kNoEvalData, kAddEvalData});
  };
  if (job.training().has_eval_every()) ValidateEvalEvery(job.training().eval_every(), problems);
  needs_data(job.training().has_eval_every(), "training.eval_every");
  needs_data(where == "coordinator", "evaluation.where");
  if (job.has_early_stopping()) ValidateEarlyStopping(job.early_stopping(), problems);
  needs_data(job.has_early_stopping(), "early_stopping");
  const muster::KeepBestProto& best = job.checkpoint().keep_best();
  if (!job.checkpoint().has_keep_best()) return;
  ValidateMetric("checkpoint.keep_best.metric", best.metric(), problems);
  if (best.has_count() && best.count() == 0) {
    problems->push_back(
        {"checkpoint.keep_best.count", "must be at least 1", "remove keep_best to keep none"});
  }
  needs_data(true, "checkpoint.keep_best");
}

}  // namespace mu
