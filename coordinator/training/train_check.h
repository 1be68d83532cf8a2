// What mu::Train refuses before it asks anybody anything.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/training/evaluation_schedule.h"
#include "coordinator/training/train_loop.h"

namespace mu {

// INVALID_ARGUMENT for what Train does not do with these, however far the job is.
absl::Status CheckTrainOptions(Coordinator& coordinator, const Function& function,
                               const Dataset& dataset, const TrainOptions& options);
// INVALID_ARGUMENT unless at most one of the three is set, to more than 0. `option` is what the
// program calls it.
absl::Status CheckEvalEvery(const EvalEvery& every, absl::string_view option);

}  // namespace mu
