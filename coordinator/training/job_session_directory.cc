// What a job's session leaves in the job_dir and finds there: the record of the run, its lock,
// checkpoints.
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_now.h"
#include "common/env/file_identity.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/training/dismissal.h"
#include "coordinator/training/job_holder.h"
#include "coordinator/training/job_session.h"
#include "coordinator/training/run_status.h"
#include "coordinator/training/stop_patience.h"
#include "coordinator/training/trainer.h"
#include "coordinator/training/values_moment.h"
#include "coordinator/training/warm_start_job.h"

namespace mu {
namespace {

// How long a job that was stopped waits for servers that are gone, to save, and how often it tries.
constexpr absl::Duration kSavePatience = absl::Minutes(2);
constexpr int kTries = 20;
// Between two looks at what nobody announces.
constexpr absl::Duration kLook = absl::Seconds(1);

// The error of a checkpoint that somebody chose. Where servers were lost it is the machines' error
// that one is damaged, but not here. `flag` is what names a checkpoint, up to its path.
absl::Status AsChoice(const absl::Status& status, const std::string& directory,
                      absl::string_view flag) {
  if (absl::IsInvalidArgument(status))
    return Annotate(status, absl::StrCat(directory, " (--checkpoint=DIR names another)"));
  if (!absl::IsDataLoss(status)) return status;
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_USER);
  std::string text = absl::StrCat(status.message(), "; use another checkpoint than ", directory);
  if (const std::string older = NewestBefore(directory); !older.empty())
    absl::StrAppend(&text, ", such as ", flag, older, ", the newest before it");
  return WithDetail(absl::DataLossError(text), detail);
}

// What --train_again adds to a command that names this for --checkpoint.
std::string FromValuesOf(const std::string& named) {
  return named.empty() ? "" : absl::StrCat(" from the values of ", named);
}

}  // namespace

absl::Status JobSession::LookForEarlierRun() {
  trains_ = true;
  record_.job = job_;
  record_.checkpoint = options_.checkpoint;
  record_.named_checkpoint =
      options_.named_checkpoint.empty() ? options_.checkpoint : options_.named_checkpoint;
  // A vocabulary is a file beside the job: its texts decide about ids as the job's keys do.
  if (const auto train = DatasetOf(job_, DataPurpose::kTrain); train.ok())
    record_.vocabularies = FingerprintsOf(*train);
  MU_RETURN_IF_ERROR(TakeLock());
  const absl::StatusOr<JobRecord> record = ReadJobRecord(options_.job_dir);
  if (absl::IsNotFound(record.status())) {
    MU_RETURN_IF_ERROR(LookAtOthersCheckpoints());
    return Reopen(std::nullopt);
  }
  MU_RETURN_IF_ERROR(record.status());
  MU_RETURN_IF_ERROR(record->status == "done" ? LookAtDone(*record) : LookAtUnfinished(*record));
  return Reopen(*record);
}

absl::Status JobSession::LookAtUnfinished(const JobRecord& record) {
  std::vector<std::string> found;
  if (auto listed = ListCheckpoints(CheckpointFolder()); !absl::IsNotFound(listed.status())) {
    MU_ASSIGN_OR_RETURN(found, std::move(listed));
  }
  // Else those that are found are an earlier run's.
  const bool has_own = !found.empty() && HasOwnCheckpoint(record, options_.job_dir);
  const bool same_job = JobFingerprint(record.job) == JobFingerprint(job_);
  if (!same_job && !found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.job_dir,
                     " holds the unfinished run of another job: ", JobDifferences(record.job, job_),
                     "; choose another job_dir, or undo the change to continue it"));
  }
  if (const auto others = OtherVocabularies(record, record_); has_own && !others.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.job_dir, " holds the unfinished run of this job, but the vocabulary of column ",
        absl::StrJoin(others, ", "),
        " has other texts than when the run began: texts would be other ids than those that were "
        "trained; choose another job_dir, or undo the change to continue it"));
  }
  // The command of before, or the way to continue that its help suggests. Whoever names another
  // checkpoint begins a new run with its values.
  const bool same_run =
      NamesNoOtherCheckpoint(record) ||
      (has_own && FileIdentity(options_.checkpoint) == FileIdentity(found.back()));
  if (same_job && !same_run && !found.empty()) AnnounceNewRun("an unfinished run of this job");
  if (!same_job || !same_run) return absl::OkStatus();
  if (!has_own && !found.empty()) {
    Announce(absl::StrCat(options_.job_dir, " holds an unfinished run of this job that has taken ",
                          "no checkpoint: it begins again; checkpoints of before are deleted as ",
                          "new ones come"));
  }
  // With the same values; unless only the folder that was named is still there.
  if (!has_own && !options_.checkpoint.empty() && !FindCheckpoint(record.checkpoint).ok())
    return absl::OkStatus();
  record_.checkpoint = record.checkpoint;
  record_.named_checkpoint = record.named_checkpoint;
  if (!has_own) return absl::OkStatus();
  record_.first_epoch = record.first_epoch;
  record_.first_step = record.first_step;
  record_.rounds = record.rounds;
  continues_ = true;
  // Whoever starts it again after a crash gives the flag again.
  if (options_.train_again)
    Announce("--train_again trains again what is done; this run is not, and goes on");
  return absl::OkStatus();
}

absl::Status JobSession::LookAtOthersCheckpoints() {
  const auto found = ListCheckpoints(CheckpointFolder());
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  MU_RETURN_IF_ERROR(found.status());
  if (found->empty()) return absl::OkStatus();
  // Whoever names a checkpoint begins a new run with its values.
  if (options_.train_again || !options_.checkpoint.empty()) {
    AnnounceNewRun("checkpoints that no job has taken");
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      options_.job_dir, " holds checkpoints, and no record of the job that took them: they may be ",
      "those of a program; choose another job_dir, or begin anew in this one with --train_again, "
      "which deletes them as new ones come"));
}

absl::Status JobSession::LookAtDone(const JobRecord& record) {
  // Whoever names another checkpoint begins a new run with its values.
  if (options_.train_again || !NamesNoOtherCheckpoint(record)) {
    AnnounceNewRun("a job that is done");
    return absl::OkStatus();
  }
  if (JobFingerprint(record.job) != JobFingerprint(job_)) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.job_dir, " holds another job, which is done: ", JobDifferences(record.job, job_),
        "; choose another job_dir, or begin anew in this one",
        FromValuesOf(record_.named_checkpoint), " with --train_again"));
  }
  if (const auto others = OtherVocabularies(record, record_); !others.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.job_dir, " holds this job, which is done, but the vocabulary of ",
                     "column ", absl::StrJoin(others, ", "), " has other texts than those that it ",
                     "was trained with; choose another job_dir, or begin anew in this one",
                     FromValuesOf(record_.named_checkpoint), " with --train_again"));
  }
  done_ = true;
  return absl::OkStatus();
}

absl::Status JobSession::Reopen(std::optional<JobRecord> found) {
  const bool was_starting = found.has_value() && found->starting;
  if (was_starting) found->starting = false;
  if (done_) {
    // A coordinator was about to train again here, and died.
    return was_starting ? WriteJobRecord(options_.job_dir, *found) : absl::OkStatus();
  }
  const bool over = RunIsOver(options_.job_dir);
  if (over || was_starting) earlier_ = found;
  if (!over) return absl::OkStatus();
  if (found.has_value()) {
    found->starting = true;
    MU_RETURN_IF_ERROR(WriteJobRecord(options_.job_dir, *found));
  }
  return UnmarkRun(options_.job_dir);
}

void JobSession::AnnounceNewRun(const std::string& found) {
  Announce(absl::StrCat(
      options_.job_dir, " holds ", found, ": a new run BEGINS there, with ",
      options_.checkpoint.empty() ? "initial values" : "the values of " + options_.checkpoint,
      "; checkpoints of before are deleted as new ones come"));
}

void JobSession::TellDone(RunReport* report) {
  report->refused = report->was_done = true;
  report->checkpoint = CheckpointToRestore("").value_or("");
  Announce(absl::StrCat(options_.job_dir,
                        " holds this job, and it is done: nothing is trained; give another ",
                        "job_dir, or --train_again to train it again",
                        record_.named_checkpoint.empty() ? " from the start"
                                                         : FromValuesOf(record_.named_checkpoint)));
  SendDaemonsHome();
}

void JobSession::Refuse(const absl::Status& why) {
  if (options_.local || !lock_.held()) return;  // else its holder's daemons
  Announce(absl::StrCat(why.message(), "; daemons that register at ", options_.listen,
                        " are sent home"));
  SendDaemonsHome();
}

void JobSession::SendDaemonsHome() {
  const absl::Status sent = DismissDaemons(job_, options_, /*owns_job=*/true);
  if (!sent.ok()) Announce(std::string(sent.message()));
}

absl::Status JobSession::TakeLock() {
  const std::string path = options_.job_dir + "/lock";
  const std::string self = ToText(ThisHolder(JobFingerprint(job_)));
  MU_RETURN_IF_ERROR(lock_.Take(path, self));
  if (lock_.held()) return absl::OkStatus();
  const JobHolder holder = ParseJobHolder(lock_.owner());
  MU_RETURN_IF_ERROR(
      MayReplace(holder, JobFingerprint(job_), options_.take_over, options_.job_dir));
  // Nobody would go on with what the other one leaves.
  if (AskedToStop(options_.stop)) return absl::CancelledError("stopped");
  Announce(absl::StrCat("replaces the coordinator (process ", holder.pid, " on ", holder.host,
                        ") that is training in ", options_.job_dir));
  return lock_.TakeOver(path, self);
}

absl::Status JobSession::Record(const std::string& status) {
  record_.status = status;
  MU_RETURN_IF_ERROR(WriteJobRecord(options_.job_dir, record_));
  // Of a program that trained here before. Not first: the record of before may say "done".
  return UnmarkRun(options_.job_dir);
}

void JobSession::RecordFailure() {
  if (replaced()) return;
  absl::Status written;
  if (!record_.status.empty()) {
    written = Record("failed");
  } else if (earlier_.has_value()) {  // this run has not begun: the earlier one counts
    written = WriteJobRecord(options_.job_dir, *earlier_);
  }
  if (!written.ok()) MU_LOG(WARN, "{}", written);
}

bool JobSession::EarlierStaysDone() const {
  return record_.status.empty() && earlier_.has_value() && earlier_->status == "done";
}

absl::Status JobSession::Save(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "save");
  progress_->Begin("saving", 0);
  // What was scheduled cannot be finished without a worker: it is saved as what is to be done.
  if (left_unfinished_)
    Announce("workers or servers are gone: functions that wait are saved unfinished");
  MU_ASSIGN_OR_RETURN(report->checkpoint, TakeLast(report));
  unsaved_ = false;
  if (last_evaluation_.has_value() && !trainer_->StillHolds(*last_evaluation_))
    last_evaluation_.reset();
  trainer_->EndCheckpoints();
  return absl::OkStatus();
}

absl::StatusOr<std::string> JobSession::TakeLast(RunReport* report) {
  // Servers that are gone when a job stops may not come back. Those that are there may take their
  // time.
  Notification taken;
  std::string whole;  // the thread's own until it has ended
  std::thread patience([&] {
    absl::Time end = SteadyNow() + kSavePatience;
    do {
      if (taken.WaitFor(kLook)) return;
      if (!AskedToStop(options_.stop) || AllServersAreThere()) {
        end = SteadyNow() + kSavePatience;
      } else {
        whole = CheckpointOfAllSteps();
      }
    } while (whole.empty() && SteadyNow() < end);
    pb::ErrorDetail detail;
    detail.set_kind(pb::ERROR_MACHINE);
    coordinator_->runtime().Fail(WithDetail(
        absl::UnavailableError(absl::StrCat("stopped, but servers that are gone did not come back "
                                            "within ",
                                            absl::FormatDuration(kSavePatience),
                                            ": the state of the last checkpoint is what is left")),
        detail));
  });
  absl::StatusOr<std::string> directory = absl::CancelledError("functions wait");
  if (!left_unfinished_) {
    // Where a server was lost, steps run again.
    NobodyLeft nobody_left(coordinator_.get(), TrainOptions().patience);
    directory =
        trainer_->Save([&] { return !AskedToStop(options_.stop) || !nobody_left.ForLong(); });
  }
  if (absl::IsCancelled(directory.status()) && coordinator_->runtime().ended().ok()) {
    for (int i = 0; i < kTries; ++i) {
      directory = trainer_->checkpointer()->TakeNow();
      if (directory.ok() || !absl::IsUnavailable(directory.status())) break;
    }
  }
  taken.Notify();
  patience.join();
  if (directory.ok() || whole.empty()) return directory;
  Announce(absl::StrCat("servers have left, and ", whole, " holds all steps that were done"));
  report->status = "stopped";  // nothing can be evaluated any more
  return whole;
}

bool JobSession::AllServersAreThere() const {
  return coordinator_->Counts().servers >= static_cast<size_t>(options_.ps);
}

// Servers that were asked to leave have had one taken, and nothing has run since.
std::string JobSession::CheckpointOfAllSteps() const {
  const RuntimeStats stats = coordinator_->Stats();
  const auto newest = FindCheckpoint(options_.job_dir);
  if (!newest.ok()) return "";
  const auto manifest = ReadManifest(*newest);
  const bool own = manifest.ok() && manifest->epoch() >= record_.first_epoch;
  return own && manifest->position().samples() == stats.trained_samples ? *newest : "";
}

absl::StatusOr<std::string> JobSession::CheckpointToRestore(const std::string& checkpoint) const {
  return FindCheckpoint(checkpoint.empty() ? options_.job_dir : checkpoint);
}

absl::Status JobSession::Restore(const std::string& checkpoint) {
  MU_ASSIGN_OR_RETURN(const std::string directory, CheckpointToRestore(checkpoint));
  const absl::StatusOr<pb::CheckpointProto> manifest = coordinator_->Restore(directory);
  MU_RETURN_IF_ERROR(
      AsChoice(manifest.status(), directory, options_.follow.empty() ? "--checkpoint=" : ""));
  Announce(
      absl::StrCat("begins with ", directory, " (", MomentOfValues(*manifest).steps, " steps)"));
  return absl::OkStatus();
}

absl::Status JobSession::WarmStart() {
  MU_ASSIGN_OR_RETURN(const std::string directory, WarmStartCheckpoint(job_));
  const absl::StatusOr<pb::TakenValuesProto> taken =
      coordinator_->WarmStart(directory, WarmStartOf(job_));
  if (absl::IsInvalidArgument(taken.status())) return Annotate(taken.status(), directory);
  MU_RETURN_IF_ERROR(AsChoice(taken.status(), directory, ""));
  Announce(absl::StrCat("begins with ", taken->names_size(), " variables and tables of ", directory,
                        taken->slots() ? ", and with their slots" : ""));
  return absl::OkStatus();
}

}  // namespace mu
