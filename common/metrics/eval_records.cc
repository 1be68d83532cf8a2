#include "common/metrics/eval_records.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace mu {

absl::Status CheckSizes(const EvalRecords& records) {
  const size_t n = records.size();
  const bool one_each = records.classes.empty();
  if (one_each ? records.predictions.size() != n : n == 0 || records.predictions.size() % n != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(records.predictions.size(), " predictions do not go with ", n, " labels"));
  }
  if (!records.groups.empty() && records.groups.size() != n) {
    return absl::InvalidArgumentError(
        absl::StrCat(records.groups.size(), " group ids do not go with ", n, " labels"));
  }
  if (!records.weights.empty() && records.weights.size() != n) {
    return absl::InvalidArgumentError(
        absl::StrCat(records.weights.size(), " weights do not go with ", n, " labels"));
  }
  return absl::OkStatus();
}

absl::Status CheckWeights(const EvalRecords& records) {
  for (const float weight : records.weights) {
    if (!(weight >= 0 && std::isfinite(weight))) {
      return absl::InvalidArgumentError(
          absl::StrCat("a record's weight is ", weight, "; weights are finite and not negative"));
    }
  }
  return absl::OkStatus();
}

}  // namespace mu
