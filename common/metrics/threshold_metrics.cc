#include "common/metrics/threshold_metrics.h"

#include "common/base/status.h"
#include "common/metrics/binary_metrics.h"

namespace mu {

absl::Status ThresholdMetrics::Add(const EvalRecords& records) {
  MU_RETURN_IF_ERROR(CheckSizes(records));
  MU_RETURN_IF_ERROR(CheckProbabilities(records.predictions));
  MU_RETURN_IF_ERROR(CheckBinaryLabels(records.labels));
  MU_RETURN_IF_ERROR(CheckWeights(records));
  for (size_t i = 0; i < records.size(); ++i) {
    const bool says_one = static_cast<double>(records.predictions[i]) >= threshold_;
    const bool is_one = records.labels[i] == 1;
    double& count = says_one ? (is_one ? true_positive_ : false_positive_)
                             : (is_one ? false_negative_ : true_negative_);
    count += records.weight(i);
  }
  count_ += records.size();
  return absl::OkStatus();
}

void ThresholdMetrics::Merge(const ThresholdMetrics& other) {
  count_ += other.count_;
  true_positive_ += other.true_positive_;
  false_positive_ += other.false_positive_;
  true_negative_ += other.true_negative_;
  false_negative_ += other.false_negative_;
}

}  // namespace mu
