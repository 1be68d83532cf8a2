#include "coordinator/training/job_record.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/env/file.h"
#include "common/env/file_identity.h"
#include "common/graph/dataset_schema.h"
#include "common/records/vocabulary.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "nlohmann/json.hpp"

namespace mu {
namespace {

using Json = nlohmann::json;

// More than any job has.
constexpr int kMostLevels = 64;

std::string PathOf(const std::string& job_dir) { return job_dir + "/job.json"; }

// How the data is measured, what ends training early, where the run's own files lie, how often
// checkpoints are taken and what a bad record does may change on the way.
pb::JobProto Essence(pb::JobProto job) {
  job.clear_job_dir();
  job.clear_checkpoint();
  job.clear_recovery();
  job.clear_evaluation();
  job.mutable_data()->clear_eval();
  job.mutable_data()->clear_predict();
  // With `fail` no batch of a lease that holds a bad record is trained, so `skip` can go on there.
  // The default stands for both: checkpoints of earlier programs have fingerprints with it.
  if (job.data().has_train()) job.mutable_data()->mutable_train()->set_on_bad_record("fail");
  job.clear_early_stopping();
  job.mutable_training()->clear_eval_every();
  job.mutable_training()->clear_eval_batch_size();
  job.mutable_training()->clear_functions_in_flight();
  job.mutable_training()->clear_steps_per_function();
  job.mutable_training()->clear_max_gap();
  if (job.training().micro_batches() == 1) job.mutable_training()->clear_micro_batches();
  return job;
}

}  // namespace

uint64_t JobFingerprint(const pb::JobProto& job) {
  return HashString(Essence(job).SerializeAsString()) | 1;
}

absl::StatusOr<JobRecord> ReadJobRecord(const std::string& job_dir) {
  MU_ASSIGN_OR_RETURN(const std::string text, ReadFile(PathOf(job_dir)));
  const absl::Status damaged =
      absl::DataLossError(absl::StrCat(PathOf(job_dir), " is damaged; choose another job_dir"));
  // Writing a value as text, below, takes stack for each level of it.
  bool too_deep = false;
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kMostLevels;
    return true;
  };
  const Json json = Json::parse(text, check_depth, /*allow_exceptions=*/false);
  if (too_deep || !json.is_object()) return damaged;
  const Json job = json.value("job", Json()), status = json.value("status", Json()),
             starting = json.value("starting", Json(false)),
             first_epoch = json.value("first_epoch", Json(uint64_t{0})),
             first_step = json.value("first_step", Json(uint64_t{0})),
             rounds = json.value("rounds", Json(uint64_t{0})),
             checkpoint = json.value("checkpoint", Json("")),
             named_checkpoint = json.value("named_checkpoint", Json("")),
             vocabularies = json.value("vocabularies", Json::object());
  JobRecord record;
  if (!job.is_object() || !status.is_string() || !starting.is_boolean() ||
      !first_epoch.is_number_unsigned() || !first_step.is_number_unsigned() ||
      !rounds.is_number_unsigned() || !checkpoint.is_string() || !named_checkpoint.is_string() ||
      !vocabularies.is_object() ||
      !google::protobuf::util::JsonStringToMessage(job.dump(), &record.job).ok()) {
    return damaged;
  }
  record.status = status.get<std::string>();
  record.starting = starting.get<bool>();
  record.first_epoch = first_epoch.get<uint64_t>();
  record.first_step = first_step.get<uint64_t>();
  record.rounds = rounds.get<uint64_t>();
  record.checkpoint = checkpoint.get<std::string>();
  record.named_checkpoint = named_checkpoint.get<std::string>();
  for (const auto& [column, fingerprint] : vocabularies.items()) {
    if (!fingerprint.is_string()) return damaged;
    record.vocabularies[column] = fingerprint.get<std::string>();
  }
  return record;
}

absl::Status WriteJobRecord(const std::string& job_dir, const JobRecord& record) {
  std::string job;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(record.job, &job, options).ok()) {
    return absl::InternalError("the job cannot be written as JSON");
  }
  // JSON holds no other text.
  for (const std::string* path : {&record.checkpoint, &record.named_checkpoint}) {
    const std::string valid = ValidUtf8(*path);
    if (valid == *path) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint's path ", valid,
                     " is not UTF-8; give it by a path that is, such as a link"));
  }
  nlohmann::ordered_json json;
  json["status"] = record.status;
  if (record.starting) json["starting"] = true;
  json["first_epoch"] = record.first_epoch;
  if (record.first_step > 0) json["first_step"] = record.first_step;
  if (record.rounds > 0) json["rounds"] = record.rounds;
  if (!record.checkpoint.empty()) json["checkpoint"] = record.checkpoint;
  if (!record.named_checkpoint.empty()) json["named_checkpoint"] = record.named_checkpoint;
  if (!record.vocabularies.empty()) json["vocabularies"] = record.vocabularies;
  json["job"] = nlohmann::ordered_json::parse(job, nullptr, false);
  return WriteFileAtomic(PathOf(job_dir), json.dump(2) + "\n");
}

bool BeganWith(const JobRecord& record, const std::string& named) {
  if (record.checkpoint.empty() || named.empty()) return false;
  const FileIdentity name(named), checkpoint(record.checkpoint);
  if (name == checkpoint) return true;
  if (!record.named_checkpoint.empty()) {
    const FileIdentity before(record.named_checkpoint);
    if (name == before) return true;
    // One checkpoint was named, so its folder is another beginning.
    if (before == checkpoint) return false;
  }
  const FileIdentity folder(DirectoryOf(record.checkpoint));
  return name == folder || FileIdentity(JoinPath(named, "checkpoints")) == folder;
}

bool HasOwnCheckpoint(const JobRecord& record, const std::string& job_dir) {
  const auto found = ListCheckpoints(JoinPath(job_dir, "checkpoints"));
  if (!found.ok() || found->empty()) return false;
  const auto manifest = ReadManifest(found->back());
  return !manifest.ok() || manifest->epoch() >= record.first_epoch;
}

std::map<std::string, std::string> FingerprintsOf(const pb::DatasetProto& dataset) {
  std::map<std::string, std::string> fingerprints;
  for (const pb::CsvColumnProto& column : FieldColumnsOf(dataset)) {
    if (column.kind() != pb::CsvColumnProto::VOCABULARY) continue;
    pb::DatasetProto alone;
    *alone.mutable_csv()->add_columns() = column;
    if (!ReadVocabularies(&alone).ok()) continue;
    fingerprints[column.name()] =
        absl::StrFormat("%016x", HashString(alone.csv().columns(0).vocabulary()));
  }
  return fingerprints;
}

std::vector<std::string> OtherVocabularies(const JobRecord& there, const JobRecord& here) {
  std::vector<std::string> columns;
  for (const auto& [column, fingerprint] : there.vocabularies) {
    const auto now = here.vocabularies.find(column);
    if (now != here.vocabularies.end() && now->second != fingerprint) columns.push_back(column);
  }
  return columns;
}

std::string JobDifferences(const pb::JobProto& there, const pb::JobProto& here) {
  std::string report;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&report);
  differencer.Compare(Essence(there), Essence(here));
  return std::string(absl::StripSuffix(report, "\n"));
}

}  // namespace mu
