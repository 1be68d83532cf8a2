#include "coordinator/training/job_gradients.h"

namespace mu {

GradientOptions GradientOptionsOf(const muster::TrainingProto& training) {
  return {.l1 = training.l1(),
          .l2 = training.l2(),
          .clip_by_value = training.clip_by_value(),
          .clip_by_norm = training.clip_by_norm(),
          .clip_by_global_norm = training.clip_by_global_norm(),
          .weight_decay = training.weight_decay()};
}

uint32_t MicroBatchesOf(const muster::TrainingProto& training) {
  return training.has_micro_batches() ? training.micro_batches() : 1;
}

}  // namespace mu
