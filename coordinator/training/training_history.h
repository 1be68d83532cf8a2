// What a job has reached so far: the loss of each epoch, its evaluations, what early stopping and
// keep_best know. As text it is the user's state of the job's checkpoints, so that a coordinator
// that is started again goes on with it. Pure. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/training/best_checkpoints.h"
#include "coordinator/training/early_stopping.h"

namespace mu {

struct EpochLoss {
  uint32_t epoch = 1;
  double loss_sum = 0;  // weighted by samples
  uint64_t samples = 0;
  double loss() const { return samples > 0 ? loss_sum / static_cast<double>(samples) : 0; }
};

// Of values after so many steps of the job.
struct Evaluation {
  uint64_t steps = 0;
  uint32_t epoch = 0;  // that was trained last, from 1
  double seconds = 0;  // that it took
  uint64_t examples = 0;
  std::map<std::string, double> metrics;  // by name; NaN: not defined
  bool best_so_far = false;               // by early stopping's metric, else keep_best's
  std::string checkpoint;  // the folder's name, of the one with these values; empty: none was taken
  // By this trainer, so of the data and by the metrics that it has. Not in checkpoints: an earlier
  // process of the job may have had others.
  bool measured_here = false;
};

// Beside training. It is under way, or was when the job stopped.
struct PendingEvaluation {
  std::string checkpoint;  // the folder's name; empty: the one that this is read from
  uint64_t steps = 0;
  uint32_t epoch = 0;
  bool current = false;  // of the values that the servers have then, of no checkpoint
};

// What values have seen: so many steps of the job, the last of them in this epoch (from 1; 0: not
// known).
struct ValuesMoment {
  uint64_t steps = 0;
  uint32_t epoch = 0;
};

class TrainingHistory {
 public:
  // Of each the newest so many.
  static constexpr size_t kMostListed = 1000;

  // An empty history for a text that is none. Checkpoints of before version 0.9 knew one epoch.
  static TrainingHistory Parse(const std::string& text);
  std::string ToString() const;

  // Results of a function of this epoch; also late ones, if the epoch is still listed. What was
  // brought back has been trained further then.
  void AddLoss(uint32_t epoch, double loss, uint64_t samples);
  // In place of the last one if that is after as many steps.
  void AddEvaluation(Evaluation evaluation);
  // Nullopt: evaluations from now on are not seen by it.
  void SetEarlyStopping(const std::optional<EarlyStopping>& stopping);
  void SetBest(const BestCheckpoints& best);
  void SetPending(std::optional<PendingEvaluation> pending);
  // The values of this moment have been brought back, and training has not gone on since.
  void SetBroughtBack(ValuesMoment moment);

  const std::deque<EpochLoss>& epochs() const { return epochs_; }             // by epoch
  const std::deque<Evaluation>& evaluations() const { return evaluations_; }  // oldest first
  const std::optional<PendingEvaluation>& pending() const { return pending_; }
  const std::optional<ValuesMoment>& brought_back() const { return brought_back_; }
  // After how many steps the last evaluation is, that has ended or is pending. 0: there is none.
  uint64_t EvaluatedSteps() const;
  // Which best checkpoints a job goes back to.
  struct Best {
    bool of_early_stopping = false;
    bool of_keep_best = false;
  };
  // Names of the checkpoints that a job which goes on with this looks for: the one whose evaluation
  // is pending, unless it is the one that this is read from, and the best ones.
  std::set<std::string> Checkpoints(Best which) const;
  // What early stopping knows; of another metric, or of a job that did not use it, what it would
  // know if it had seen the evaluations that are listed and have this metric.
  EarlyStopping EarlyStoppingWith(EarlyStoppingOptions options) const;
  // What it would know if it had seen only those of them whose checkpoints are `there` (folders'
  // names): for a job that goes back to the best, where the best one that is known has none. It
  // knows nothing if none of these has a value.
  EarlyStopping EarlyStoppingOf(EarlyStoppingOptions options,
                                const std::set<std::string>& there) const;
  BestCheckpoints BestWith(KeepBestOptions options) const;
  // Of keep_best: forgets those that are not `there` (folders' names), and returns them.
  std::vector<BestCheckpoint> ForgetBestBut(const std::set<std::string>& there);

 private:
  // As if early stopping had seen those evaluations that are listed, have its metric, and are of
  // one of these checkpoints; null: of any or none.
  EarlyStopping Replay(EarlyStoppingOptions options, const std::set<std::string>* there) const;

  struct Stopping {
    std::string metric;
    EarlyStoppingState state;
  };
  struct KeptBest {
    std::string metric;
    std::vector<BestCheckpoint> checkpoints;
  };
  std::deque<EpochLoss> epochs_;
  std::deque<Evaluation> evaluations_;
  std::optional<Stopping> stopping_;
  std::optional<KeptBest> best_;
  std::optional<PendingEvaluation> pending_;
  std::optional<ValuesMoment> brought_back_;
  mutable std::string past_;  // all but the newest epoch, as text
  mutable bool past_known_ = false;
};

}  // namespace mu
