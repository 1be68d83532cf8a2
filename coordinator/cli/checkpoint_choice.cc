#include "coordinator/cli/checkpoint_choice.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/training/run_status.h"

namespace mu {
namespace {

// "NAME-20261121-093000", perhaps with "-PID": the run of a job called NAME, not of one called
// NAME-more.
bool IsNamedAfter(absl::string_view folder, const std::string& name) {
  if (!absl::ConsumePrefix(&folder, name + "-")) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(folder, '-');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].size() != 8 || parts[1].size() != 6)
    return false;
  return absl::c_all_of(parts, [](absl::string_view part) {
    return !part.empty() && absl::c_all_of(part, [](char c) { return absl::ascii_isdigit(c); });
  });
}

// Where a program has trained since, the record is not of what is there now.
std::optional<JobRecord> RecordIn(const std::string& run) {
  if (IsMarkedRun(run)) return std::nullopt;
  absl::StatusOr<JobRecord> record = ReadJobRecord(run);
  if (!record.ok()) return std::nullopt;
  return *std::move(record);
}

}  // namespace

std::vector<RunOfJob> RunsOfJob(const std::string& runs, const std::string& name) {
  std::vector<RunOfJob> found;
  for (const std::string& folder : ListDirectory(runs).value_or(std::vector<std::string>())) {
    RunOfJob run;
    run.directory = JoinPath(runs, folder);
    run.record = RecordIn(run.directory);
    const bool is_of_job =
        run.record.has_value() ? run.record->job.name() == name : IsNamedAfter(folder, name);
    if (!is_of_job) continue;
    absl::StatusOr<CheckpointCandidates> checkpoints = CandidatesAt(run.directory);
    if (!checkpoints.ok()) continue;
    run.checkpoints = std::move(checkpoints->paths);
    const auto manifest = GetFileInfo(JoinPath(run.checkpoints.front(), kManifestName));
    if (!manifest.ok()) continue;
    run.written_ns = manifest->modified_ns;
    found.push_back(std::move(run));
  }
  std::stable_sort(found.begin(), found.end(), [](const RunOfJob& a, const RunOfJob& b) {
    return a.written_ns > b.written_ns;
  });
  return found;
}

absl::StatusOr<CheckpointCandidates> CandidatesAt(const std::string& path) {
  CheckpointCandidates candidates;
  MU_ASSIGN_OR_RETURN(candidates.paths, CheckpointsAt(path));
  std::reverse(candidates.paths.begin(), candidates.paths.end());
  return candidates;
}

absl::StatusOr<CheckpointCandidates> CandidatesOf(const CliOptions& cli,
                                                  const muster::JobProto& job) {
  if (!cli.checkpoint.empty()) return CandidatesAt(cli.checkpoint);
  const std::string& job_dir = cli.job_dir.empty() ? job.job_dir() : cli.job_dir;
  if (!job_dir.empty()) return CandidatesAt(job_dir);
  const std::vector<RunOfJob> runs = RunsOfJob(kRunsFolder, job.name());
  if (runs.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no run of ", job.name(), " below ./", kRunsFolder, " has a checkpoint"));
  }
  CheckpointCandidates candidates;
  candidates.runs = runs.size();
  for (const RunOfJob& run : runs)
    candidates.paths.insert(candidates.paths.end(), run.checkpoints.begin(), run.checkpoints.end());
  return candidates;
}

std::string ChooseCheckpoint(const CheckpointCandidates& candidates, const Place& place,
                             const std::function<absl::Status(const std::string&)>& fits,
                             std::vector<std::string>* notes, ProblemList* problems) {
  const std::string& first = candidates.paths.front();
  absl::Status misfit;
  std::string folder;  // of the last one that did not fit
  for (const std::string& path : candidates.paths) {
    // A run has one model, as a rule: of many runs, the older ones of that one are not looked at.
    if (candidates.runs > 1 && DirectoryOf(path) == folder) continue;
    const absl::Status fit = fits(path);
    if (absl::IsInvalidArgument(fit)) {
      if (misfit.ok()) misfit = fit;
      folder = DirectoryOf(path);
      continue;
    }
    if (!fit.ok()) {
      problems->Add(place, fit);
      return "";
    }
    if (!misfit.ok()) {
      notes->push_back(
          absl::StrCat(first, " does not fit the model: ", std::string(misfit.message()), ". ",
                       path, " is taken, the newest that fits; --checkpoint=DIR names another"));
    } else if (candidates.runs > 1) {
      notes->push_back(absl::StrCat(path, " is taken, of the newest of the ", candidates.runs,
                                    " runs of this job below ./", kRunsFolder,
                                    "; --checkpoint=DIR names another"));
    }
    return path;
  }
  problems->Add(place,
                absl::StrCat(candidates.paths.size() == 1 ? "" : "none of the checkpoints fits; ",
                             first, " does not fit the model: ", std::string(misfit.message())),
                "name one of this model with --checkpoint=DIR, or train again");
  return "";
}

}  // namespace mu
