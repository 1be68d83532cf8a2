// What a job's session leaves in the job_dir and finds there: the record of the run, its lock,
// checkpoints.
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "common/env/host_name.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/training/job_holder.h"
#include "coordinator/training/job_session.h"

namespace mu {
namespace {

// How long a job that was stopped waits for servers that are gone, to save, and how often it tries.
constexpr absl::Duration kSavePatience = absl::Minutes(2);
constexpr int kTries = 20;

}  // namespace

absl::Status JobSession::LookForUnfinished() {
  trains_ = true;
  record_.job = job_;
  record_.checkpoint = options_.checkpoint;
  MU_RETURN_IF_ERROR(TakeLock());
  const absl::StatusOr<JobRecord> record = ReadJobRecord(options_.job_dir);
  if (absl::IsNotFound(record.status())) return absl::OkStatus();
  MU_RETURN_IF_ERROR(record.status());
  if (record->status == "done") return absl::OkStatus();
  std::vector<std::string> own;
  if (auto listed = ListCheckpoints(CheckpointFolder()); !absl::IsNotFound(listed.status())) {
    MU_ASSIGN_OR_RETURN(own, std::move(listed));
  }
  const bool same_job = JobFingerprint(record->job) == JobFingerprint(job_);
  if (!same_job && !own.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.job_dir,
        " holds the unfinished run of another job: ", JobDifferences(record->job, job_),
        "; choose another job_dir, or undo the change to continue it"));
  }
  // The command of before, or the way to continue that its help suggests. Whoever names another
  // checkpoint begins a new run with its values.
  const std::string& named = options_.checkpoint;
  const bool same_run =
      named.empty() || named == record->checkpoint || (!own.empty() && named == own.back());
  if (!same_job || !same_run) return absl::OkStatus();
  record_.checkpoint = record->checkpoint;
  if (own.empty()) return absl::OkStatus();  // it begins again, with the same values
  record_.first_epoch = record->first_epoch;
  continues_ = true;
  return absl::OkStatus();
}

absl::Status JobSession::TakeLock() {
  const std::string path = options_.job_dir + "/lock";
  const std::string self =
      ToText({.job = JobFingerprint(job_),
              .pid = getpid(),
              .host = HostName(),
              .since = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone())});
  MU_RETURN_IF_ERROR(lock_.Take(path, self));
  if (lock_.held()) return absl::OkStatus();
  const JobHolder holder = ParseJobHolder(lock_.owner());
  MU_RETURN_IF_ERROR(
      MayReplace(holder, JobFingerprint(job_), options_.take_over, options_.job_dir));
  Announce(absl::StrCat("replaces the coordinator (process ", holder.pid, " on ", holder.host,
                        ") that is training in ", options_.job_dir));
  return lock_.TakeOver(path, self);
}

absl::Status JobSession::Record(const std::string& status) {
  record_.status = status;
  return WriteJobRecord(options_.job_dir, record_);
}

absl::Status JobSession::Save(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "save");
  progress_->Begin("saving", 0);
  // What was scheduled cannot be finished without a worker: it is saved as what is to be done.
  if (left_unfinished_)
    Announce("workers or servers are gone: functions that wait are saved unfinished");
  MU_ASSIGN_OR_RETURN(report->checkpoint,
                      left_unfinished_ ? TakeUnfinished() : checkpointer_->TakeWhole());
  unsaved_ = false;
  checkpointer_.reset();
  return absl::OkStatus();
}

absl::StatusOr<std::string> JobSession::TakeUnfinished() {
  // Servers that are gone may not come back either.
  Notification taken;
  std::thread patience([&] {
    if (taken.WaitFor(kSavePatience)) return;
    pb::ErrorDetail detail;
    detail.set_kind(pb::ERROR_MACHINE);
    coordinator_->runtime().Fail(WithDetail(
        absl::UnavailableError(absl::StrCat("stopped, but servers that are gone did not come back "
                                            "within ",
                                            absl::FormatDuration(kSavePatience),
                                            ": the state of the last checkpoint is what is left")),
        detail));
  });
  absl::StatusOr<std::string> directory;
  for (int i = 0; i < kTries; ++i) {
    directory = checkpointer_->TakeNow();
    if (directory.ok() || !absl::IsUnavailable(directory.status())) break;
  }
  taken.Notify();
  patience.join();
  return directory;
}

absl::StatusOr<std::string> JobSession::CheckpointToRestore(const std::string& checkpoint) const {
  return FindCheckpoint(checkpoint.empty() ? options_.job_dir : checkpoint);
}

absl::Status JobSession::Restore(const std::string& checkpoint) {
  MU_ASSIGN_OR_RETURN(const std::string directory, CheckpointToRestore(checkpoint));
  const absl::StatusOr<pb::CheckpointProto> manifest = coordinator_->Restore(directory);
  if (absl::IsDataLoss(manifest.status())) {
    // Where servers were lost it is the machines' error, but here somebody chose this checkpoint.
    pb::ErrorDetail detail;
    detail.set_kind(pb::ERROR_USER);
    return WithDetail(
        absl::DataLossError(
            absl::StrCat(manifest.status().message(), "; use another checkpoint than ", directory)),
        detail);
  }
  MU_RETURN_IF_ERROR(manifest.status());
  Announce(absl::StrCat("begins with ", directory, " (", manifest->steps(), " steps)"));
  return absl::OkStatus();
}

}  // namespace mu
