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

// Of a model with several tasks it is that of the first by name: "income.auc".
std::string KeyOf(const Json& eval, const std::string& metric) {
  if (eval.contains(metric)) return metric;
  for (const auto& [key, value] : eval.items()) {
    if (absl::EndsWith(key, absl::StrCat(".", metric))) return key;
  }
  return "";
}

std::string QualityMetric(const Json& eval) {
  for (const char* metric : {"auc", "accuracy", "hit_rate@10", "ndcg@10", "rmse", "logloss"}) {
    if (std::string key = KeyOf(eval, metric); !key.empty()) return key;
  }
  return "";
}

void AddLoss(const Json& failure, SoakRecord* record) {
  std::string role, kind;
  Get(failure, "role", &role);
  Get(failure, "kind", &kind);
  if (role.empty()) return;
  SoakLosses& losses = record->losses[role];
  ++losses.count;
  uint64_t steps = 0, updates = 0;
  double recovered_ms = -1;
  Get(failure, "steps_repeated", &steps);
  Get(failure, "updates_rolled_back", &updates);
  Get(failure, "recovered_ms", &recovered_ms);
  losses.steps_repeated += steps;
  losses.updates_rolled_back += updates;
  // Who asked to leave was missed by nobody.
  if (recovered_ms < 0 && kind != "left") return;
  const double seconds = std::max(0.0, recovered_ms) / 1000;
  ++losses.recovered;
  losses.recovery_seconds += seconds;
  losses.longest_recovery_seconds = std::max(losses.longest_recovery_seconds.value_or(0), seconds);
}

}  // namespace

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
                     {"losses", std::move(losses)}};
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
    for (const Json& failure : *failures) AddLoss(failure, record);
  }
  const auto eval = json.find("eval");
  if (eval == json.end() || !eval->is_object()) return absl::OkStatus();
  const std::string key =
      record->metric.empty() ? QualityMetric(*eval) : KeyOf(*eval, record->metric);
  if (!key.empty()) record->metric = key;
  Get(*eval, record->metric.c_str(), &record->quality);
  return absl::OkStatus();
}

}  // namespace mu
