// Texts made from the tables of models and metrics: `coordinator models`, `describe` and `metrics`,
// and the pages docs/reference/models.md and metrics.md.
#pragma once

#include <string>

#include "coordinator/frontend/model_registry.h"

namespace mu {

// A line for each model.
std::string ModelList(const ModelRegistry& models);
// One model's keys, with type, default and meaning. INVALID_ARGUMENT for a name that no model has,
// with the nearest one.
absl::StatusOr<std::string> DescribeModel(const ModelRegistry& models, const std::string& name);
std::string ModelsPage(const ModelRegistry& models);

// A line for each metric, by task.
std::string MetricList();
std::string MetricsPage();

}  // namespace mu
