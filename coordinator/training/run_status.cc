#include "coordinator/training/run_status.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "coordinator/training/job_record.h"

namespace mu {
namespace {

using Json = nlohmann::json;

// The words are those of a job's record.
constexpr char kDone[] = "done";
constexpr char kFailed[] = "failed";

std::string PathOf(const std::string& run) { return JoinPath(run, "run.json"); }

std::string TextOf(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kDone:
      return kDone;
    case RunStatus::kFailed:
      return kFailed;
  }
  return "";
}

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(absl::StrCat(path, " is empty or damaged"));
}

absl::StatusOr<std::string> ReadMark(const std::string& path) {
  MU_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const Json mark = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto found = mark.is_object() ? mark.find("status") : mark.end();
  if (found == mark.end() || !found->is_string()) return Damaged(path);
  return found->get<std::string>();
}

}  // namespace

std::string RunOfCheckpointFolder(const std::string& folder) {
  return BaseName(folder) == "checkpoints" ? DirectoryOf(folder) : "";
}

absl::Status MarkRun(const std::string& run, RunStatus status) {
  MU_RETURN_IF_ERROR(MakeDirectories(run));
  Json mark;
  mark["status"] = TextOf(status);
  const absl::Status written = WriteFileAtomic(PathOf(run), mark.dump() + "\n");
  // What was written before would end those who follow a run that goes on.
  if (!written.ok() && status == RunStatus::kRunning && RunIsOver(run))
    UnmarkRun(run).IgnoreError();
  return written;
}

absl::Status UnmarkRun(const std::string& run) {
  const absl::Status removed = RemoveFile(PathOf(run));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

bool IsMarkedRun(const std::string& run) { return FileExists(PathOf(run)); }

absl::StatusOr<bool> ReadRunIsOver(const std::string& run) {
  absl::StatusOr<std::string> status = ReadMark(PathOf(run));
  if (absl::IsNotFound(status.status())) {
    const absl::StatusOr<JobRecord> record = ReadJobRecord(run);
    if (absl::IsNotFound(record.status())) return false;
    if (absl::IsDataLoss(record.status())) return Damaged(JoinPath(run, "job.json"));
    MU_RETURN_IF_ERROR(record.status());
    if (record->starting) return false;
    status = record->status;
  }
  MU_RETURN_IF_ERROR(status.status());
  return *status == kDone || *status == kFailed;
}

bool RunIsOver(const std::string& run) { return ReadRunIsOver(run).value_or(false); }

}  // namespace mu
