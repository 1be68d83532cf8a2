// What a model predicts, which decides how it is measured.
#pragma once

#include "absl/strings/string_view.h"

namespace mu {

enum class Task {
  // prediction float32 [batch], the probability that the label is 1; label float32 [batch], 0 or 1
  kBinaryClassification,
  // prediction and label float32 [batch], finite
  kRegression,
  // prediction float32 [batch, classes], the probabilities of a record, which add up to 1; label
  // int64 [batch], from 0 and below classes
  kMultiClass,
  // prediction float32 [batch], a score that orders the records of a group, any finite number;
  // label float32 [batch], 1 for what is relevant to the group, else 0
  kRanking,
};

// "binary classification", "regression", "multi-class", "ranking".
absl::string_view TaskName(Task task);

}  // namespace mu
