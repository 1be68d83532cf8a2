#include "coordinator/soak/soak.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/base/version.h"
#include "common/env/file.h"
#include "common/env/file_lock.h"
#include "coordinator/launch/chaos_plan.h"
#include "coordinator/soak/soak_page.h"

namespace mu {
namespace {

// A run that takes longer than this after what the job takes undisturbed does not come to its end.
constexpr absl::Duration kPatience = absl::Minutes(10);
constexpr double kPatienceFactor = 20;

class Soaking {
 public:
  Soaking(const SoakOptions& options, std::vector<SoakRecord> records)
      : options_(options), records_(std::move(records)), begin_(SteadyNow()) {}

  absl::StatusOr<SoakResult> Run(const std::vector<SoakJob>& jobs);

 private:
  bool Over() const {
    return (options_.stop != nullptr && options_.stop->load() > 0) ||
           SteadyNow() - begin_ >= options_.lasts;
  }
  absl::Status Train(const SoakJob& job, bool disturbed);
  absl::StatusOr<std::string> MakeDirectory(const SoakJob& job) const;
  absl::Duration LimitOf(const SoakJob& job) const;
  // Preemptions go on from run to run: each run's own clock would spare those that are shorter than
  // the time between two.
  absl::Duration DisturbedSoFar() const;
  void Tell(const SoakVerdict& verdict) const;

  const SoakOptions& options_;
  std::vector<SoakRecord> records_;
  const absl::Time begin_;
  SoakResult result_;
};

absl::StatusOr<SoakResult> Soaking::Run(const std::vector<SoakJob>& jobs) {
  const uint64_t rounds = options_.rounds.value_or(UINT64_MAX);
  const uint64_t calm_every = std::max<uint64_t>(1, options_.calm_every);
  for (uint64_t round = 0; round < rounds && !Over(); ++round) {
    for (const SoakJob& job : jobs) {
      if (round % calm_every == 0 && !Over()) MU_RETURN_IF_ERROR(Train(job, /*disturbed=*/false));
      if (!Over()) MU_RETURN_IF_ERROR(Train(job, /*disturbed=*/true));
    }
  }
  result_.page = JoinPath(options_.record, kSoakPageName);
  MU_RETURN_IF_ERROR(WriteSoakPage(options_));
  return result_;
}

absl::StatusOr<std::string> Soaking::MakeDirectory(const SoakJob& job) const {
  const std::string name = absl::StrReplaceAll(job.name, {{"/", "_"}});
  MU_ASSIGN_OR_RETURN(const std::string path,
                      AbsolutePath(JoinPath(JoinPath(options_.record, "runs"),
                                            absl::StrCat(name, "-", records_.size() + 1))));
  MU_RETURN_IF_ERROR(RemoveTree(path));  // of a soak that was killed
  MU_RETURN_IF_ERROR(MakeDirectories(path));
  return path;
}

absl::Duration Soaking::LimitOf(const SoakJob& job) const {
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    if (!record->disturbed() && record->done() && record->job == job.name &&
        record->setup == job.setup) {
      return kPatience + absl::Seconds(kPatienceFactor * record->seconds);
    }
  }
  return absl::InfiniteDuration();
}

absl::Duration Soaking::DisturbedSoFar() const {
  double seconds = 0;
  for (const SoakRecord& record : records_) {
    // Not the whole run: nothing is preempted while it starts.
    if (record.preemption == options_.preemption)
      seconds += record.train_seconds > 0 ? record.train_seconds : record.seconds;
  }
  return absl::Milliseconds(std::llround(seconds * 1000));
}

absl::Status Soaking::Train(const SoakJob& job, bool disturbed) {
  MU_ASSIGN_OR_RETURN(const std::string directory, MakeDirectory(job));
  SoakRun run{"", directory, LimitOf(job)};
  if (disturbed) {
    run.chaos =
        absl::StrCat(options_.preemption, ",after=", absl::FormatDuration(DisturbedSoFar()));
  }
  const int64_t began = absl::ToUnixSeconds(absl::Now());
  const absl::Time begin = SteadyNow();
  MU_ASSIGN_OR_RETURN(SoakRecord record, job.train(run));
  if (record.seconds <= 0) record.seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  record.job = job.name;
  record.setup = job.setup;
  record.preemption = disturbed ? options_.preemption : "";
  record.version = Version();
  record.began = began;
  MU_RETURN_IF_ERROR(AddRecord(options_.record, record));
  if (record.done() || record.status == "stopped") MU_RETURN_IF_ERROR(RemoveTree(directory));
  records_.push_back(std::move(record));
  const SoakVerdict verdict = Judge(records_, options_.limits).back();
  if (records_.back().status != "stopped") {
    ++result_.runs;
    if (verdict.flagged()) ++result_.flagged;
  }
  Tell(verdict);
  if (!records_.back().done() && FileExists(directory) && options_.tell)
    options_.tell(absl::StrCat("  its output and report: ", directory));
  return WriteSoakPage(options_);
}

void Soaking::Tell(const SoakVerdict& verdict) const {
  if (!options_.tell) return;
  const SoakRecord& run = *verdict.run;
  std::string line = absl::StrFormat("%s, %s: %s after %.1f s", run.job,
                                     run.disturbed() ? "with preemptions" : "undisturbed",
                                     run.status, run.seconds);
  if (verdict.slowdown > 0)
    absl::StrAppendFormat(&line, " (%.2f times undisturbed)", verdict.slowdown);
  if (std::isfinite(run.quality))
    absl::StrAppendFormat(&line, ", %s %.4f", run.metric, run.quality);
  for (const auto& [role, losses] : run.losses)
    absl::StrAppendFormat(&line, ", %d of %s lost", losses.count, role);
  options_.tell(line);
  if (run.disturbed() && run.done() && run.losses.empty())
    options_.tell("  nothing was lost: the job is too short for these preemptions");
  for (const std::string& wrong : verdict.wrong) options_.tell("  WRONG: " + wrong);
  for (const std::string& worse : verdict.worse) options_.tell("  worse: " + worse);
}

}  // namespace

absl::Status WriteSoakPage(const SoakOptions& options) {
  MU_ASSIGN_OR_RETURN(const std::vector<SoakRecord> records, ReadRecords(options.record));
  return WriteFileAtomic(JoinPath(options.record, kSoakPageName),
                         SoakPage(Judge(records, options.limits), options.prices));
}

absl::StatusOr<SoakResult> Soak(const SoakOptions& options, const std::vector<SoakJob>& jobs) {
  if (jobs.empty()) return absl::InvalidArgumentError("there is no job to soak");
  MU_RETURN_IF_ERROR(ChaosPlan::Parse(options.preemption).status());
  for (const absl::string_view rule : absl::StrSplit(options.preemption, ',')) {
    if (absl::StartsWith(absl::StripAsciiWhitespace(rule), "after=")) {
      return absl::InvalidArgumentError(
          absl::StrCat("preemptions `", options.preemption,
                       "`: after= is what a soak adds for each run; leave it out"));
    }
  }
  MU_RETURN_IF_ERROR(MakeDirectories(options.record));
  FileLock lock;
  MU_RETURN_IF_ERROR(
      lock.Take(JoinPath(options.record, "lock"), absl::StrCat("process ", getpid())));
  if (!lock.held()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.record, " is the record of another soak that runs (", lock.owner(),
                     "); wait for it, or name another folder"));
  }
  MU_ASSIGN_OR_RETURN(std::vector<SoakRecord> records, ReadRecords(options.record));
  return Soaking(options, std::move(records)).Run(jobs);
}

}  // namespace mu
