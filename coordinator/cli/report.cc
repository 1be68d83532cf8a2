#include "coordinator/cli/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "coordinator/training/evaluation_json.h"
#include "coordinator/training/metric_text.h"

namespace mu {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return NumberToJson(value); }

Json EvalOf(const RunReport& report) {
  if (report.eval_examples == 0 && report.eval_metrics.empty()) return nullptr;
  Json eval = {{"examples", report.eval_examples}};
  for (const auto& [name, value] : report.eval_metrics) eval[name] = Number(value);
  return eval;
}

Json StalenessOf(const RunReport& report) {
  if (!report.staleness.has_value()) return nullptr;
  const StalenessReport& staleness = *report.staleness;
  Json histogram = Json::array();
  for (const StalenessReport::Class& late : staleness.histogram)
    histogram.push_back({{"from", late.from}, {"to", late.to}, {"steps", late.steps}});
  return {{"steps", staleness.steps},
          {"mean", Number(staleness.mean)},
          {"max", staleness.max},
          {"refused", staleness.refused},
          {"histogram", std::move(histogram)}};
}

Json VariablesOf(const RunReport& report) {
  Json variables = Json::array();
  for (const VariableReport& variable : report.variables) {
    Json servers = Json::object();
    for (const auto& [server, bytes] : variable.bytes_by_server)
      servers[absl::StrCat(server)] = bytes;
    variables.push_back({{"name", variable.name},
                         {"kind", variable.is_table ? "table" : "variable"},
                         {"bytes", variable.load.bytes},
                         {"bytes_by_server", std::move(servers)},
                         {"rows", variable.load.rows},
                         {"reads", variable.load.reads},
                         {"read_bytes", variable.load.read_bytes},
                         {"updates", variable.load.updates},
                         {"update_bytes", variable.load.update_bytes}});
  }
  return variables;
}

Json EpochsOf(const RunReport& report) {
  Json epochs = Json::array();
  for (const EpochLoss& epoch : report.epochs) {
    epochs.push_back(
        {{"epoch", epoch.epoch}, {"loss", Number(epoch.loss())}, {"samples", epoch.samples}});
  }
  return epochs;
}

Json EvaluationsOf(const RunReport& report) {
  Json evaluations = Json::array();
  for (const Evaluation& evaluation : report.evaluations) evaluations.push_back(ToJson(evaluation));
  return evaluations;
}

Json EarlyStoppingOf(const RunReport& report) {
  if (!report.early_stopping.has_value()) return nullptr;
  const EarlyStoppingReport& stopping = *report.early_stopping;
  return {{"metric", stopping.metric},
          {"stopped", stopping.stopped},
          {"best", Number(stopping.state.best)},
          {"best_steps", stopping.state.best_steps},
          {"best_checkpoint", stopping.state.best_checkpoint},
          {"waits", stopping.state.waits},
          {"restored_best", stopping.restored_best}};
}

Json BestCheckpointsOf(const RunReport& report) {
  Json best = Json::array();
  for (const BestCheckpoint& checkpoint : report.best_checkpoints) {
    best.push_back({{"checkpoint", checkpoint.directory},
                    {"value", Number(checkpoint.value)},
                    {"steps", checkpoint.steps}});
  }
  return best;
}

Json FailuresOf(const RunReport& report) {
  Json failures = Json::array();
  for (const Failure& failure : report.failures) {
    failures.push_back(
        {{"role", failure.role},
         {"index", failure.index},
         {"kind", failure.kind},
         {"at_seconds", Number(failure.at_seconds)},
         {"detected_ms", Number(failure.detected_ms)},
         {"detection_latency_ms", Number(failure.detection_latency_ms)},
         {"recovered_ms", failure.recovered_ms < 0 ? Json() : Number(failure.recovered_ms)},
         {"steps_repeated", failure.steps_repeated},
         {"updates_rolled_back", failure.updates_rolled_back},
         {"samples_repeated", failure.samples_repeated},
         {"message", failure.message}});
  }
  return failures;
}

void AddFailure(const Failure& failure, RoleFailureTotals* totals) {
  // Who takes its leave has not failed.
  const bool left = failure.kind == "left";
  (left ? totals->left : totals->failures) += 1;
  totals->steps_repeated += failure.steps_repeated;
  totals->updates_rolled_back += failure.updates_rolled_back;
  totals->samples_repeated += failure.samples_repeated;
  if (failure.recovered_ms < 0) return;
  totals->recovered += left ? 0 : 1;
  totals->recovery_ms += failure.recovered_ms;
  totals->longest_recovery_ms = std::max(totals->longest_recovery_ms, failure.recovered_ms);
}

Json FailureTotalsOf(const RunReport& report) {
  const UnlistedFailureTotals& unlisted = report.unlisted_failures;
  uint64_t counted = unlisted.failures, left = unlisted.left, steps = unlisted.steps_repeated,
           updates = unlisted.updates_rolled_back, samples = unlisted.samples_repeated;
  std::map<std::string, RoleFailureTotals> roles = unlisted.by_role;
  for (const Failure& failure : report.failures) {
    (failure.kind == "left" ? left : counted) += 1;
    steps += failure.steps_repeated;
    updates += failure.updates_rolled_back;
    samples += failure.samples_repeated;
    AddFailure(failure, &roles[failure.role]);
  }
  Json by_role = Json::object();
  for (const auto& [role, of] : roles) {
    if (of.failures + of.left == 0) continue;
    by_role[role] = {{"failures", of.failures},
                     {"left", of.left},
                     {"recovered", of.recovered},
                     {"recovery_ms", Number(of.recovery_ms)},
                     {"longest_recovery_ms", Number(of.longest_recovery_ms)},
                     {"steps_repeated", of.steps_repeated},
                     {"updates_rolled_back", of.updates_rolled_back},
                     {"samples_repeated", of.samples_repeated}};
  }
  Json totals = {
      {"failures", counted},         {"left", left},
      {"steps_repeated", steps},     {"updates_rolled_back", updates},
      {"samples_repeated", samples}, {"without_progress_ms", Number(report.without_progress_ms)},
      {"by_role", by_role}};
  if (const uint64_t missing = unlisted.failures + unlisted.left; missing > 0)
    totals["not_listed"] = missing;
  return totals;
}

}  // namespace

std::string ReportToJson(const RunReport& report) {
  Json json;
  json["job"] = report.job;
  json["status"] = report.status;
  json["error"] = report.error;
  json["workers"] = report.workers;
  json["ps"] = report.ps;
  json["samples"] = report.samples;
  json["steps"] = report.steps;
  json["functions"] = report.functions;
  json["steps_per_function"] = report.steps_per_function;
  json["train_seconds"] = Number(report.train_seconds);
  json["samples_per_second"] = Number(report.samples_per_second);
  json["train_loss"] = Number(report.train_loss);
  json["parameters"] = report.parameters;
  json["epochs"] = EpochsOf(report);
  json["evaluations"] = EvaluationsOf(report);
  json["early_stopping"] = EarlyStoppingOf(report);
  json["best_checkpoints"] = BestCheckpointsOf(report);
  json["eval"] = EvalOf(report);
  json["warnings"] = report.warnings;
  json["failures"] = FailuresOf(report);
  json["failure_totals"] = FailureTotalsOf(report);
  json["backup_runs"] = {{"runs", report.backup_runs},
                         {"steps_repeated", report.backup_steps_repeated},
                         {"samples_repeated", report.backup_samples_repeated}};
  json["staleness"] = StalenessOf(report);
  json["bounded_staleness"] = nullptr;
  if (report.bounded_staleness.has_value()) {
    json["bounded_staleness"] = {{"steps", report.bounded_staleness->steps},
                                 {"functions_waited", report.bounded_staleness->functions_waited}};
  }
  json["sync"] = nullptr;
  if (report.sync.has_value()) {
    json["sync"] = {{"replicas", report.sync->rules.replicas},
                    {"backup_workers", report.sync->rules.backups},
                    {"rounds", report.sync->rounds.committed},
                    {"small_rounds", report.sync->rounds.small},
                    {"steps_in_rounds", report.sync->rounds.contributions},
                    {"late_steps", report.sync->rounds.late}};
  }
  json["time_by_part"] = Json::object();
  for (const auto& [part, time] : report.time_by_part) {
    json["time_by_part"][part] = {{"seconds", Number(time.seconds)}, {"count", time.count}};
  }
  json["variables"] = VariablesOf(report);
  json["bad_records"] = {{"count", report.bad_records}, {"first", report.first_bad_record}};
  json["job_dir"] = report.job_dir;
  json["checkpoint"] = report.checkpoint;
  json["continued_from"] = report.continued_from;
  // Messages may quote bytes of a user's file.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string WithCommas(double number) {
  std::string digits = absl::StrFormat("%.0f", std::abs(number));
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, 1, ',');
  return absl::StrCat(number <= -0.5 ? "-" : "", digits);
}

std::string SummaryOf(const RunReport& report) {
  std::string text = absl::StrCat(report.job, ": ", report.status);
  if (report.steps > 0) {
    absl::StrAppend(&text, ", ", WithCommas(static_cast<double>(report.samples)), " samples in ",
                    WithCommas(static_cast<double>(report.steps)), " steps, ",
                    absl::StrFormat("%.1f s, ", report.train_seconds),
                    WithCommas(report.samples_per_second), " samples/s");
    if (std::isfinite(report.train_loss))
      absl::StrAppend(&text, ", loss ", MetricText(report.train_loss));
  }
  absl::StrAppend(&text, "\n");
  if (report.eval_examples > 0) {
    absl::StrAppend(&text, "evaluated: ", WithCommas(static_cast<double>(report.eval_examples)),
                    " examples");
    for (const auto& [name, value] : report.eval_metrics) {
      if (std::isfinite(value)) {
        absl::StrAppend(&text, ", ", name, " ", MetricText(value));
      } else {
        absl::StrAppend(&text, ", ", name, " not defined");
      }
    }
    absl::StrAppend(&text, "\n");
  }
  if (report.bad_records > 0) {
    absl::StrAppend(&text, "bad records: ", report.bad_records,
                    " skipped, the first: ", report.first_bad_record, "\n");
  }
  for (const Failure& failure : report.failures) {
    absl::StrAppendFormat(&text, "%s %d %s after %.1f s: %s\n", failure.role, failure.index,
                          failure.kind, failure.at_seconds, failure.message);
  }
  if (!report.checkpoint.empty()) absl::StrAppend(&text, "checkpoint: ", report.checkpoint, "\n");
  return text;
}

absl::Status WriteReport(const RunReport& report, const std::string& path) {
  MU_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path)));
  return WriteFileAtomic(path, ReportToJson(report));
}

}  // namespace mu
