#include "coordinator/training/train_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace mu {
namespace {

absl::Status CheckLoss(const Function& function, const std::string& loss) {
  std::vector<std::string> returns;
  for (const pb::ReturnProto& value : function.proto().returns()) returns.push_back(value.name());
  if (std::find(returns.begin(), returns.end(), loss) != returns.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("TrainOptions::loss is '", loss, "', which function '", function.name(),
                   "' does not return; it returns: ",
                   returns.empty() ? "nothing" : absl::StrJoin(returns, ", ")));
}

}  // namespace

absl::Status CheckTrainOptions(Coordinator& coordinator, const Function& function,
                               const Dataset& dataset, const TrainOptions& options) {
  MU_RETURN_IF_ERROR(coordinator.CheckReads(function, dataset));
  if (const uint32_t has = dataset.proto().epochs(); has > 0 && options.epochs > has) {
    return absl::InvalidArgumentError(absl::StrCat(
        "TrainOptions::epochs is ", options.epochs, ", and the data set '", dataset.name(),
        "' ends after ", has, "; leave out its Epochs(", has, "), or ask for fewer"));
  }
  if (!(options.max_gap > 0 && options.max_gap <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("TrainOptions::max_gap is ", options.max_gap,
                     "; it is a share of the time, above 0 and at most 1"));
  }
  const RoundRules rounds = options.sync.value_or(coordinator.runtime().rounds());
  if (rounds.on() && options.steps_per_function > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("TrainOptions::steps_per_function is ", options.steps_per_function,
                     ", and in synchronous rounds a function has one step; leave it out"));
  }
  if (rounds.on() && options.bounded_staleness.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("TrainOptions::bounded_staleness is ", *options.bounded_staleness,
                     ", and in synchronous rounds no step is ahead of another one; leave it out, "
                     "or train without rounds (sync = RoundRules{})"));
  }
  MU_RETURN_IF_ERROR(CheckEvalEvery(options.eval_every, "TrainOptions::eval_every"));
  return CheckLoss(function, options.loss);
}

absl::Status CheckEvalEvery(const EvalEvery& every, absl::string_view option) {
  const int given = (every.steps > 0 ? 1 : 0) + (every.epochs > 0 ? 1 : 0) +
                    (every.time != absl::ZeroDuration() ? 1 : 0);
  if (given > 1) {
    return absl::InvalidArgumentError(absl::StrCat(option,
                                                   " must have one of steps, epochs and time, not ",
                                                   given, "; write for example {.epochs = 1}"));
  }
  if (every.time >= absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option, ".time must be above 0; leave ", option,
                                                 " out to evaluate at the end only"));
}

}  // namespace mu
