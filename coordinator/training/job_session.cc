#include "coordinator/training/job_session.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/obs/log.h"
#include "common/obs/telemetry.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/job_rates.h"
#include "coordinator/training/parameter_rules.h"
#include "coordinator/training/trainer.h"
#include "coordinator/training/warm_start_job.h"

namespace mu {

ClusterOptions ClusterOptionsOf(const muster::JobProto& job, const RunOptions& options,
                                bool trains) {
  ClusterOptions cluster;
  cluster.workers = options.workers;
  cluster.ps = options.ps;
  cluster.name = job.name();
  cluster.job_dir = options.job_dir;
  cluster.owns_job = trains;
  cluster.job_fingerprint = JobFingerprint(job);
  cluster.seed = job.seed();
  if (job.optimizer().kind_case() != pb::OptimizerProto::KIND_NOT_SET)
    cluster.default_optimizer = Optimizer(job.optimizer());
  if (job.training().functions_in_flight() > 0) {
    cluster.functions_in_flight = static_cast<int>(job.training().functions_in_flight());
  }
  cluster.listen = options.listen;
  cluster.tls = options.tls;
  cluster.insecure = options.insecure;
  cluster.http = options.http;
  cluster.log_format = options.log_format;
  cluster.binary_dir = options.binary_dir;
  cluster.start_timeout = options.start_timeout;
  cluster.member_timeout = options.member_timeout;
  cluster.backup_after = options.backup_after;
  cluster.chaos = options.chaos;
  cluster.placement = options.placement;
  cluster.stop = options.stop;
  return cluster;
}

JobSession::JobSession(const pb::JobProto& job, const ModelRegistry& models,
                       const RunOptions& options)
    : job_(job), models_(models), options_(options) {}
JobSession::~JobSession() = default;

void JobSession::Announce(const std::string& text) {
  MU_LOG(WARN, "{}", text);
  if (options_.announce) options_.announce(text);
}

void JobSession::Tell(const std::string& line) {
  MU_LOG(INFO, "{}", line);
  if (options_.tell) options_.tell(line);
}

void JobSession::Warn(RunReport* report, const std::string& text, bool is_logged) {
  if (absl::c_linear_search(report->warnings, text)) return;  // once is enough
  report->warnings.push_back(text);
  if (!is_logged) return Announce(text);
  if (options_.announce) options_.announce(text);
}

absl::Status JobSession::Start() {
  ClusterOptions cluster = ClusterOptionsOf(job_, options_, trains_);
  MU_ASSIGN_OR_RETURN(coordinator_,
                      options_.local ? Local(std::move(cluster)) : Connect(std::move(cluster)));
  starting_ = std::make_unique<StopWatcher>(&coordinator_->runtime(), options_.stop);
  // A server that is lost from now on, while the data are looked through as well, is replaced.
  if (trains_) coordinator_->EnableRecovery(CheckpointFolder(), JobRecovery());
  // Also of what an unfinished run left, which goes on before Train.
  if (trains_) coordinator_->BoundStaleness(BoundedStalenessOf(job_.training()));
  if (trains_) MU_RETURN_IF_ERROR(coordinator_->SynchronousRounds(RoundsOf(job_.training())));
  const std::string& from = trains_ ? record_.checkpoint : options_.checkpoint;
  if (!trains_ || !from.empty()) {
    const auto found = CheckpointToRestore(from);
    if (found.ok()) coordinator_->UsePartitionCountsOf(*found);
    // What is only read is what was trained, whatever the job's seed is by now.
    if (found.ok() && !trains_) coordinator_->UseInitializersOf(*found);
  }
  if (BeginsWarm()) {
    const auto found = WarmStartCheckpoint(job_);
    if (found.ok()) coordinator_->UsePartitionCountsOf(*found, WarmStartOf(job_));
  }
  telemetry_ =
      std::make_unique<TelemetryCollector>(coordinator_.get(), !options_.trace_file.empty());
  progress_ = std::make_unique<ProgressReporter>(coordinator_.get(), options_.workers, options_.ps,
                                                 options_.progress);
  MU_ASSIGN_OR_RETURN(model_, models_.Create(job_.model()));
  RuledFactory factory(job_, coordinator_.get());
  MU_RETURN_IF_ERROR(model_->Create(factory));
  return factory.Check();
}

absl::StatusOr<Dataset> JobSession::CreateDataset(DataPurpose purpose) {
  MU_ASSIGN_OR_RETURN(pb::DatasetProto dataset, DatasetOf(job_, purpose));
  BoundIds(*model_, &dataset);
  if (purpose == DataPurpose::kPredict) {
    DropLabels(*model_, options_.predict_columns, &dataset);
    MU_RETURN_IF_ERROR(WithTexts(options_.predict_columns, &dataset));
  }
  return coordinator_->CreateDataset(std::move(dataset));
}

absl::Status JobSession::NothingRead(const std::string& data) const {
  const RuntimeStats stats = coordinator_->Stats();
  const std::string all = absl::StrCat(data, ": it has no good record: ");
  if (stats.bad_records > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        all, stats.bad_records, " of this run were left out (on_bad_record: skip), the first is ",
        stats.first_bad_record, "; mend the files, or what the job says of them"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      all, "the files are empty, or `records` keeps none of theirs; name files that have some"));
}

namespace {

RoleFailureTotals TotalsOf(const RoleFailures& failures) {
  return {failures.failures,
          failures.left,
          failures.recovered,
          failures.recovery_seconds * 1e3,
          failures.longest_recovery_seconds * 1e3,
          failures.steps_repeated,
          static_cast<uint64_t>(std::max<int64_t>(0, failures.updates_rolled_back)),
          failures.samples_repeated};
}

StalenessReport StalenessReportOf(const StalenessCounts& counts) {
  StalenessReport report;
  report.steps = counts.steps;
  if (counts.steps > 0)
    report.mean = static_cast<double>(counts.updates) / static_cast<double>(counts.steps);
  report.max = counts.max;
  report.refused = counts.refused;
  for (const auto& [from, steps] : counts.histogram)
    report.histogram.push_back({from, StalenessCounts::LastOf(from), steps});
  return report;
}

}  // namespace

absl::Status JobSession::Finish(RunReport* report, bool over) {
  if (coordinator_ == nullptr) return absl::OkStatus();
  starting_.reset();
  trainer_.reset();
  evaluate_checkpoint_ = nullptr;
  progress_.reset();
  telemetry_->Stop();
  report->time_by_part = telemetry_->TimeByPart();
  report->parameters = coordinator_->parameters();
  const RuntimeStats stats = coordinator_->Stats();
  // Of all that was read: training, evaluation, prediction.
  report->bad_records = stats.bad_records;
  report->first_bad_record = stats.first_bad_record;
  report->backup_runs = stats.backup_runs.runs;
  report->backup_steps_repeated = stats.backup_runs.steps_repeated;
  report->backup_samples_repeated = stats.backup_runs.samples_repeated;
  if (job_.training().has_staleness()) report->staleness = StalenessReportOf(stats.staleness);
  if (const auto steps = BoundedStalenessOf(job_.training()))
    report->bounded_staleness = {*steps, stats.waited_for_steps};
  if (const RoundRules rounds = RoundsOf(job_.training()); rounds.on())
    report->sync = {rounds, stats.rounds};
  for (const MemberFailure& failure : stats.failures) {
    report->failures.push_back(
        {failure.role == pb::ROLE_WORKER ? "worker" : "psserver", failure.index, failure.kind,
         failure.at_seconds, failure.message, failure.at_seconds * 1e3,
         failure.detection_latency_seconds * 1e3,
         failure.recovered_seconds < 0 ? -1 : failure.recovered_seconds * 1e3,
         failure.steps_repeated,
         static_cast<uint64_t>(std::max<int64_t>(0, failure.updates_rolled_back)),
         failure.samples_repeated});
  }
  const UnlistedFailures& unlisted = stats.unlisted_failures;
  report->unlisted_failures = {
      unlisted.failures,
      unlisted.left,
      unlisted.steps_repeated,
      static_cast<uint64_t>(std::max<int64_t>(0, unlisted.updates_rolled_back)),
      unlisted.samples_repeated,
      {{"worker", TotalsOf(unlisted.of_workers)}, {"psserver", TotalsOf(unlisted.of_servers)}}};
  report->without_progress_ms = stats.without_progress_seconds * 1e3;
  absl::Status written;
  if (!options_.trace_file.empty()) written = telemetry_->WriteTrace(options_.trace_file);
  telemetry_.reset();
  model_.reset();
  // Those of this machine end with us.
  if (over && !options_.local) coordinator_->Dismiss();
  coordinator_.reset();
  return written;
}

}  // namespace mu
