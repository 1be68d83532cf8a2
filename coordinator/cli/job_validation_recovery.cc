// What a job says about checkpoints, lost servers, and what it begins with.
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "coordinator/cli/job_validation.h"

namespace mu {

void ValidateRecovery(const muster::JobProto& job, std::vector<JobProblem>* problems) {
  if (job.has_recovery() && job.recovery() != "all" && job.recovery() != "shard") {
    problems->push_back(
        {"recovery", absl::StrCat("must be all or shard, not `", job.recovery(), "`"),
         "all takes every server back to the last checkpoint, shard only the lost one"});
  }
  // Names and shapes are compared when the model is known (CheckWarmStart).
  if (job.has_warm_start() && job.warm_start().checkpoint().empty()) {
    problems->push_back({"warm_start.checkpoint", "names no checkpoint to begin with",
                         "name one, or the folder of a run that has one", true});
  }
  const muster::CheckpointOptionsProto& checkpoint = job.checkpoint();
  if (!checkpoint.has_every() || checkpoint.every() == "never") return;
  absl::Duration every;
  if (!absl::ParseDuration(checkpoint.every(), &every) || every < absl::Seconds(1)) {
    problems->push_back(
        {"checkpoint.every",
         absl::StrCat("must be a time of at least 1s or never, not `", checkpoint.every(), "`"),
         "write 30s, 5m or 1h"});
  }
}

}  // namespace mu
