#include "coordinator/training/followed_run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/cluster/followed_checkpoints.h"
#include "coordinator/core/restore_fault.h"
#include "coordinator/training/evaluation_json.h"
#include "coordinator/training/job_holder.h"
#include "coordinator/training/run_status.h"
#include "coordinator/training/values_moment.h"

namespace mu {
namespace {

using Json = nlohmann::ordered_json;

// Between two looks: that a checkpoint is complete is announced by nobody.
constexpr absl::Duration kLook = absl::Milliseconds(100);
constexpr char kCheckpoints[] = "checkpoints";
// Ends the name of a folder that is being made or removed.
constexpr char kPartly[] = ".partly";
constexpr char kRecord[] = "evaluations.json";
// To take the lock, whose folder may be removed meanwhile.
constexpr int kTries = 20;

// What waits in RUN/followed. Not the lock, nor what a network file system keeps under such a name
// (".nfs...") of a lock that is removed while somebody has it open.
bool IsHeld(const std::string& name) {
  return name != kFollowerLock && !absl::EndsWith(name, kPartly) && !absl::StartsWith(name, ".");
}

// The same files under another folder's name, at once or not at all. NOT_FOUND if `from` is deleted
// or moved meanwhile, ALREADY_EXISTS if `to` is there.
absl::Status LinkFolder(const std::string& from, const std::string& to) {
  const std::string partly = to + kPartly;
  MU_RETURN_IF_ERROR(RemoveTree(partly));
  MU_RETURN_IF_ERROR(MakeDirectories(partly));
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(from));
  for (const std::string& name : names) {
    if (absl::StrContains(name, ".tmp.")) continue;  // of a mark that is being written
    const std::string file = JoinPath(partly, name);
    if (::link(JoinPath(from, name).c_str(), file.c_str()) != 0)
      return ErrnoToStatus(errno, "link", file);
  }
  // Of one that is being deleted it is gone first.
  if (!FileExists(JoinPath(partly, kManifestName)))
    return absl::NotFoundError(absl::StrCat(from, " has no manifest any more"));
  return RenameFile(partly, to);
}

// At once: what is removed in part is empty for a moment, and the run could move a checkpoint of
// this name into its place.
absl::Status RemoveHeld(const std::string& folder) {
  const std::string partly = folder + kPartly;
  MU_RETURN_IF_ERROR(RemoveTree(partly));
  const absl::Status renamed = RenameFile(folder, partly);
  if (absl::IsNotFound(renamed)) return absl::OkStatus();
  MU_RETURN_IF_ERROR(renamed);
  return RemoveTree(partly);
}

// Of a checkpoint that will not become better. What is damaged or missing may be the data as well,
// which somebody puts right: so the checkpoint itself is looked at, whole.
bool IsGone(const absl::Status& status, const std::string& folder) {
  const auto manifest = ReadManifest(folder);
  if (absl::IsNotFound(manifest.status()) && !FileExists(JoinPath(folder, kManifestName)))
    return true;
  if (!IsBadCheckpoint(status)) return false;
  return IsBadCheckpoint(manifest.ok() ? VerifyCheckpoint(folder, *manifest) : manifest.status());
}

}  // namespace

std::string DirectoryOfFollowedRun(const std::string& directory) {
  return BaseName(directory) == kCheckpoints ? DirectoryOf(directory) : directory;
}

FollowedRun::FollowedRun(const std::string& directory,
                         std::function<void(const std::string&)> on_warning,
                         std::function<void(const std::string&)> on_wait)
    : directory_(DirectoryOfFollowedRun(directory)),
      on_warning_(std::move(on_warning)),
      on_wait_(std::move(on_wait)) {}

std::string FollowedRun::HeldFolder(const std::string& name) const {
  return JoinPath(FollowedFolder(directory_), name);
}

absl::StatusOr<std::string> FollowedRun::Open() {
  MU_RETURN_IF_ERROR(Begin());
  return JoinPath(directory_, kRecord);
}

absl::Status FollowedRun::Begin() {
  if (lock_.held() && !lock_.lost()) return absl::OkStatus();
  const absl::Status found = GetFileInfo(directory_).status();
  if (absl::IsNotFound(found)) {
    lock_ = FileLock();
    return absl::OkStatus();
  }
  MU_RETURN_IF_ERROR(found);
  MU_RETURN_IF_ERROR(TakeLock());
  const absl::Status read = ReadRecord();
  if (!read.ok()) lock_ = FileLock();  // else it would count as read
  return read;
}

absl::Status FollowedRun::TakeLock() {
  const std::string folder = FollowedFolder(directory_);
  absl::Status taken;
  for (int i = 0; i < kTries; ++i) {
    MU_RETURN_IF_ERROR(MakeDirectories(folder));
    taken = lock_.Take(JoinPath(folder, kFollowerLock), ToText(ThisHolder(/*job=*/0)));
    // Whoever followed the run ends at this moment, and removes both.
    if (!absl::IsNotFound(taken)) break;
  }
  MU_RETURN_IF_ERROR(taken);
  if (lock_.held()) return absl::OkStatus();
  const JobHolder holder = ParseJobHolder(lock_.owner());
  return absl::FailedPreconditionError(absl::StrCat(
      HolderName(holder), " follows the run in ", directory_,
      holder.since.empty() ? "" : absl::StrCat(" since ", holder.since),
      "; only one process may follow a run: let that one go on, or stop it and start this one "
      "again"));
}

absl::Status FollowedRun::ReadRecord() {
  evaluations_.clear();
  seen_.clear();
  // What a process that was killed has left.
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> held,
                      ListDirectory(FollowedFolder(directory_)));
  for (const std::string& name : held) {
    if (absl::EndsWith(name, kPartly)) MU_RETURN_IF_ERROR(RemoveTree(HeldFolder(name)));
  }
  const std::string path = JoinPath(directory_, kRecord);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  MU_RETURN_IF_ERROR(text.status());
  const Json record = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!record.is_array())
    return absl::DataLossError(absl::StrCat(path, " is damaged; remove it to evaluate all again"));
  for (const Json& evaluation : record) {
    evaluations_.push_back(EvaluationOf(evaluation));
    seen_.insert(evaluations_.back().checkpoint);
  }
  return absl::OkStatus();
}

void FollowedRun::End() {
  // While the lock is held: afterwards the file may be the next holder's. And the lock before the
  // folder: on a network file system a file that is open keeps a name in it.
  RemoveFile(JoinPath(FollowedFolder(directory_), kFollowerLock)).IgnoreError();
  lock_ = FileLock();
  // It fails if the run was continued and moved something here, or if somebody begins to follow.
  ::rmdir(FollowedFolder(directory_).c_str());
}

absl::Status FollowedRun::Hold() {
  const auto found = ListCheckpoints(JoinPath(directory_, kCheckpoints));
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  MU_RETURN_IF_ERROR(found.status());
  for (const std::string& folder : *found) {
    const std::string name = BaseName(folder);
    if (seen_.contains(name)) continue;
    const std::string held = HeldFolder(name);
    if (!FileExists(held)) {
      const absl::Status linked = LinkFolder(folder, held);
      if (!linked.ok() && FileExists(JoinPath(folder, kManifestName))) return linked;
      if (!linked.ok()) MU_RETURN_IF_ERROR(RemoveTree(held + kPartly));
      // The run has moved it here. Or it was about to delete it when this process began to follow.
      if (!FileExists(held)) MU_LOG(WARN, "{} was deleted before it could be evaluated", folder);
    }
    seen_.insert(name);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FollowedRun::Held() const {
  auto listed = ListDirectory(FollowedFolder(directory_));
  if (absl::IsNotFound(listed.status())) return std::vector<std::string>();
  MU_ASSIGN_OR_RETURN(std::vector<std::string> names, std::move(listed));
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const std::string& name) { return !IsHeld(name); }),
              names.end());
  std::sort(names.begin(), names.end());
  return names;
}

void FollowedRun::WarnOf(const absl::Status& look) {
  const std::string before = std::exchange(error_, std::string(look.message()));
  if (error_.empty()) told_error_.clear();
  // Whoever writes these files replaces them at once, so what they hold does not come right by
  // itself. But over a network file system one that is just being replaced may fail to be read.
  if (error_ != before || error_ == told_error_) return;
  told_error_ = error_;
  const std::string warning = absl::StrCat(
      "cannot tell whether the run in ", directory_, " is over: ", error_,
      "; this process waits until it can. A run that goes on writes the file again when it ends. "
      "If the run is over, write {\"status\": \"done\"} into ",
      JoinPath(directory_, "run.json"),
      ", and this process ends after the last checkpoint; or stop this process");
  if (on_warning_) {
    on_warning_(warning);
  } else {
    MU_LOG(WARN, "{}", warning);
  }
}

void FollowedRun::Wait() {
  const bool is_run = !evaluations_.empty() || !seen_.empty() || IsMarkedRun(directory_) ||
                      FileExists(JoinPath(directory_, "job.json"));
  if (!is_run && !told_wait_) {
    told_wait_ = true;
    const std::string text = absl::StrCat(
        "there is no run in ", directory_, " yet; waiting for its first checkpoint (",
        lock_.held() ? absl::StrCat("if this is the wrong folder, stop this process and remove ",
                                    FollowedFolder(directory_))
                     : "no such folder: if the name is wrong, stop this process",
        ")");
    if (on_wait_) {
      on_wait_(text);
    } else {
      MU_LOG(INFO, "{}", text);
    }
  }
  absl::SleepFor(kLook);
}

absl::StatusOr<std::string> FollowedRun::Next(const std::atomic<int>* stop) {
  while (true) {
    if (stop != nullptr && stop->load() > 0) return absl::CancelledError("stopped");
    MU_RETURN_IF_ERROR(Begin());
    if (!lock_.held()) {  // the directory is not there
      Wait();
      continue;
    }
    // First: if it is over, its last checkpoint is there.
    const absl::StatusOr<bool> over = ReadRunIsOver(directory_);
    WarnOf(over.status());
    MU_RETURN_IF_ERROR(Hold());
    MU_ASSIGN_OR_RETURN(const std::vector<std::string> held, Held());
    for (const std::string& name : held) {
      const std::string folder = HeldFolder(name);
      const bool evaluated =
          std::any_of(evaluations_.begin(), evaluations_.end(),
                      [&](const Evaluation& evaluation) { return evaluation.checkpoint == name; });
      if (!evaluated) return folder;
      // Not removed before the end of an earlier process, or moved here by the run.
      MU_RETURN_IF_ERROR(RemoveHeld(folder));
    }
    if (over.value_or(false)) {
      End();
      return std::string();
    }
    Wait();
  }
}

absl::Status FollowedRun::Write() const {
  Json record = Json::array();
  for (const Evaluation& evaluation : evaluations_) record.push_back(ToJson(evaluation));
  return WriteFileAtomic(JoinPath(directory_, kRecord), record.dump(1) + "\n");
}

absl::Status FollowedRun::Add(const std::string& folder, absl::StatusOr<Evaluation> evaluated) {
  if (!evaluated.ok() && !IsGone(evaluated.status(), folder)) return evaluated.status();
  MU_RETURN_IF_ERROR(Begin());  // else two would write into the record
  Evaluation evaluation;
  if (evaluated.ok()) {
    evaluation = *std::move(evaluated);
  } else {
    MU_LOG(ERROR, "{} cannot be evaluated: {}", folder, evaluated.status());
    evaluation.seconds = std::nan("");
  }
  evaluation.checkpoint = BaseName(folder);
  if (const auto manifest = ReadManifest(folder); manifest.ok()) {
    const ValuesMoment moment = MomentOfValues(*manifest);
    evaluation.steps = moment.steps;
    evaluation.epoch = moment.epoch;
  }
  evaluations_.push_back(std::move(evaluation));
  MU_RETURN_IF_ERROR(Write());
  return RemoveHeld(folder);
}

}  // namespace mu
