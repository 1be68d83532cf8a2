#include "coordinator/training/worse_end.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/metrics/metric_set.h"
#include "coordinator/training/metric_text.h"

namespace mu {
namespace {

// Of the best value: two evaluations of a job that has converged differ by less, and workers that
// train at their own pace give other values each time.
constexpr double kSeen = 0.005;

// NaN: not defined, or not measured.
double ValueOf(const Evaluation& evaluation, const std::string& metric) {
  const auto found = evaluation.metrics.find(metric);
  return found == evaluation.metrics.end() ? std::numeric_limits<double>::quiet_NaN()
                                           : found->second;
}

std::string Described(const Evaluation& evaluation, double value) {
  return absl::StrCat(MetricText(value), " in epoch ", evaluation.epoch, ", after ",
                      evaluation.steps, " steps");
}

}  // namespace

std::string DescribeWorseEnd(const std::string& metric, const std::vector<Evaluation>& on_the_way,
                             const Evaluation& end, bool of_current) {
  const absl::StatusOr<Better> better = BetterOf(metric);
  const double last = ValueOf(end, metric);
  if (!better.ok() || !std::isfinite(last)) return "";
  const Evaluation* best = nullptr;
  double best_value = last;
  for (const Evaluation& evaluation : on_the_way) {
    const double value = ValueOf(evaluation, metric);
    if (!std::isfinite(value) || !(Improvement(*better, value, best_value) > 0)) continue;
    best = &evaluation;
    best_value = value;
  }
  if (best == nullptr || std::abs(best_value - last) < kSeen * std::abs(best_value)) return "";
  return absl::StrCat(
      "the last evaluation is worse than the best one: ", metric, " is ", Described(end, last),
      ", and was ", Described(*best, best_value),
      "; training.eval_every with early_stopping (restore_best) or checkpoint.keep_best keeps the "
      "best values",
      of_current ? ", but needs evaluation.values: checkpoint instead of current" : "");
}

}  // namespace mu
