// What a job says about when gradients are applied: docs/consistency.md.
#include "absl/strings/str_cat.h"
#include "coordinator/cli/job_validation.h"

namespace mu {

void ValidateConsistency(const muster::TrainingProto& training, std::vector<JobProblem>* problems) {
  if (training.has_mode() && training.mode() != "async") {
    problems->push_back({"training.mode",
                         absl::StrCat("must be async, not `", training.mode(), "`"),
                         "leave it out for async"});
  }
  const std::string& discount = training.staleness().discount();
  if (training.staleness().has_discount() && discount != "none" && discount != "inverse" &&
      discount != "exponential") {
    problems->push_back({"training.staleness.discount",
                         absl::StrCat("must be none, inverse or exponential, not `", discount, "`"),
                         "inverse divides the learning rate by the lateness"});
  }
}

}  // namespace mu
