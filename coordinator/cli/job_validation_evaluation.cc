// The rules of a job's evaluation. Whether the model's tasks have the metrics is found when the
// model is traced.
#include <set>

#include "absl/strings/str_cat.h"
#include "common/metrics/metric_set.h"
#include "coordinator/cli/job_validation.h"

namespace mu {

void ValidateEvaluation(const muster::EvaluationProto& evaluation,
                        std::vector<JobProblem>* problems) {
  std::set<std::string> seen;
  for (int i = 0; i < evaluation.metrics_size(); ++i) {
    const std::string key = absl::StrCat("evaluation.metrics[", i, "]");
    if (const absl::Status status = CheckMetricName(evaluation.metrics(i)); !status.ok()) {
      problems->push_back({key, absl::StrCat("is wrong: ", std::string(status.message())), ""});
    } else if (!seen.insert(evaluation.metrics(i)).second) {
      problems->push_back(
          {key, absl::StrCat("is `", evaluation.metrics(i), "` once more"), "remove it"});
    }
  }
  if (evaluation.has_group() && evaluation.group().empty())
    problems->push_back({"evaluation.group", "must name a column of the data", "or remove it"});
  if (evaluation.has_weight() && evaluation.weight().empty())
    problems->push_back({"evaluation.weight", "must name a column of the data", "or remove it"});
}

}  // namespace mu
