// The keys of a job's `training` that say what is done to gradients.
#pragma once

#include "coordinator/frontend/gradient_options.h"
#include "proto/job.pb.h"

namespace mu {

GradientOptions GradientOptionsOf(const muster::TrainingProto& training);

}  // namespace mu
