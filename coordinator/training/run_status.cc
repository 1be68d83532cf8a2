#include "coordinator/training/run_status.h"

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
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

bool RunIsOver(const std::string& run) {
  const absl::StatusOr<std::string> text = ReadFile(PathOf(run));
  std::string status;
  if (text.ok()) {
    const Json mark = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    const auto found = mark.is_object() ? mark.find("status") : mark.end();
    if (found != mark.end() && found->is_string()) status = found->get<std::string>();
  } else if (absl::IsNotFound(text.status())) {
    const auto record = ReadJobRecord(run);
    if (record.ok() && !record->starting) status = record->status;
  }
  return status == kDone || status == kFailed;
}

}  // namespace mu
