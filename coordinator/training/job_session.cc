#include "coordinator/training/job_session.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/metrics/binary_metrics.h"
#include "common/metrics/regression_metrics.h"
#include "common/obs/log.h"
#include "common/obs/telemetry.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/trainer.h"

namespace mu {

namespace {

// The warm-up that a job gets without asking: so many steps, but at most this part of all.
constexpr uint64_t kWarmupSteps = 200;
constexpr uint64_t kWarmupPart = 10;

// How long a job that was stopped waits for servers that are gone, to save, and how often it tries.
constexpr absl::Duration kSavePatience = absl::Minutes(2);
constexpr int kTries = 20;

absl::StatusOr<std::unique_ptr<Coordinator>> LaunchCluster(const muster::JobProto& job,
                                                           const RunOptions& options, bool trains) {
  ClusterOptions cluster;
  cluster.workers = options.workers;
  cluster.ps = options.ps;
  cluster.name = job.name();
  cluster.job_dir = options.job_dir;
  cluster.owns_job = trains;
  cluster.job_fingerprint = JobFingerprint(job);
  cluster.seed = job.seed();
  if (job.optimizer().has_sgd()) {
    cluster.default_optimizer = Sgd{.learning_rate = job.optimizer().sgd().learning_rate()};
  } else if (job.optimizer().has_adagrad()) {
    const auto& adagrad = job.optimizer().adagrad();
    Adagrad optimizer{.learning_rate = adagrad.learning_rate(),
                      .initial_accumulator = adagrad.initial_accumulator()};
    if (adagrad.epsilon() > 0) optimizer.epsilon = adagrad.epsilon();
    cluster.default_optimizer = optimizer;
  }
  if (job.training().functions_in_flight() > 0) {
    cluster.functions_in_flight = static_cast<int>(job.training().functions_in_flight());
  }
  cluster.listen = options.listen;
  cluster.insecure = options.insecure;
  cluster.binary_dir = options.binary_dir;
  cluster.start_timeout = options.start_timeout;
  cluster.member_timeout = options.member_timeout;
  cluster.chaos = options.chaos;
  cluster.stop = options.stop;
  return options.local ? Local(std::move(cluster)) : Connect(std::move(cluster));
}

}  // namespace

absl::Status JobSession::LookForUnfinished() {
  trains_ = true;
  record_.job = job_;
  record_.checkpoint = options_.checkpoint;
  MU_RETURN_IF_ERROR(TakeLock());
  // Another coordinator of the same job is fenced: it may hang.
  if (!lock_.held() && lock_.owner() != LockOwner()) {
    return absl::InvalidArgumentError(absl::StrCat("a coordinator is training another job in ",
                                                   options_.job_dir, "; choose another job_dir"));
  }
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

std::string JobSession::LockOwner() const { return absl::StrCat(JobFingerprint(job_), "\n"); }

absl::Status JobSession::TakeLock() {
  return lock_.held() ? absl::OkStatus() : lock_.Take(options_.job_dir + "/lock", LockOwner());
}

void JobSession::Announce(const std::string& text) {
  MU_LOG(WARN, "{}", text);
  if (options_.announce) options_.announce(text);
}

absl::Status JobSession::Record(const std::string& status) {
  record_.status = status;
  MU_RETURN_IF_ERROR(TakeLock());  // whoever was replaced may have ended meanwhile
  return WriteJobRecord(options_.job_dir, record_);
}

absl::Status JobSession::Start() {
  MU_ASSIGN_OR_RETURN(coordinator_, LaunchCluster(job_, options_, trains_));
  starting_ = std::make_unique<StopWatcher>(&coordinator_->runtime(), options_.stop);
  // A server that is lost from now on, while the data are looked through as well, is replaced.
  if (trains_) coordinator_->EnableRecovery(CheckpointFolder(), JobRecovery());
  const std::string& from = trains_ ? record_.checkpoint : options_.checkpoint;
  if (!trains_ || !from.empty()) {
    const auto found = CheckpointToRestore(from);
    if (found.ok()) coordinator_->LikeCheckpoint(*found);
  }
  telemetry_ =
      std::make_unique<TelemetryCollector>(coordinator_.get(), !options_.trace_file.empty());
  progress_ = std::make_unique<ProgressReporter>(coordinator_.get(), options_.workers, options_.ps,
                                                 options_.progress);
  MU_ASSIGN_OR_RETURN(model_, models_.Create(job_.model()));
  return model_->Create(*coordinator_);
}

absl::StatusOr<Dataset> JobSession::CreateDataset(DataPurpose purpose) {
  MU_ASSIGN_OR_RETURN(pb::DatasetProto dataset, DatasetOf(job_, purpose));
  BoundIds(*model_, &dataset);
  return coordinator_->CreateDataset(std::move(dataset));
}

absl::Status JobSession::Train(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "train");
  MU_ASSIGN_OR_RETURN(const Dataset dataset, CreateDataset(DataPurpose::kTrain));
  // Looks through the files, which a stop ends as long as `starting_` lives.
  MU_ASSIGN_OR_RETURN(uint64_t steps, coordinator_->BatchesInEpoch(dataset, 0));
  uint32_t warmup_steps = 0;
  if (const std::string& text = job_.training().warmup_steps(); text.empty() || text == "auto") {
    steps *= std::max<uint32_t>(1, job_.training().epochs());
    if (job_.training().max_steps() > 0)
      steps = std::min<uint64_t>(steps, job_.training().max_steps());
    warmup_steps = static_cast<uint32_t>(std::min<uint64_t>(kWarmupSteps, steps / kWarmupPart));
  } else if (!absl::SimpleAtoi(text, &warmup_steps)) {
    return absl::InvalidArgumentError(
        absl::StrCat("training.warmup_steps is '", text, "'; use auto or a number"));
  }
  MU_ASSIGN_OR_RETURN(const Function step,
                      coordinator_->DefineFunction("train_step", [&](FunctionBuilder& f) {
                        const ModelOutput output = model_->Build(f, f.NextBatch(dataset));
                        f.Minimize(output.loss, {.warmup_steps = warmup_steps});
                        f.Return("loss", output.loss);
                      }));
  TrainOptions options;
  options.epochs = std::max<uint32_t>(1, job_.training().epochs());
  options.max_steps = job_.training().max_steps();
  options.stop = options_.stop;
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
    coordinator_->BeginAnew();
  }
  starting_.reset();  // from here on a stop saves what there is
  MU_RETURN_IF_ERROR(coordinator_->runtime().ended());
  unsaved_ = true;
  if (!continues_) record_.first_epoch = coordinator_->runtime().options().epoch.value();
  MU_RETURN_IF_ERROR(Record("running"));
  progress_->Begin("training", 0, options.epochs);
  bool begun = false;
  const absl::StatusOr<TrainResult> result =
      mu::Train(*coordinator_, step, dataset, options, [&](const TrainEvent& event) {
        if (!begun) progress_->Begin("training", event.total_steps, options.epochs);
        begun = true;
        steps_ = event.steps;
        samples_ = event.samples;
        progress_->Update(event.epoch, event.steps, event.total_steps, event.samples, event.loss);
      });
  if (result.ok()) {
    steps_ = result->steps;
    samples_ = result->samples;
  }
  // Of a job that fails, too.
  report->steps = steps_;
  report->samples = samples_;
  MU_RETURN_IF_ERROR(result.status());
  report->functions = result->functions;
  report->train_seconds = result->seconds;
  // Of what this run did in its time; the report's samples may begin with another's.
  const uint64_t before = restored.manifest.position().samples();
  report->samples_per_second =
      static_cast<double>(result->samples - before) / std::max(1e-9, result->seconds);
  report->train_loss = result->last_epoch_loss;
  left_unfinished_ = result->unfinished;
  report->steps_per_function = result->steps_per_function;
  if (result->stopped) report->status = "stopped";
  return absl::OkStatus();
}

void JobSession::WatchStart() {
  if (starting_ == nullptr)
    starting_ = std::make_unique<StopWatcher>(&coordinator_->runtime(), options_.stop);
}

absl::Status JobSession::PrepareToRead(const Dataset& dataset) {
  MU_RETURN_IF_ERROR(coordinator_->StartEpoch(dataset, 0));
  starting_.reset();  // what reads looks itself
  return absl::OkStatus();
}

absl::StatusOr<Function> JobSession::DefineForward(const Dataset& dataset, bool with_label,
                                                   Task* task) {
  return coordinator_->DefineFunction(
      with_label ? "eval_step" : "predict_step", [&](FunctionBuilder& f) {
        const ModelOutput output = model_->Build(f, f.NextBatch(dataset));
        *task = output.task;
        f.Return("prediction", output.prediction);
        if (with_label) f.Return("label", output.label);
      });
}

absl::Status JobSession::Evaluate(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "evaluate");
  WatchStart();
  MU_ASSIGN_OR_RETURN(const Dataset dataset, CreateDataset(DataPurpose::kEval));
  Task task = Task::kRegression;
  MU_ASSIGN_OR_RETURN(const Function forward, DefineForward(dataset, true, &task));
  progress_->Begin("evaluating", 0);
  MU_RETURN_IF_ERROR(PrepareToRead(dataset));
  BinaryMetrics binary;
  RegressionMetrics regression;
  EvalOptions options;
  options.stop = options_.stop;
  uint64_t seen = 0;
  MU_ASSIGN_OR_RETURN(
      const uint64_t examples,
      ForEachPrediction(
          *coordinator_, forward, dataset, options,
          [&](absl::Span<const float> predictions, absl::Span<const float> labels) {
            seen += predictions.size();
            return task == Task::kBinaryClassification ? binary.Add(predictions, labels)
                                                       : regression.Add(predictions, labels);
          },
          [&](uint64_t steps, uint64_t total) { progress_->Update(1, steps, total, seen, 0); }));
  report->eval_examples = examples;
  report->eval_metrics =
      task == Task::kBinaryClassification ? binary.Values() : regression.Values();
  return absl::OkStatus();
}

absl::Status JobSession::Predict(RunReport* report) {
  ScopedSpan span(&Telemetry::Process(), "predict");
  WatchStart();
  MU_ASSIGN_OR_RETURN(const Dataset dataset, CreateDataset(DataPurpose::kPredict));
  Task task = Task::kRegression;
  MU_ASSIGN_OR_RETURN(const Function forward, DefineForward(dataset, false, &task));
  progress_->Begin("predicting", 0);
  MU_RETURN_IF_ERROR(PrepareToRead(dataset));
  const std::string path =
      options_.predict_out.empty() ? options_.job_dir + "/predictions.csv" : options_.predict_out;
  const std::string temporary = path + ".part";
  std::ofstream out(temporary, std::ios::trunc);
  out << "prediction\n";
  EvalOptions options;
  options.stop = options_.stop;
  options.label = "";
  options.in_order = true;
  uint64_t written = 0, not_finite = 0, first_not_finite = 0;
  const auto examples = ForEachPrediction(
      *coordinator_, forward, dataset, options,
      [&](absl::Span<const float> predictions, absl::Span<const float>) {
        char line[32];
        for (size_t i = 0; i < predictions.size(); ++i) {
          const float value = predictions[i];
          if (!std::isfinite(value) && not_finite++ == 0) first_not_finite = written + i + 1;
          out.write(line, std::snprintf(line, sizeof(line), "%.9g\n", value));
        }
        written += predictions.size();
        return out.good() ? absl::OkStatus()
                          : absl::ResourceExhaustedError("cannot write " + temporary);
      },
      [&](uint64_t steps, uint64_t total) { progress_->Update(1, steps, total, written, 0); });
  out.close();
  if (!examples.ok()) {
    RemoveFile(temporary).IgnoreError();
    return examples.status();
  }
  if (!out.good()) return absl::ResourceExhaustedError("cannot write " + temporary);
  MU_RETURN_IF_ERROR(RenameFile(temporary, path));
  MU_LOG(INFO, "{} predictions are in {}", written, path);
  if (not_finite > 0) {
    Announce(absl::StrCat(not_finite, " of ", written, " predictions are not finite, the first is ",
                          "prediction ", first_not_finite, ": has the training diverged?"));
  }
  if (const RuntimeStats stats = coordinator_->Stats(); stats.bad_records > 0) {
    Announce(absl::StrCat(stats.bad_records, " records were left out (on_bad_record: skip), the ",
                          "first is ", stats.first_bad_record, "; ", path,
                          " has no lines for them, so its lines are not those of the files"));
  }
  report->samples = *examples;
  return absl::OkStatus();
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

absl::Status JobSession::Finish(RunReport* report) {
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
  for (const MemberFailure& failure : stats.failures) {
    report->failures.push_back(
        {failure.role == pb::ROLE_WORKER ? "worker" : "psserver", failure.index, failure.kind,
         failure.at_seconds, failure.message, failure.at_seconds * 1e3,
         failure.recovered_seconds < 0 ? -1 : failure.recovered_seconds * 1e3,
         failure.steps_repeated,
         static_cast<uint64_t>(std::max<int64_t>(0, failure.updates_rolled_back)),
         failure.samples_repeated});
  }
  absl::Status written;
  if (!options_.trace_file.empty()) written = telemetry_->WriteTrace(options_.trace_file);
  telemetry_.reset();
  model_.reset();
  coordinator_.reset();
  return written;
}

}  // namespace mu
