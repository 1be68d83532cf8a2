// What a job says about when gradients are applied: docs/consistency.md.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/cli/job_validation.h"

namespace mu {
namespace {

constexpr char kBounded[] = "bounded_staleness";

void ValidateBound(const muster::TrainingProto& training, std::vector<JobProblem>* problems) {
  if (!training.bounded_staleness().has_steps()) {
    problems->push_back({"training.bounded_staleness.steps", "says no number of steps",
                         "some times the number of workers is usual", true});
    return;
  }
  const uint32_t steps = training.bounded_staleness().steps();
  uint32_t packed = 0;
  if (absl::SimpleAtoi(training.steps_per_function(), &packed) && packed > steps + 1) {
    problems->push_back(
        {"training.bounded_staleness.steps",
         absl::StrCat("is ", steps, ", but a function has ", packed,
                      " steps (training.steps_per_function), so no two would run at once"),
         absl::StrCat("write at least ", packed,
                      " for each function that is to run at once, or "
                      "leave steps_per_function out")});
  }
}

}  // namespace

void ValidateConsistency(const muster::TrainingProto& training, std::vector<JobProblem>* problems) {
  const std::string mode = training.has_mode() ? training.mode() : "async";
  if (mode != "async" && mode != kBounded) {
    problems->push_back({"training.mode",
                         absl::StrCat("must be async or ", kBounded, ", not `", mode, "`"),
                         "leave it out for async"});
    return;  // what belongs to it is not known
  }
  if (training.has_staleness() && mode != "async") {
    problems->push_back({"training.staleness",
                         absl::StrCat("belongs to mode async, and training.mode is ", mode),
                         "remove one of them"});
  }
  const std::string& discount = training.staleness().discount();
  if (training.staleness().has_discount() && discount != "none" && discount != "inverse" &&
      discount != "exponential") {
    problems->push_back({"training.staleness.discount",
                         absl::StrCat("must be none, inverse or exponential, not `", discount, "`"),
                         "inverse divides the learning rate by the lateness"});
  }
  if (mode == kBounded) return ValidateBound(training, problems);
  if (training.has_bounded_staleness()) {
    problems->push_back({"training.bounded_staleness",
                         absl::StrCat("belongs to mode ", kBounded, ", and training.mode is async"),
                         absl::StrCat("write mode: ", kBounded, ", or remove it")});
  }
}

}  // namespace mu
