#include "coordinator/soak/soak_record.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// The functions below read what may be absent or of another type: then nothing is set.
void Get(const Json& from, const char* key, std::string* to) {
  if (const auto at = from.find(key); at != from.end() && at->is_string())
    *to = at->get<std::string>();
}
void Get(const Json& from, const char* key, double* to) {
  if (const auto at = from.find(key); at != from.end() && at->is_number()) *to = at->get<double>();
}
void Get(const Json& from, const char* key, bool* to) {
  if (const auto at = from.find(key); at != from.end() && at->is_boolean()) *to = at->get<bool>();
}
template <typename Integer>
void Get(const Json& from, const char* key, Integer* to) {
  if (const auto at = from.find(key); at != from.end() && at->is_number_integer())
    *to = at->get<Integer>();
}

using Metrics = std::map<std::string, double>;

// Of a model with several tasks it is that of the first by name: "income.auc".
std::string KeyOf(const Metrics& metrics, const std::string& metric) {
  if (metrics.contains(metric)) return metric;
  for (const auto& [key, value] : metrics) {
    if (absl::EndsWith(key, absl::StrCat(".", metric))) return key;
  }
  return "";
}

std::string QualityMetric(const Metrics& metrics) {
  for (const char* metric : {"auc", "accuracy", "hit_rate@10", "ndcg@10", "rmse", "logloss"}) {
    if (std::string key = KeyOf(metrics, metric); !key.empty()) return key;
  }
  return "";
}

void FillQuality(const Metrics& metrics, SoakRecord* record) {
  const std::string key =
      record->metric.empty() ? QualityMetric(metrics) : KeyOf(metrics, record->metric);
  if (key.empty()) return;
  record->metric = key;
  record->quality = metrics.at(key);
}

// Reports and lines of a record have the same keys.
SoakFailure FailureOf(const Json& json) {
  SoakFailure failure;
  double recovered_ms = -1;  // it may be null or absent
  Get(json, "role", &failure.role);
  Get(json, "kind", &failure.kind);
  Get(json, "at_seconds", &failure.at_seconds);
  Get(json, "recovered_ms", &recovered_ms);
  Get(json, "steps_repeated", &failure.steps_repeated);
  if (recovered_ms >= 0) failure.recovered_ms = recovered_ms;
  return failure;
}

void AddLoss(const SoakFailure& failure, uint64_t updates_rolled_back, SoakRecord* record) {
  record->failures.push_back(failure);
  SoakLosses loss = {.count = 1};
  loss.steps_repeated = failure.steps_repeated;
  loss.updates_rolled_back = updates_rolled_back;
  // Who asked to leave was missed by nobody.
  if (failure.recovered_ms.has_value() || failure.kind == "left") {
    loss.recovered = 1;
    loss.recovery_seconds = failure.recovered_ms.value_or(0) / 1000;
    loss.longest_recovery_seconds = loss.recovery_seconds;
  }
  record->losses[failure.role].Add(loss);
}

// As reports and statistics have sums: `recovered` without those that left, the times with them.
SoakLosses LossesOf(uint64_t failures, uint64_t left, uint64_t recovered, double recovery_seconds,
                    double longest_recovery_seconds) {
  SoakLosses losses;
  losses.count = failures + left;
  losses.recovered = recovered + left;
  losses.recovery_seconds = recovery_seconds;
  if (losses.recovered > 0) losses.longest_recovery_seconds = longest_recovery_seconds;
  return losses;
}

// What failure_totals.by_role says, which are all of them.
std::map<std::string, SoakLosses> LossesOfReport(const Json& by_role) {
  std::map<std::string, SoakLosses> losses;
  for (const auto& [role, sums] : by_role.items()) {
    uint64_t failures = 0, left = 0, recovered = 0;
    double recovery_ms = 0, longest_ms = 0;
    Get(sums, "failures", &failures);
    Get(sums, "left", &left);
    Get(sums, "recovered", &recovered);
    Get(sums, "recovery_ms", &recovery_ms);
    Get(sums, "longest_recovery_ms", &longest_ms);
    SoakLosses& of = losses[role];
    of = LossesOf(failures, left, recovered, recovery_ms / 1000, longest_ms / 1000);
    Get(sums, "steps_repeated", &of.steps_repeated);
    Get(sums, "updates_rolled_back", &of.updates_rolled_back);
  }
  return losses;
}

uint64_t NotNegative(int64_t number) { return static_cast<uint64_t>(std::max<int64_t>(0, number)); }

void AddUnlisted(const std::string& role, const RoleFailures& sums, SoakRecord* record) {
  if (sums.failures + sums.left == 0) return;
  SoakLosses losses = LossesOf(sums.failures, sums.left, sums.recovered, sums.recovery_seconds,
                               sums.longest_recovery_seconds);
  losses.steps_repeated = sums.steps_repeated;
  losses.updates_rolled_back = NotNegative(sums.updates_rolled_back);
  record->losses[role].Add(losses);
}

void ShortenFailures(std::vector<SoakFailure>* failures) {
  constexpr long kHalf = SoakRecord::kMostFailures / 2;
  if (failures->size() > SoakRecord::kMostFailures)
    failures->erase(failures->begin() + kHalf, failures->end() - kHalf);
}

}  // namespace

void SoakLosses::Add(const SoakLosses& other) {
  count += other.count;
  recovered += other.recovered;
  recovery_seconds += other.recovery_seconds;
  if (other.longest_recovery_seconds.has_value()) {
    longest_recovery_seconds =
        std::max(longest_recovery_seconds.value_or(0), *other.longest_recovery_seconds);
  }
  steps_repeated += other.steps_repeated;
  updates_rolled_back += other.updates_rolled_back;
}

std::optional<double> SoakLosses::MeanRecoverySeconds() const {
  if (recovered == 0) return std::nullopt;
  return recovery_seconds / static_cast<double>(recovered);
}

uint64_t SoakRecord::failures_not_listed() const {
  uint64_t lost = 0;
  for (const auto& [role, of] : losses) lost += of.count;
  return lost - std::min<uint64_t>(lost, failures.size());
}

std::string ToJsonLine(const SoakRecord& record) {
  Json losses = Json::object();
  for (const auto& [role, of] : record.losses) {
    losses[role] = {
        {"count", of.count},
        {"recovered", of.recovered},
        {"recovery_seconds", of.recovery_seconds},
        {"longest_recovery_seconds", Number(of.longest_recovery_seconds.value_or(std::nan("")))},
        {"steps_repeated", of.steps_repeated},
        {"updates_rolled_back", of.updates_rolled_back}};
  }
  Json failures = Json::array();
  for (const SoakFailure& failure : record.failures) {
    failures.push_back({{"role", failure.role},
                        {"kind", failure.kind},
                        {"at_seconds", Number(failure.at_seconds)},
                        {"recovered_ms", Number(failure.recovered_ms.value_or(std::nan("")))},
                        {"steps_repeated", failure.steps_repeated}});
  }
  const Json json = {{"job", record.job},
                     {"setup", record.setup},
                     {"preemption", record.preemption},
                     {"version", record.version},
                     {"began", record.began},
                     {"status", record.status},
                     {"error", record.error},
                     {"workers", record.workers},
                     {"ps", record.ps},
                     {"seconds", Number(record.seconds)},
                     {"train_seconds", Number(record.train_seconds)},
                     {"samples", record.samples},
                     {"steps", record.steps},
                     {"exact", record.exact},
                     {"metric", record.metric},
                     {"quality", Number(record.quality)},
                     {"losses", std::move(losses)},
                     {"failures", std::move(failures)},
                     {"failures_not_listed", record.failures_not_listed()}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<SoakRecord> FromJsonLine(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("it is no JSON object");
  SoakRecord record;
  Get(json, "job", &record.job);
  Get(json, "setup", &record.setup);
  Get(json, "preemption", &record.preemption);
  Get(json, "version", &record.version);
  Get(json, "began", &record.began);
  Get(json, "status", &record.status);
  Get(json, "error", &record.error);
  Get(json, "workers", &record.workers);
  Get(json, "ps", &record.ps);
  Get(json, "seconds", &record.seconds);
  Get(json, "train_seconds", &record.train_seconds);
  Get(json, "samples", &record.samples);
  Get(json, "steps", &record.steps);
  Get(json, "exact", &record.exact);
  Get(json, "metric", &record.metric);
  Get(json, "quality", &record.quality);
  if (const auto losses = json.find("losses"); losses != json.end() && losses->is_object()) {
    for (const auto& [role, value] : losses->items()) {
      SoakLosses& of = record.losses[role];
      Get(value, "count", &of.count);
      Get(value, "recovered", &of.recovered);
      Get(value, "recovery_seconds", &of.recovery_seconds);
      double longest = -1;  // it may be null or absent
      Get(value, "longest_recovery_seconds", &longest);
      if (longest >= 0) of.longest_recovery_seconds = longest;
      Get(value, "steps_repeated", &of.steps_repeated);
      Get(value, "updates_rolled_back", &of.updates_rolled_back);
    }
  }
  if (const auto failures = json.find("failures"); failures != json.end() && failures->is_array()) {
    for (const Json& failure : *failures) record.failures.push_back(FailureOf(failure));
  }
  if (record.job.empty() || record.setup.empty() || record.status.empty())
    return absl::InvalidArgumentError("it lacks `job`, `setup` or `status`");
  return record;
}

absl::StatusOr<std::vector<SoakRecord>> ReadRecords(const std::string& directory) {
  const std::string path = JoinPath(directory, kSoakRecordName);
  std::vector<SoakRecord> records;
  if (!FileExists(path)) return records;
  MU_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    absl::StatusOr<SoakRecord> record = FromJsonLine(lines[i]);
    if (!record.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", i + 1, ": ",
                                                     record.status().message(),
                                                     "; remove the line, or name another folder"));
    }
    records.push_back(*std::move(record));
  }
  return records;
}

absl::Status AddRecord(const std::string& directory, const SoakRecord& record) {
  MU_RETURN_IF_ERROR(MakeDirectories(directory));
  const std::string path = JoinPath(directory, kSoakRecordName);
  std::string text;
  if (FileExists(path)) {
    MU_ASSIGN_OR_RETURN(text, ReadFile(path));
    text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  }
  return WriteFileAtomic(path, absl::StrCat(text, ToJsonLine(record), "\n"));
}

absl::Status FillFromReport(const std::string& report, SoakRecord* record) {
  const Json json = Json::parse(report, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("status"))
    return absl::InvalidArgumentError("it is no report of a run");
  Get(json, "status", &record->status);
  Get(json, "error", &record->error);
  Get(json, "workers", &record->workers);
  Get(json, "ps", &record->ps);
  Get(json, "train_seconds", &record->train_seconds);
  Get(json, "samples", &record->samples);
  Get(json, "steps", &record->steps);
  if (const auto failures = json.find("failures"); failures != json.end() && failures->is_array()) {
    for (const Json& each : *failures) {
      uint64_t updates = 0;
      Get(each, "updates_rolled_back", &updates);
      if (const SoakFailure failure = FailureOf(each); !failure.role.empty())
        AddLoss(failure, updates, record);
    }
    ShortenFailures(&record->failures);
  }
  // Of more than it lists, the sums are those of all.
  if (const auto totals = json.find("failure_totals"); totals != json.end()) {
    if (const auto by_role = totals->find("by_role");
        by_role != totals->end() && by_role->is_object())
      record->losses = LossesOfReport(*by_role);
  }
  const auto eval = json.find("eval");
  if (eval == json.end() || !eval->is_object()) return absl::OkStatus();
  Metrics metrics;
  for (const auto& [key, value] : eval->items()) {
    if (value.is_number() || value.is_null())  // null: it is not defined
      metrics[key] = value.is_number() ? value.get<double>() : std::nan("");
  }
  FillQuality(metrics, record);
  return absl::OkStatus();
}

void FillFromStats(const RuntimeStats& stats, const absl::StatusOr<FitResult>& fit,
                   SoakRecord* record) {
  for (const MemberFailure& failure : stats.failures) {
    SoakFailure loss;
    loss.role = failure.role == pb::ROLE_WORKER ? "worker" : "psserver";
    loss.kind = failure.kind;
    loss.at_seconds = failure.at_seconds;
    if (failure.recovered_seconds >= 0) loss.recovered_ms = failure.recovered_seconds * 1000;
    loss.steps_repeated = failure.steps_repeated;
    AddLoss(loss, NotNegative(failure.updates_rolled_back), record);
  }
  ShortenFailures(&record->failures);
  AddUnlisted("worker", stats.unlisted_failures.of_workers, record);
  AddUnlisted("psserver", stats.unlisted_failures.of_servers, record);
  if (!fit.ok()) {
    record->status = "failed";
    record->error = std::string(fit.status().message());
    return;
  }
  record->status = fit->train.stopped ? "stopped" : "done";
  record->train_seconds = fit->train.seconds;
  record->samples = fit->train.samples;
  record->steps = fit->train.steps;
  if (fit->last.has_value()) FillQuality(fit->last->metrics, record);
}

}  // namespace mu
