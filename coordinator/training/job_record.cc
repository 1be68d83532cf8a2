#include "coordinator/training/job_record.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/hash.h"
#include "common/env/file.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "nlohmann/json.hpp"

namespace mu {
namespace {

std::string PathOf(const std::string& job_dir) { return job_dir + "/job.json"; }

// How the data is measured, where files lie and how often checkpoints are taken may change on the
// way.
pb::JobProto Essence(pb::JobProto job) {
  job.clear_job_dir();
  job.clear_checkpoint();
  job.clear_recovery();
  job.mutable_data()->clear_eval();
  job.mutable_data()->clear_predict();
  job.mutable_training()->clear_eval_batch_size();
  job.mutable_training()->clear_functions_in_flight();
  job.mutable_training()->clear_steps_per_function();
  return job;
}

}  // namespace

uint64_t JobFingerprint(const pb::JobProto& job) {
  return HashString(Essence(job).SerializeAsString()) | 1;
}

absl::StatusOr<JobRecord> ReadJobRecord(const std::string& job_dir) {
  MU_ASSIGN_OR_RETURN(const std::string text, ReadFile(PathOf(job_dir)));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  JobRecord record;
  if (!json.is_object() || !json.contains("job") || !json.contains("status") ||
      !json["status"].is_string() ||
      !google::protobuf::util::JsonStringToMessage(json["job"].dump(), &record.job).ok()) {
    return absl::DataLossError(
        absl::StrCat(PathOf(job_dir), " is damaged; choose another job_dir"));
  }
  record.status = json["status"].get<std::string>();
  record.first_epoch = json.value("first_epoch", uint64_t{0});
  record.checkpoint = json.value("checkpoint", "");
  return record;
}

absl::Status WriteJobRecord(const std::string& job_dir, const JobRecord& record) {
  std::string job;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(record.job, &job, options).ok()) {
    return absl::InternalError("the job cannot be written as JSON");
  }
  nlohmann::ordered_json json;
  json["status"] = record.status;
  json["first_epoch"] = record.first_epoch;
  if (!record.checkpoint.empty()) json["checkpoint"] = record.checkpoint;
  json["job"] = nlohmann::ordered_json::parse(job, nullptr, false);
  return WriteFileAtomic(PathOf(job_dir), json.dump(2) + "\n");
}

std::string JobDifferences(const pb::JobProto& there, const pb::JobProto& here) {
  std::string report;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&report);
  differencer.Compare(Essence(there), Essence(here));
  return std::string(absl::StripSuffix(report, "\n"));
}

}  // namespace mu
