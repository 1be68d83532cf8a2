// The keys of a job's `training` that say what is done to gradients.
#pragma once

#include <cstdint>

#include "coordinator/frontend/gradient_options.h"
#include "proto/job.pb.h"

namespace mu {

GradientOptions GradientOptionsOf(const muster::TrainingProto& training);
// Slices of a batch whose gradients are accumulated: at least 1.
uint32_t MicroBatchesOf(const muster::TrainingProto& training);

}  // namespace mu
