// Evaluates the checkpoints of a run while another process trains it, on a cluster of this program:
// `coordinator eval --follow` for programs.
//
//   MU_ASSIGN_OR_RETURN(auto c, mu::Local({.job_dir = "runs/clicks-eval"}));  // not RUN
//   MU_ASSIGN_OR_RETURN(std::vector<mu::Evaluation> evaluations,
//                       mu::Follow(c.get(), "runs/clicks",
//                                  [&](mu::Coordinator& own) { return DefineMyEvaluation(own); }));
//
// The run is a mu::Trainer's whose checkpoints are in RUN/checkpoints, or a job's. It need not have
// begun, and RUN need not be there: the log says once that there is no run yet. But where an
// earlier run in RUN is over, that one ends the following until the next has begun. docs/program.md
// says what is promised.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/in_process_evaluation.h"
#include "coordinator/training/trainer.h"

namespace mu {

// Callbacks are on the thread of Follow.
struct FollowOptions {
  const std::atomic<int>* stop = nullptr;
  // An evaluation has been written down; without metrics: the checkpoint is damaged. Not of those
  // of an earlier process.
  std::function<void(const Evaluation&)> on_evaluation = nullptr;
  OnEvalProgress on_evaluation_progress = nullptr;
  // What deserves a look. After each evaluation: a metric that is not defined, records that were
  // left out. Once: it cannot be read whether the run is over, so Follow may wait for ever. Without
  // it, it is in the log.
  std::function<void(const std::string&)> on_warning = nullptr;
};

// Evaluates each checkpoint of the run, oldest first, and writes the results into
// RUN/evaluations.json. It misses none from its first start on and repeats none, also when it is
// started again. (Without RUN it begins within a moment of the folder's making.) Returns all that
// is in that file, oldest first, when the run is over: its trainer has ended and says so
// (TrainerOptions::marks_run), or its job is done or has failed for good.
//
// `run`: RUN or RUN/checkpoints. `define` is called once, when there is a checkpoint: it creates
// the model's variables and tables as the run has them, and says how it is measured. Tables get as
// many partitions as they have in the checkpoint, whatever number of servers there is here, and
// rows that no step has touched the initial values of there, whatever this coordinator's seed is.
//
// CANCELLED if `stop` asks for it: then use the coordinator for nothing more. FAILED_PRECONDITION
// if another process (which the message names), or another call, follows the run: only one may.
// DATA_LOSS if RUN/evaluations.json cannot be read. Errors of `define`, Coordinator::Restore and
// Trainer::Evaluate, but not of a damaged checkpoint: what has not been evaluated then is evaluated
// by the next call, with another coordinator, or with the EvaluationSpec that `define` has made:
// called a second time for one coordinator, it would create what is there. The coordinator must not
// be the run's own.
absl::StatusOr<std::vector<Evaluation>> Follow(Coordinator* coordinator, const std::string& run,
                                               const DefineEvaluation& define,
                                               const FollowOptions& options = {});
// The same for a model that has been created already. Where the run has another number of servers,
// its tables need `partitions`, or Coordinator::UsePartitionCountsOf before they are created; with
// another seed Coordinator::UseInitializersOf.
absl::StatusOr<std::vector<Evaluation>> Follow(Coordinator* coordinator, const std::string& run,
                                               const EvaluationSpec& evaluation,
                                               const FollowOptions& options = {});

}  // namespace mu
