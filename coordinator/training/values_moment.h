// Of what moment of training a checkpoint's values are.
#pragma once

#include "coordinator/training/training_history.h"
#include "proto/checkpoint.pb.h"

namespace mu {

// The moment up to which the job had trained, or that of its best evaluation if its values were
// brought back at the end of training: then fewer steps than the manifest says. The epoch is known
// of a trainer's checkpoints.
inline ValuesMoment MomentOfValues(const muster::CheckpointProto& manifest) {
  const TrainingHistory history = TrainingHistory::Parse(manifest.user_state());
  // Functions that run change them before the first result says so.
  if (history.brought_back().has_value() && manifest.position().functions().empty())
    return *history.brought_back();
  return {manifest.steps(), history.epochs().empty() ? 0 : history.epochs().back().epoch};
}

}  // namespace mu
