// What a job says about when gradients are applied: docs/consistency.md.
#include "absl/strings/str_cat.h"
#include "coordinator/cli/job_validation.h"
#include "coordinator/cli/scalar.h"

namespace mu {
namespace {

constexpr char kBounded[] = "bounded_staleness";
constexpr char kSync[] = "sync";
constexpr uint32_t kMostReplicas = 100000;

void ValidateSync(const muster::JobProto& job, std::vector<JobProblem>* problems) {
  const muster::TrainingProto& training = job.training();
  const muster::SyncProto& sync = training.sync();
  if (!sync.has_replicas()) {
    problems->push_back({"training.sync.replicas", "says no number of steps that a round takes",
                         "the number of workers, less backup_workers, is usual", true});
  } else if (sync.replicas() == 0 || sync.replicas() > kMostReplicas) {
    problems->push_back({"training.sync.replicas",
                         absl::StrCat("must be 1 to ", kMostReplicas, ", not ", sync.replicas()),
                         "the number of workers, less backup_workers, is usual"});
  }
  if (sync.backup_workers() > kMostReplicas) {
    problems->push_back(
        {"training.sync.backup_workers",
         absl::StrCat("must be at most ", kMostReplicas, ", not ", sync.backup_workers()),
         "one or two are usual"});
  }
  if (sync.has_rows() && sync.rows() != "mean" && sync.rows() != "sum") {
    problems->push_back({"training.sync.rows",
                         absl::StrCat("must be mean or sum, not `", sync.rows(), "`"),
                         "leave it out for mean"});
  }
  const std::string& steps = training.steps_per_function();
  if (training.has_steps_per_function() && steps != "auto" && steps != "1") {
    problems->push_back(
        {"training.steps_per_function",
         absl::StrCat("is ", steps, ", and with training.mode: sync a function has one step"),
         "leave it out"});
  }
  if (training.has_max_gap()) {
    problems->push_back({"training.max_gap",
                         "packs steps, and with training.mode: sync a function has one step",
                         "remove it"});
  }
  if (job.recovery() == "shard") {
    problems->push_back({"recovery",
                         "is shard, and with training.mode: sync a server that goes back alone "
                         "would lack rounds that the others have",
                         "write recovery: all, or leave it out"});
  }
  if (job.data().train().visitation() == "none") {
    problems->push_back({"data.train.visitation",
                         "is none, and with training.mode: sync a step's records need a place in "
                         "the data",
                         "leave it out"});
  }
}

void ValidateBound(const muster::TrainingProto& training, std::vector<JobProblem>* problems) {
  if (!training.bounded_staleness().has_steps()) {
    problems->push_back({"training.bounded_staleness.steps", "says no number of steps",
                         "some times the number of workers is usual", true});
    return;
  }
  const uint32_t steps = training.bounded_staleness().steps();
  const absl::StatusOr<uint64_t> packed = ParseUint(training.steps_per_function());
  if (packed.ok() && *packed > uint64_t{steps} + 1) {
    problems->push_back(
        {"training.bounded_staleness.steps",
         absl::StrCat("is ", steps, ", but a function has ", *packed,
                      " steps (training.steps_per_function), so no two would run at once"),
         absl::StrCat("write at least ", *packed,
                      " for each function that is to run at once, or "
                      "leave steps_per_function out")});
  }
}

}  // namespace

void ValidateConsistency(const muster::JobProto& job, std::vector<JobProblem>* problems) {
  const muster::TrainingProto& training = job.training();
  const std::string mode = training.has_mode() ? training.mode() : "async";
  if (mode != "async" && mode != kBounded && mode != kSync) {
    problems->push_back(
        {"training.mode",
         absl::StrCat("must be async, ", kBounded, " or ", kSync, ", not `", mode, "`"),
         "leave it out for async"});
    return;  // what belongs to it is not known
  }
  if (training.has_staleness() && mode != "async") {
    problems->push_back({"training.staleness",
                         absl::StrCat("belongs to mode async, and training.mode is ", mode),
                         "remove one of them"});
  }
  const std::string& discount = training.staleness().discount();
  if (training.staleness().has_discount() && discount != "none" && discount != "inverse" &&
      discount != "exponential") {
    problems->push_back({"training.staleness.discount",
                         absl::StrCat("must be none, inverse or exponential, not `", discount, "`"),
                         "inverse divides the learning rate by the lateness"});
  }
  const auto belongs_to = [&](bool given, const char* key, const char* to) {
    if (!given || mode == to) return;
    problems->push_back({key, absl::StrCat("belongs to mode ", to, ", and training.mode is ", mode),
                         absl::StrCat("write mode: ", to, ", or remove it")});
  };
  belongs_to(training.has_bounded_staleness(), "training.bounded_staleness", kBounded);
  belongs_to(training.has_sync(), "training.sync", kSync);
  if (mode == kBounded) ValidateBound(training, problems);
  if (mode == kSync) ValidateSync(job, problems);
}

}  // namespace mu
