#include "coordinator/training/job_session.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"
#include "common/obs/telemetry.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/job_position.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/check_files.h"
#include "coordinator/training/job_gradients.h"
#include "coordinator/training/job_rates.h"
#include "coordinator/training/loss_watch.h"
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
  cluster.stop = options.stop;
  return cluster;
}

void JobSession::Announce(const std::string& text) {
  MU_LOG(WARN, "{}", text);
  if (options_.announce) options_.announce(text);
}

void JobSession::Warn(RunReport* report, const std::string& text) {
  report->warnings.push_back(text);
  Announce(text);
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
  const std::string& from = trains_ ? record_.checkpoint : options_.checkpoint;
  if (!trains_ || !from.empty()) {
    const auto found = CheckpointToRestore(from);
    if (found.ok()) coordinator_->UsePartitionCountsOf(*found);
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
  if (purpose == DataPurpose::kPredict) DropLabels(*model_, options_.predict_columns, &dataset);
  return coordinator_->CreateDataset(std::move(dataset));
}

absl::Status JobSession::Train(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "train");
  MU_ASSIGN_OR_RETURN(const Dataset dataset, CreateDataset(DataPurpose::kTrain));
  // What is certain CheckJob has found. Nothing else would tell where nothing is evaluated.
  if (const NonePositive none = LookForPositives(dataset.proto()); !none.why.empty()) {
    Warn(report, absl::StrCat(dataset.name(), ": ", none.why,
                              "; if no others come further behind, the model learns nothing"));
  }
  // Looks through the files, which a stop ends as long as `starting_` lives.
  MU_ASSIGN_OR_RETURN(const uint64_t steps, coordinator_->BatchesInEpoch(dataset, 0));
  MU_ASSIGN_OR_RETURN(MinimizeOptions rates, JobRates(job_.training(), steps));
  if (!continues_ && !record_.checkpoint.empty()) {
    // The steps of the run that it begins with are counted, but its schedule is over.
    MU_ASSIGN_OR_RETURN(const std::string directory, CheckpointToRestore(record_.checkpoint));
    MU_ASSIGN_OR_RETURN(const pb::CheckpointProto manifest, ReadManifest(directory));
    record_.first_step = ScheduledSteps(manifest);
  }
  rates.first_step = record_.first_step;
  rates.gradients = GradientOptionsOf(job_.training());
  MU_ASSIGN_OR_RETURN(const Function step,
                      coordinator_->DefineFunction("train_step", [&](FunctionBuilder& f) {
                        f.Train();
                        const ModelOutput output = model_->Build(f, f.NextBatch(dataset));
                        f.Minimize(output.loss, rates);
                        f.Return("loss", output.loss);
                      }));
  TrainOptions options;
  options.epochs = std::max<uint32_t>(1, job_.training().epochs());
  options.max_steps = job_.training().max_steps();
  options.stop = options_.stop;
  options.bounded_staleness = BoundedStalenessOf(job_.training());
  if (const std::string& steps = job_.training().steps_per_function();
      !steps.empty() && steps != "auto") {
    if (!absl::SimpleAtoi(steps, &options.steps_per_function) || options.steps_per_function == 0) {
      return absl::InvalidArgumentError(absl::StrCat("training.steps_per_function is '", steps,
                                                     "'; use auto or a number from 1"));
    }
  }
  const pb::CheckpointOptionsProto& checkpoint = job_.checkpoint();
  absl::Duration every = absl::Minutes(5);
  if (checkpoint.every() == "never") {
    every = absl::InfiniteDuration();
  } else if (checkpoint.has_every() && !absl::ParseDuration(checkpoint.every(), &every)) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint.every is '", checkpoint.every(), "'; use 30s, 5m, 1h or never"));
  }
  checkpointer_ = std::make_unique<Checkpointer>(
      coordinator_.get(),
      CheckpointerOptions{.directory = CheckpointFolder(),
                          .every = every,
                          .every_steps = checkpoint.every_steps(),
                          .keep = checkpoint.has_keep() ? static_cast<int>(checkpoint.keep()) : 3,
                          .requests = options_.checkpoint_requests,
                          .recovery = JobRecovery(),
                          .describe = [this](pb::CheckpointProto* manifest) {
                            manifest->set_steps(steps_);
                            manifest->set_samples(samples_);
                          }});
  RestoredJob restored;
  if (continues_) {
    absl::StatusOr<RestoredJob> found =
        coordinator_->Restore(CoordinatorEpoch(record_.first_epoch));
    if (found.ok()) {
      restored = *std::move(found);
      options.restored = &restored;
      steps_ = restored.manifest.position().steps();
      samples_ = restored.manifest.position().samples();
      report->continued_from = restored.directory;
      Announce(absl::StrCat(options_.job_dir,
                            " holds an unfinished run of this job: it CONTINUES from ",
                            restored.directory, " after ", steps_.load(),
                            " steps; give another job_dir to begin anew"));
    } else if (absl::IsNotFound(found.status())) {
      Announce(
          absl::StrCat(options_.job_dir,
                       " holds an unfinished run of this job, but no checkpoint of it: it begins "
                       "anew"));
      continues_ = false;
    } else {
      return found.status();
    }
  }
  if (!continues_) {
    if (!record_.checkpoint.empty()) MU_RETURN_IF_ERROR(Restore(record_.checkpoint));
    if (BeginsWarm()) MU_RETURN_IF_ERROR(WarmStart());
    coordinator_->StartFresh();
  }
  starting_.reset();  // from here on a stop saves what there is
  MU_RETURN_IF_ERROR(coordinator_->runtime().ended());
  unsaved_ = true;
  if (!continues_) record_.first_epoch = coordinator_->runtime().options().epoch.value();
  MU_RETURN_IF_ERROR(Record("running"));
  // So that nothing depends on the other model's checkpoint from here on. An error is in the log.
  if (BeginsWarm()) checkpointer_->TakeNow().status().IgnoreError();
  progress_->Begin("training", 0, options.epochs);
  bool begun = false;
  LossWatch loss_watch;
  const absl::Time begin = SteadyNow();
  const absl::StatusOr<TrainResult> result =
      mu::Train(*coordinator_, step, dataset, options, [&](const TrainEvent& event) {
        if (!begun) progress_->Begin("training", event.total_steps, options.epochs);
        begun = true;
        steps_ = event.steps;
        samples_ = event.samples;
        progress_->Update(event.epoch, event.steps, event.total_steps, event.samples, event.loss);
        if (const std::string growth = loss_watch.Observe(event.steps, event.loss); !growth.empty())
          Warn(report, growth);
      });
  if (result.ok()) {
    steps_ = result->steps;
    samples_ = result->samples;
  }
  // Of a job that fails, too.
  report->steps = steps_;
  report->samples = samples_;
  report->train_seconds =
      result.ok() ? result->seconds : absl::ToDoubleSeconds(SteadyNow() - begin);
  // Of what this run did in its time; the report's samples may begin with another's.
  const uint64_t before = restored.manifest.position().samples();
  report->samples_per_second =
      static_cast<double>(report->samples - before) / std::max(1e-9, report->train_seconds);
  MU_RETURN_IF_ERROR(result.status());
  report->functions = result->functions;
  report->train_loss = result->last_epoch_loss;
  left_unfinished_ = result->unfinished;
  report->steps_per_function = result->steps_per_function;
  if (result->stopped) report->status = "stopped";
  return absl::OkStatus();
}

namespace {

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
  checkpointer_.reset();
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
      unlisted.without_progress_seconds * 1e3};
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
