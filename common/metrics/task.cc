#include "common/metrics/task.h"

#include "common/base/check.h"

namespace mu {

absl::string_view TaskName(Task task) {
  switch (task) {
    case Task::kBinaryClassification:
      return "binary classification";
    case Task::kRegression:
      return "regression";
    case Task::kMultiClass:
      return "multi-class";
    case Task::kRanking:
      return "ranking";
  }
  MU_CHECK(false);
  return "";
}

}  // namespace mu
