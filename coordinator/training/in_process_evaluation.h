// Evaluates checkpoints in the coordinator's process, in a cluster of its own: one worker, and one
// server that holds the checkpoint. It takes nothing of the job's workers and servers; the whole
// model, with the optimizer's slots, has to fit into this process's memory.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/trainer.h"

namespace mu {

// Makes the model's variables and tables as the job has them, and says how it is measured.
using DefineEvaluation = std::function<absl::StatusOr<EvaluationSpec>(Coordinator&)>;

// For TrainerOptions::evaluate_checkpoint. Of the options, `name`, `seed`, `job_fingerprint`,
// `default_optimizer` and `default_partitioner` are those of the job. The cluster begins with the
// first checkpoint, stays for the next ones, and ends with the last copy of what is returned. One
// call at a time. Errors are those of InProcess, `define`, Coordinator::Restore and
// Trainer::Evaluate.
CheckpointEvaluator EvaluateInProcess(ClusterOptions options, DefineEvaluation define);

}  // namespace mu
