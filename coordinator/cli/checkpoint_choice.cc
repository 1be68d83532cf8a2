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
#include "coordinator/cluster/checkpoint_verify.h"
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

// A checkpoint that is not taken.
struct Rejected {
  std::string path;
  absl::Status why;  // OK: there is none
};

// Why `path` is taken and no other one.
void NoteChoice(const CheckpointCandidates& candidates, const std::string& path,
                const Rejected& damaged, const Rejected& misfit, std::vector<std::string>* notes) {
  constexpr char kAnother[] = "; --checkpoint=DIR names another";
  if (!damaged.why.ok()) {
    const std::string why(damaged.why.message());
    notes->push_back(absl::StrCat(absl::StripSuffix(why, "; use another checkpoint"), ". ", path,
                                  " is taken, the newest good one", kAnother));
  }
  if (!misfit.why.ok()) {
    notes->push_back(absl::StrCat(misfit.path,
                                  " does not fit the model: ", std::string(misfit.why.message()),
                                  ". ", path, " is taken, the newest that fits", kAnother));
  }
  if (candidates.runs > 1 && damaged.why.ok() && misfit.why.ok()) {
    notes->push_back(absl::StrCat(path, " is taken, of the newest of the ", candidates.runs,
                                  " runs of this job below ./", kRunsFolder, kAnother));
  }
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

std::string InsteadOf(const std::string& damaged, const Place& place) {
  const std::string older = NewestBefore(damaged);
  if (older.empty()) return "";
  return absl::StrCat(place.source == "--checkpoint" ? "--checkpoint=" : "", older,
                      " is the newest good one before it");
}

std::string ChooseCheckpoint(const CheckpointCandidates& candidates, const Place& place,
                             const std::function<absl::Status(const std::string&)>& fits,
                             std::vector<std::string>* notes, ProblemList* problems) {
  // What is wrong with the first one of either kind.
  Rejected misfit, damaged;
  std::string folder;  // of the last one that did not fit
  for (const std::string& path : candidates.paths) {
    // A run has one model, as a rule: of many runs, the older ones of that one are not looked at.
    if (candidates.runs > 1 && DirectoryOf(path) == folder) continue;
    const absl::Status good = CheckManifestAndSizes(path);
    if (IsDamage(good)) {
      if (damaged.why.ok()) damaged = {path, good};
      continue;
    }
    const absl::Status fit = good.ok() ? fits(path) : absl::OkStatus();
    if (absl::IsInvalidArgument(fit)) {
      if (misfit.why.ok()) misfit = {path, fit};
      folder = DirectoryOf(path);
      continue;
    }
    if (!good.ok() || !fit.ok()) {  // this process cannot read it
      problems->Add(place, good.ok() ? fit : good);
      return "";
    }
    NoteChoice(candidates, path, damaged, misfit, notes);
    return path;
  }
  const bool only = candidates.paths.size() == 1;
  if (!misfit.why.ok()) {
    problems->Add(place,
                  absl::StrCat(only ? "" : "none of the checkpoints fits; ", misfit.path,
                               " does not fit the model: ", std::string(misfit.why.message())),
                  "name one of this model with --checkpoint=DIR, or train again");
  } else {
    problems->Add(place,
                  absl::StrCat(only ? "" : "none of the checkpoints is good; ",
                               std::string(damaged.why.message())),
                  only ? InsteadOf(damaged.path, place) : "");
  }
  return "";
}

}  // namespace mu
