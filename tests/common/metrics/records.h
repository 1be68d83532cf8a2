// Records with predictions, for tests of metrics.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/metrics/eval_records.h"

namespace mu::testing {

struct Records {
  int64_t per_record = 1;  // predictions
  std::vector<float> predictions;
  std::vector<float> labels;
  std::vector<int64_t> classes;
  std::vector<int64_t> groups;
  std::vector<float> weights;

  size_t size() const { return classes.empty() ? labels.size() : classes.size(); }
  EvalRecords All() const { return {predictions, labels, classes, groups, weights}; }
  // Those of `order` from `begin` to `end`.
  Records Some(const std::vector<size_t>& order, size_t begin, size_t end) const {
    Records some{.per_record = per_record};
    const auto add = [](const auto& from, size_t i, auto* to) {
      if (!from.empty()) to->push_back(from[i]);
    };
    for (size_t at = begin; at < end; ++at) {
      const size_t i = order[at];
      for (int64_t p = 0; p < per_record; ++p)
        some.predictions.push_back(predictions[i * static_cast<size_t>(per_record) + p]);
      add(labels, i, &some.labels);
      add(classes, i, &some.classes);
      add(groups, i, &some.groups);
      add(weights, i, &some.weights);
    }
    return some;
  }
};

// Probabilities that say something about the labels; `ties`: of 20 values only.
inline Records BinaryRecords(uint64_t seed, size_t count, bool ties = false) {
  SplitMix random(seed);
  Records records;
  for (size_t i = 0; i < count; ++i) {
    const double logit = 6 * random.Unit() - 4;
    const double p = 1 / (1 + std::exp(-logit));
    records.predictions.push_back(static_cast<float>(ties ? std::round(p * 20) / 20 : p));
    records.labels.push_back(random.Unit() < p ? 1.0f : 0.0f);
    records.groups.push_back(static_cast<int64_t>(random.Below(count / 10 + 1)) - 3);
    records.weights.push_back(static_cast<float>(random.Below(16)) / 4);
  }
  return records;
}

inline Records RegressionRecords(uint64_t seed, size_t count) {
  SplitMix random(seed);
  Records records;
  for (size_t i = 0; i < count; ++i) {
    records.labels.push_back(static_cast<float>(1 + 4 * random.Unit()));
    records.predictions.push_back(records.labels.back() + static_cast<float>(random.Unit() - 0.5));
    records.weights.push_back(static_cast<float>(random.Unit()));
  }
  return records;
}

// Probabilities of a softmax; `ties`: of few values.
inline Records MultiClassRecords(uint64_t seed, size_t count, int64_t classes, bool ties = false) {
  SplitMix random(seed);
  Records records{.per_record = classes};
  for (size_t i = 0; i < count; ++i) {
    std::vector<double> odds;
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      odds.push_back(ties ? 1.0 + static_cast<double>(random.Below(3))
                          : std::exp(3 * random.Unit()));
      sum += odds.back();
    }
    for (const double odd : odds) records.predictions.push_back(static_cast<float>(odd / sum));
    records.classes.push_back(static_cast<int64_t>(random.Below(static_cast<uint64_t>(classes))));
    records.weights.push_back(static_cast<float>(random.Below(16)) / 4);
  }
  return records;
}

}  // namespace mu::testing
