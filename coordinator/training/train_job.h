// Runs a job file's job from end to end: cluster, model, data, training, evaluation, checkpoint,
// report.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/tls_files.h"
#include "common/sharding/placement.h"
#include "coordinator/cluster/parameter_info.h"
#include "coordinator/core/rounds.h"
#include "coordinator/training/training_history.h"
#include "proto/job.pb.h"

namespace mu {

class ModelRegistry;

// A moment of a run, for the live line.
struct Progress {
  std::string phase;  // starting, training, evaluating, saving, predicting
  uint64_t steps = 0;
  uint64_t total_steps = 0;  // of the whole phase; may change a little from epoch to epoch
  uint64_t samples = 0;
  uint64_t steps_to_repeat = 0;   // since servers were lost; meanwhile `steps` stands still
  double samples_per_second = 0;  // over the last seconds; negative: not known
  double loss = 0;                // smoothed; NaN before the first step
  double seconds = 0;             // since the phase began
  double eta_seconds = 0;         // negative: not known
  int workers_up = 0, workers = 0;
  int ps_up = 0, ps = 0;
  uint32_t epoch = 0, epochs = 0;  // epoch counts from 1
};

struct RunOptions {
  std::string job_dir;     // logs, checkpoints; made if absent
  std::string binary_dir;  // where `worker` and `psserver` are
  bool local = true;       // real processes on this machine; else daemons register at `listen`
  bool take_over = false;  // training: replaces a coordinator that is at work in job_dir
  // Training: from the start, though job_dir holds a job that is done, or a program's checkpoints.
  bool train_again = false;
  int workers = 2;
  int ps = 2;
  std::string listen;     // host:port; empty with local: any port of loopback
  TlsFiles tls;           // without `local`
  bool insecure = false;  // listen off loopback without TLS
  std::string http;       // as ClusterOptions has it
  std::string log_format = "text";
  absl::Duration start_timeout = absl::Seconds(60);   // for all daemons to register
  absl::Duration member_timeout = absl::Seconds(10);  // without a heartbeat a daemon is lost
  // Without a result for so long (and ten times a step's) a function runs elsewhere, too
  absl::Duration backup_after = absl::Seconds(30);
  std::string checkpoint;  // a checkpoint's directory to start from; empty: none (eval and predict:
                           // the job_dir's newest)
  // Training: what the user named for it, a checkpoint or a run's folder; empty: `checkpoint`.
  std::string named_checkpoint;
  std::string follow;  // eval: the job_dir whose checkpoints are evaluated as they come
  std::string chaos;  // with local: faults on demand (coordinator/launch/chaos_plan.h); empty: none
  Placement placement = PlaceByBytes{};      // of what is trained
  std::string trace_file;                    // Chrome trace of all processes
  std::string predict_out;                   // CSV of predictions
  std::vector<std::string> predict_columns;  // of the data, copied before the predictions
  std::atomic<int>* stop = nullptr;          // > 0: stop cleanly after the functions that run
  // Each change asks for a checkpoint now.
  const std::atomic<uint64_t>* checkpoint_requests = nullptr;
  // How it goes, a line for each epoch and each evaluation.
  std::function<void(const std::string&)> tell;
  // What the user should know at once, such as that an unfinished run is continued.
  std::function<void(const std::string&)> announce;
  std::function<void(const Progress&)> progress;  // from a thread of its own, a few times a second
};

struct Failure {
  std::string role;  // worker, psserver
  uint32_t index = 0;
  std::string kind;  // died, silent, hangs, unreachable, ...: docs/report.md
  double at_seconds = 0;
  std::string message;
  double detected_ms = 0;           // since the run began
  double detection_latency_ms = 0;  // after its last heartbeat
  double recovered_ms = -1;         // how long after that work went on; negative: it did not
  uint64_t steps_repeated = 0;
  // Acknowledged (function, step, partition) that the restored state does not hold
  uint64_t updates_rolled_back = 0;
  uint64_t samples_repeated = 0;
};

// Sums over failures of one role.
struct RoleFailureTotals {
  uint64_t failures = 0;  // without those that left
  uint64_t left = 0;
  uint64_t recovered = 0;  // of `failures`, those after which work went on
  double recovery_ms = 0;  // until then, summed; of those that left as well
  double longest_recovery_ms = 0;
  uint64_t steps_repeated = 0;
  uint64_t updates_rolled_back = 0;
  uint64_t samples_repeated = 0;
};

// Sums over failures that are not listed one by one, see core/failure_list.h.
struct UnlistedFailureTotals {
  uint64_t failures = 0;
  uint64_t left = 0;
  uint64_t steps_repeated = 0;
  uint64_t updates_rolled_back = 0;
  uint64_t samples_repeated = 0;
  std::map<std::string, RoleFailureTotals> by_role;  // worker, psserver; the same again
};

struct PartTime {
  double seconds = 0;
  uint64_t count = 0;
};

// How late gradients were; see docs/consistency.md.
struct StalenessReport {
  struct Class {
    uint32_t from = 0, to = 0;  // updates
    uint64_t steps = 0;
  };
  uint64_t steps = 0;  // of which it is known
  double mean = 0;     // updates
  uint32_t max = 0;
  uint64_t refused = 0;  // attempts at steps
  std::vector<Class> histogram;
};

struct EarlyStoppingReport {
  std::string metric;
  EarlyStoppingState state;
  bool stopped = false;        // by it
  bool restored_best = false;  // what was saved is the best, not the last
};

// What the servers have of a variable or table when training has come to its end, and what was
// asked of it since they started or were restored (ParameterLoad, cluster/parameter_info.h).
struct VariableReport {
  std::string name;
  bool is_table = false;
  ParameterLoad load;
  std::map<uint32_t, uint64_t> bytes_by_server;
};

struct RunReport {
  std::string job;
  std::string status;  // done, stopped, failed
  std::string error;
  int workers = 0;
  int ps = 0;
  uint64_t samples = 0;
  uint64_t steps = 0;
  uint64_t functions = 0;
  double train_seconds = 0;
  double samples_per_second = 0;
  // Mean of the last epoch, weighted by samples; NaN: no training came to its end
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  uint64_t parameters = 0;
  std::vector<VariableReport> variables;  // of a run that trained to its end
  std::vector<EpochLoss> epochs;          // the newest 1,000, of the whole job
  std::vector<Evaluation> evaluations;  // on the way, the newest 1,000; checkpoints by their paths
  std::optional<EarlyStoppingReport> early_stopping;
  std::vector<BestCheckpoint> best_checkpoints;  // of checkpoint.keep_best, the best first
  uint64_t eval_examples = 0;
  std::map<std::string, double> eval_metrics;  // by name; NaN: not defined
  std::vector<std::string> warnings;           // what went on, but deserves a look
  std::vector<Failure> failures;
  UnlistedFailureTotals unlisted_failures;
  double without_progress_ms = 0;  // of servers; time in which several were missing counts once
  // Functions that a second worker ran because the first one hung without being lost, and the steps
  // that both ran.
  uint64_t backup_runs = 0;
  uint64_t backup_steps_repeated = 0;
  uint64_t backup_samples_repeated = 0;
  std::optional<StalenessReport> staleness;  // nullopt: the job does not ask
  struct BoundedStaleness {
    uint64_t steps = 0;             // the bound
    uint64_t functions_waited = 0;  // for it
  };
  std::optional<BoundedStaleness> bounded_staleness;  // nullopt: another mode
  struct Sync {
    RoundRules rules;
    RoundCounts rounds;
  };
  std::optional<Sync> sync;                      // the same
  std::map<std::string, PartTime> time_by_part;  // sums over all processes
  uint64_t bad_records = 0;
  std::string first_bad_record;
  std::string job_dir;
  // The job_dir is another run's, or what it holds is done, or another process follows the run:
  // nothing is to be written there.
  bool refused = false;
  // Nothing was trained, since the job_dir holds this job and it is done: its report is what
  // counts.
  bool was_done = false;
  // With train_again: it ended before it began, and the run that is done there is what counts.
  bool earlier_stays_done = false;
  bool begun = false;                // to train: job.json says so
  bool ended_by_evaluation = false;  // the error is that of an evaluation on the way
  std::string checkpoint;
  std::string
      continued_from;  // a checkpoint of the run that this one continued; empty: it began anew
  uint32_t steps_per_function = 0;  // the last that was chosen
};

// Each returns a report with status "failed" and the error in `*error` (so that a report can be
// written all the same).
RunReport TrainJob(const muster::JobProto& job, const ModelRegistry& models,
                   const RunOptions& options, absl::Status* error);
RunReport EvalJob(const muster::JobProto& job, const ModelRegistry& models,
                  const RunOptions& options, absl::Status* error);
// Evaluates each checkpoint of options.follow as it comes, until the job there is over:
// followed_run.h.
RunReport FollowJob(const muster::JobProto& job, const ModelRegistry& models,
                    const RunOptions& options, absl::Status* error);
RunReport PredictJob(const muster::JobProto& job, const ModelRegistry& models,
                     const RunOptions& options, absl::Status* error);

// What can be found out about a job without starting anything: its files by their headers and first
// records, and, if a model is set, the model, its graph and shapes on each of the job's sources.
// Each problem is "KEY: a sentence". `notes` gets what may be meant but deserves a look.
std::vector<std::string> CheckJob(const muster::JobProto& job, const ModelRegistry& models,
                                  const RunOptions& options, std::vector<std::string>* notes);

// Whether the job's model has the variables and tables that the checkpoint in `directory` holds.
// `loads`: for servers, which need the partitions and the optimizers' slots that were saved as
// well; an export reads whole arrays. INVALID_ARGUMENT with the first few differences. OK if the
// model cannot be made, which is told elsewhere.
absl::Status CheckCheckpointFits(const muster::JobProto& job, const ModelRegistry& models,
                                 const std::string& directory, bool loads);

// Makes the run's directory and finds out whether it can be written to.
absl::Status MakeJobDirectory(const std::string& directory);

// What needs no job: number and programs of the daemons, whether the ports of `listen` and `http`
// are free. `gathers`: whether daemons could register with a coordinator that has these options.
std::vector<std::string> CheckEnvironment(const RunOptions& options, bool* gathers);

}  // namespace mu
